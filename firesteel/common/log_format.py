"""How log records are written: as lines for people or as JSON, without secrets.

A record may say where it comes from: the attributes ``job_id``, ``job_name``, ``attempt``, ``operator``, ``subtask``
and ``parallelism``, set by whoever knows them.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from firesteel.common.secret import is_secret_key, without_url_secrets

__all__ = ["JsonFormatter", "SecretMask", "TextFormatter", "place_of"]

SHORTEST = 4
"""A shorter secret would make stars of half of a text, and is none."""
_ATTRIBUTES = ("job_id", "job_name", "attempt", "operator", "subtask")


class SecretMask:
    """Takes secrets out of texts: the values of settings whose keys say that they are secret, and passwords in URLs.

    >>> mask = SecretMask({"shop.password": "hunter2", "shop.name": "corner"})
    >>> mask("corner: hunter2 at http://me:pass@host/")
    'corner: *** at http://me:***@host/'
    """

    def __init__(self, settings: Mapping[str, Any], others: Iterable[str] = ()) -> None:
        secrets = {str(value) for key, value in settings.items() if is_secret_key(key)} | set(others)
        # The longest first: one may be part of another.
        known = sorted((one for one in secrets if len(one) >= SHORTEST), key=len, reverse=True)
        self._secrets = re.compile("|".join(re.escape(one) for one in known)) if known else None

    def __call__(self, text: str) -> str:
        if self._secrets is not None:
            text = self._secrets.sub("***", text)
        return without_url_secrets(text, "***")


def place_of(record: logging.LogRecord) -> str:
    """Where a record comes from, in a few characters; nothing if it is no operator's.

    >>> record = logging.makeLogRecord({"operator": "parse", "subtask": 0, "parallelism": 2})
    >>> place_of(record)
    '[parse 1/2]'
    """
    operator = getattr(record, "operator", None)
    if operator is None:
        return ""
    return f"[{operator} {getattr(record, 'subtask', 0) + 1}/{getattr(record, 'parallelism', 1)}]"


class TextFormatter(logging.Formatter):
    """Lines for people.

    >>> place = {"operator": "parse", "subtask": 0, "parallelism": 2}
    >>> record = logging.makeLogRecord({"name": "shop", "levelname": "WARNING", "msg": "odd", "created": 0.5, **place})
    >>> TextFormatter().format(record)
    '1970-01-01T00:00:00.500Z WARNING shop [parse 1/2]: odd'
    >>> TextFormatter(times=False).format(record)
    'WARNING shop [parse 1/2]: odd'
    """

    def __init__(self, mask: SecretMask | None = None, times: bool = True) -> None:
        super().__init__()
        self._mask = mask or SecretMask({})
        self._times = times

    def format(self, record: logging.LogRecord) -> str:
        place = place_of(record)
        head = f"{record.levelname} {record.name}{' ' if place else ''}{place}: "
        text = f"{moment(record) + ' ' if self._times else ''}{head}{record.getMessage()}"
        trace = trace_of(record, self)
        return self._mask(f"{text}\n{trace}" if trace else text)


class JsonFormatter(logging.Formatter):
    """One JSON object in a line.

    >>> place = {"operator": "parse", "subtask": 0, "parallelism": 2, "job_name": "orders"}
    >>> record = logging.makeLogRecord({"name": "shop", "levelname": "INFO", "msg": "got %d", "args": (3,), **place})
    >>> record.created = 0.5
    >>> print(JsonFormatter().format(record))
    {"time": "1970-01-01T00:00:00.500Z", "level": "INFO", "logger": "shop", "message": "got 3", "job_name": "orders", \
"operator": "parse", "subtask": 0}
    """

    def __init__(self, mask: SecretMask | None = None) -> None:
        super().__init__()
        self._mask = mask or SecretMask({})

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, Any] = {
            "time": moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self._mask(record.getMessage()),
        }
        found.update((name, getattr(record, name)) for name in _ATTRIBUTES if getattr(record, name, None) is not None)
        trace = trace_of(record, self)
        if trace:
            found["exception"] = self._mask(trace)
        return json.dumps(found, ensure_ascii=False, default=str)


def moment(record: logging.LogRecord) -> str:
    """When it was, in UTC."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.created % 1 * 1000):03d}Z"


def trace_of(record: logging.LogRecord, formatter: logging.Formatter) -> str:
    """The record's exception as text, if it has one."""
    if record.exc_info and not record.exc_text:
        record.exc_text = formatter.formatException(record.exc_info)
    return record.exc_text or ""
