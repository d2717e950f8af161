"""JSON as Flink's SQL writes it: numbers keep their digits, keys are in order, and there are no blanks."""

from __future__ import annotations

import base64
import datetime
import json
import re
from decimal import Decimal
from typing import Any

from firesteel.common.type_system.javatext import java_double

__all__ = ["json_moment", "quoted", "write_json"]

_SMALL_HEX = re.compile(r"\\u00[0-9a-f]{2}")


def quoted(text: str) -> str:
    """A text as JSON has it.

    >>> quoted('a"b')
    '"a\\\\"b"'
    """
    written = json.dumps(text, ensure_ascii=False)
    return _SMALL_HEX.sub(lambda match: "\\u" + match[0][2:].upper(), written) if "\\u" in written else written


def write_json(value: Any) -> str:
    """A value in JSON.

    >>> write_json({"b": Decimal("1.50"), "a": [None, True, 1e20]})
    '{"a":[null,true,1.0E+20],"b":1.50}'
    """
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float):
        number = Decimal(java_double(value))
        # JSON has no such numbers as NaN.
        return str(number) if number.is_finite() else quoted(java_double(value))
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(key)}:{write_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):
            # Arrow gives a map as a list of pairs.
            return write_json({str(key): item for key, item in value})
        return "[" + ",".join(map(write_json, value)) + "]"
    if isinstance(value, bytes):
        return quoted(base64.b64encode(value).decode())
    return quoted(json_moment(value) if isinstance(value, datetime.datetime) else str(value))


def json_moment(value: datetime.datetime) -> str:
    """A date and time in text, with Z where it is a moment.

    >>> json_moment(datetime.datetime(2024, 1, 2, 3, 4, 5, 120_000))
    '2024-01-02T03:04:05.12'
    """
    zoned = value.tzinfo is not None
    plain = value.astimezone(datetime.UTC).replace(tzinfo=None) if zoned else value
    return plain.isoformat(timespec="microseconds").rstrip("0").rstrip(".") + ("Z" if zoned else "")
