"""A job's log in the driver: what its functions log and print, and how the process's log looks if the job says so.

Settings: ``firesteel.log.format`` (``text`` or ``json``), ``firesteel.log.file``, ``firesteel.log.level`` and
``firesteel.log.level.<logger>``. Without any of them the log is the program's own affair, and records of workers go
where the program's own records go.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from logging.handlers import RotatingFileHandler
from typing import Any

from firesteel.common.log_format import JsonFormatter, SecretMask, TextFormatter, place_of
from firesteel.common.parsing import parse_memory_bytes
from firesteel.common.private_files import open_private
from firesteel.engine.progress import beside_progress
from firesteel.errors import ConfigurationError, JobCommandError
from firesteel.runtime.task_log import current_subtask, record_of

__all__ = ["JobLog", "LogFile", "checked_level", "job_thread", "log_handler", "working_for"]

PRINTED = ("stdout", "stderr")
"""The loggers of what functions print."""
_KEYS = ("firesteel.log.format", "firesteel.log.file")
LEVEL = "firesteel.log.level"


class LogFile(RotatingFileHandler):
    """A file that only its owner can read, and that begins anew when it is full."""

    def _open(self) -> Any:
        return open_private(self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors)


class _Stderr(logging.Handler):
    """The standard error of the moment, beside the progress line."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            with beside_progress():
                sys.stderr.write(text + "\n")
                sys.stderr.flush()
        except Exception:
            self.handleError(record)


_WORKING_FOR: ContextVar[str] = ContextVar("firesteel_job", default="")
"""The id of the job that the thread works for."""


@contextmanager
def working_for(job_id: str) -> Iterator[None]:
    """What is logged meanwhile is this job's, and stands in no other job's file."""
    before = _WORKING_FOR.set(job_id)
    try:
        yield
    finally:
        _WORKING_FOR.reset(before)


def job_thread(target: Callable[[], object], name: str) -> threading.Thread:
    """A thread that works for the same job as the one that makes it."""
    return threading.Thread(target=copy_context().run, args=(target,), name=name, daemon=True)


class _JobFilter(logging.Filter):
    """Adds to records what is known of where they come from, and leaves out those of other jobs. It runs in the thread
    that logs."""

    def __init__(self, **job: Any) -> None:
        super().__init__()
        self._job = job

    def filter(self, record: logging.LogRecord) -> bool:
        # What the program itself logs is nobody's, and stands in the files of all jobs that run.
        whose = _WORKING_FOR.get()
        if whose and whose != self._job.get("job_id", whose):
            return False
        for name, value in current_subtask().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        # The handler of another job may have had the record before.
        for name, value in self._job.items():
            setattr(record, name, value)
        return True


def log_handler(settings: Mapping[str, Any], **job: Any) -> logging.Handler:
    """A handler as the settings want it: to a file or to standard error, as text or JSON, without their secrets.

    >>> handler = log_handler({"firesteel.log.format": "json"}, job_name="orders")
    >>> type(handler.formatter).__name__
    'JsonFormatter'
    """
    form = str(settings.get("firesteel.log.format", "text")).lower()
    if form not in ("text", "json"):
        raise ConfigurationError(f"firesteel.log.format is {form!r}: it must be text or json.")
    path = settings.get("firesteel.log.file")
    handler: logging.Handler = _Stderr()
    if path is not None:
        size = parse_memory_bytes(str(settings.get("firesteel.log.file.max-size", "64 mb")))
        kept = int(settings.get("firesteel.log.file.max-backups", 5))
        handler = LogFile(str(path), maxBytes=size, backupCount=kept, encoding="utf-8", errors="replace")
    mask = SecretMask(settings)
    handler.setFormatter(JsonFormatter(mask) if form == "json" else TextFormatter(mask))
    handler.addFilter(_JobFilter(**job))
    return handler


def checked_level(level: Any) -> str:
    """
    >>> checked_level("debug"), checked_level("WARN")
    ('DEBUG', 'WARNING')
    """
    text = str(level).upper()
    text = {"WARN": "WARNING", "FATAL": "CRITICAL", "TRACE": "DEBUG", "OFF": "CRITICAL"}.get(text, text)
    if text not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        raise ConfigurationError(
            f"{level!r} is not a level of a log: it must be DEBUG, INFO, WARNING, ERROR or CRITICAL."
        )
    return text


