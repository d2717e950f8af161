"""The small contract of sources: one function that is asked for more, again and again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.logged import Logged, LoggedEnumerator, LoggedReader
from firesteel.connectors.piece_log import PieceLog
from firesteel.connectors.retrying import retried
from firesteel.connectors.source import Records, SourceReader, SplitEnumerator
from firesteel.datastream.connectors.base import Source
from firesteel.errors import ProgramError, short_repr

__all__ = ["PollingSource"]

T = TypeVar("T")
Cursor = Any
Poll = Callable[[Cursor], tuple[Iterable[T], Cursor]]


class PollingSource(Source[Logged, T]):
    """Records that a function gives when it is asked: an API with pages, a table, a mailbox.

    ``poll`` gets a *cursor*, which says what was read so far, and returns the records behind it and the next cursor.
    The first cursor is ``start``. A cursor is a JSON value.

    >>> pages = {0: (["a", "b"], 2), 2: (["c"], 3), 3: ([], 3)}
    >>> source = PollingSource(pages.get, start=0, bounded=True)
    >>> from firesteel.common import WatermarkStrategy
    >>> from firesteel.testing import memory_environment
    >>> stream = memory_environment().from_source(source, WatermarkStrategy.no_watermarks(), "pages")
    >>> with stream.execute_and_collect() as found:
    ...     list(found)
    ['a', 'b', 'c']

    After a poll without records the next one comes ``interval`` seconds later; a ``bounded`` source ends with it. What
    a poll returns is written to the checkpoint folder, with its cursor, before it counts: each record counts once, also
    if the system could not be asked for it again. The function is called in one thread beside the driver.

    An exception fails the job, and its restart strategy decides. But a
    :class:`~firesteel.errors.ConnectorError` that may pass is tried again with back-off, and a
    :class:`~firesteel.errors.BackPressureError` after the time that it names, for ``retry_seconds``.
    """

    def __init__(
        self,
        poll: Poll[T],
        start: Cursor = None,
        interval: float = 1.0,
        *,
        bounded: bool = False,
        timestamp: Callable[[T], int] | None = None,
        type_info: TypeInformation | None = None,
        retry_seconds: float = 60,
    ) -> None:
        """``timestamp`` gives the event time of a record, in milliseconds."""
        if not callable(poll):
            raise ProgramError(f"poll must be a function of a cursor, got {short_repr(poll, 80)}.")
        if interval < 0:
            raise ProgramError(f"interval must be 0 or more seconds, got {interval}.")
        _checked_cursor(start)
        self._poll, self._start, self._interval, self._bounded = poll, start, interval, bounded
        self._timestamp, self._type_info, self._retry_seconds = timestamp, type_info, retry_seconds

    def create_enumerator(self) -> SplitEnumerator[Logged]:
        return _PollingEnumerator(self._poll, self._start, self._interval, self._bounded, self._retry_seconds)

    def create_reader(self) -> SourceReader[Logged, T]:
        return _PollingReader(self._timestamp)

    def get_produced_type(self) -> TypeInformation | None:
        return self._type_info


class _PollingEnumerator(LoggedEnumerator):
    def __init__(self, poll: Poll[Any], start: Cursor, interval: float, bounded: bool, retry_seconds: float) -> None:
        self._poll, self._start, self._interval, self.bounded = poll, start, interval, bounded
        self._retry_seconds = retry_seconds

    def receive(self, log: PieceLog, stopping: threading.Event) -> None:
        def sleep(seconds: float) -> None:
            if stopping.wait(seconds):
                raise _Stopped

        cursor = self._start if log.empty else log.cursor
        name = getattr(self._poll, "__name__", type(self._poll).__name__)
        try:
            while not stopping.is_set():
                found = retried(lambda: self._poll(cursor), self._retry_seconds, f"{name}()", sleep)  # noqa: B023 - called at once
                records, following = _checked(found, name)
                # A cursor may move though nothing was found; then it is logged, too.
                if (records or following != cursor) and not self.keep(records, following):
                    return
                cursor = following
                if not records:
                    if self.bounded:
                        return
                    stopping.wait(self._interval)
        except _Stopped:
            return


class _Stopped(Exception):
    """The source was stopped while it waited."""


class _PollingReader(LoggedReader[T]):
    def __init__(self, timestamp: Callable[[T], int] | None) -> None:
        self._timestamp = timestamp

    def records(self, logged: list[Any]) -> Records[T]:
        timestamp = self._timestamp
        return Records(logged, None if timestamp is None else [timestamp(value) for value in logged])


def _checked(found: Any, name: str) -> tuple[list[Any], Cursor]:
    try:
        records, cursor = found
        records = list(records)
    except (TypeError, ValueError):
        raise ProgramError(
            f"{name}() must return the records and the next cursor, as a pair; it returned {short_repr(found, 80)}."
        ) from None
    _checked_cursor(cursor)
    return records, cursor


def _checked_cursor(cursor: Cursor) -> None:
    try:
        json.dumps(cursor)
    except (TypeError, ValueError) as error:
        raise ProgramError(f"A cursor is a JSON value, got {short_repr(cursor, 80)}: {error}.") from None
