"""Who logs: the operator and subtask that a thread works for, and log records on their way to another process."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from firesteel.common.log_format import trace_of

if TYPE_CHECKING:
    from firesteel.runtime.task import StageTask

__all__ = ["current_subtask", "entry_of", "record_of", "working_for"]

_threads = threading.local()
_FORMATTER = logging.Formatter()


@contextlib.contextmanager
def working_for(task: StageTask) -> Iterator[None]:
    """Around what a thread does for a task."""
    before = getattr(_threads, "task", None)
    _threads.task = task
    try:
        yield
    finally:
        _threads.task = before


def current_subtask() -> dict[str, Any]:
    """The operator and subtask that this thread works for, as attributes of log records; nothing if for none."""
    task: StageTask | None = getattr(_threads, "task", None)
    return {} if task is None else task.place


def entry_of(record: logging.LogRecord) -> dict[str, Any]:
    """A record as plain data, complete: its text is made here, where its arguments are."""
    try:
        message = record.getMessage()
    except Exception:
        # What logging does by default is to print a trace; the text without the arguments says enough here.
        message = str(record.msg)
    entry: dict[str, Any] = {"name": record.name, "level": record.levelno, "message": message, "time": record.created}
    trace = trace_of(record, _FORMATTER)
    if trace:
        entry["exception"] = trace
    return {**entry, **current_subtask()}


def record_of(entry: dict[str, Any], **job: Any) -> logging.LogRecord:
    """The record of an entry, with what is known of the job."""
    level = int(entry["level"])
    known: dict[str, Any] = {
        "name": str(entry["name"]),
        "levelno": level,
        "levelname": logging.getLevelName(level),
        "msg": str(entry["message"]),
        "args": (),
        "exc_text": entry.get("exception"),
        **{name: entry[name] for name in ("operator", "subtask", "parallelism") if name in entry},
        **job,
    }
    record = logging.makeLogRecord(known)
    record.created = float(entry["time"])
    return record