class _Levels:
    """The levels of the process's loggers while jobs run that say what they should be. Of several jobs the one that
    wants to see most is heard; when the last one has ended a logger has the level that it had before the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: dict[str, int] = {}
        self._wanted: dict[str, dict[int, int]] = {}
        """By logger and job."""

    def set(self, job: int, logger: str, level: str) -> None:
        with self._lock:
            found = logging.getLogger(logger or None)
            self._before.setdefault(logger, found.level)
            self._wanted.setdefault(logger, {})[job] = logging.getLevelNamesMapping()[level]
            found.setLevel(min(self._wanted[logger].values()))

    def leave(self, job: int) -> None:
        with self._lock:
            for logger in [name for name, wanted in self._wanted.items() if job in wanted]:
                del self._wanted[logger][job]
                left = self._wanted[logger]
                level = min(left.values()) if left else self._before.pop(logger)
                logging.getLogger(logger or None).setLevel(level)
                if not left:
                    del self._wanted[logger]


_levels = _Levels()


class JobLog:
    """The log of one job."""

    def __init__(
        self, job_id: str, name: str, settings: Mapping[str, Any], attempt: Callable[[], int] = lambda: 0
    ) -> None:
        self._job = {"job_id": job_id, "job_name": name}
        self._settings = settings
        self._attempt = attempt
        self._handler: logging.Handler | None = None
        self._mask = SecretMask(settings)
        self._text = TextFormatter(times=False)
        self.send_to_workers: Callable[..., None] = lambda **message: None
        """Tells all workers something; set where there are any."""
        self.levels = {
            key[len(LEVEL) + 1 :]: checked_level(value)
            for key, value in settings.items()
            if key == LEVEL or key.startswith(f"{LEVEL}.")
        }
        """By logger its level, where the job says so; the root logger has no name."""

    def start(self) -> None:
        """Sets up the process's log, if the job's settings say how."""
        for logger, level in self.levels.items():
            _levels.set(id(self), logger, level)
        if any(key in self._settings for key in _KEYS):
            self._handler = log_handler(self._settings, **self._job)
            logging.getLogger().addHandler(self._handler)

    def stop(self) -> None:
        """Leaves the process's log as it was."""
        if self._handler is not None:
            logging.getLogger().removeHandler(self._handler)
            self._handler.close()
            self._handler = None
        _levels.leave(id(self))

    def set_level(self, level: str, logger: str = "") -> dict[str, str]:
        """Changes the level of a logger, here and in all workers. Returns all levels that the job has set."""
        try:
            self.levels = {**self.levels, logger: checked_level(level)}
        except ConfigurationError as error:
            raise JobCommandError(str(error)) from error
        _levels.set(id(self), logger, self.levels[logger])
        self.send_to_workers(levels=self.levels)
        return dict(self.levels)

    def take(self, entry: dict[str, Any]) -> None:
        """What a worker has logged or printed."""
        record = record_of(entry, **self._job, attempt=self._attempt())
        # Here, because the program's own handlers know of no secrets.
        record.msg = self._mask(record.msg)
        record.exc_text = self._mask(record.exc_text) if record.exc_text else None
        if record.name in PRINTED:
            if self._handler is not None:
                self._handler.handle(record)
            else:
                self._show(f"{place_of(record)} {record.msg}".lstrip())
            return
        logger = logging.getLogger(record.name)
        if not logger.hasHandlers():
            self._show(self._text.format(record))
            return
        if self._handler is not None:
            self._handler.handle(record)
        # Other handlers know nothing of operators; those of other jobs are none of this one's.
        others = [one for one in _handlers(logger) if not any(isinstance(f, _JobFilter) for f in one.filters)]
        if others:
            plain = logging.makeLogRecord({**record.__dict__, "msg": f"{place_of(record)} {record.msg}".lstrip()})
            for handler in others:
                if plain.levelno >= handler.level:
                    handler.handle(plain)

    def _show(self, text: str) -> None:
        with beside_progress():
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


def _handlers(logger: logging.Logger) -> list[logging.Handler]:
    """All that a record of this logger would come to."""
    found: list[logging.Handler] = []
    one: logging.Logger | None = logger
    while one is not None:
        found += one.handlers
        one = one.parent if one.propagate else None
    return found
