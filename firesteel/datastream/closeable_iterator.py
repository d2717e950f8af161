"""The iterator that ``execute_and_collect`` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

__all__ = ["CloseableIterator"]


class CloseableIterator(Iterator[Any]):
    """Iterates while the job runs; closing it (or leaving its ``with`` block) cancels the job.

    An exception that leaves the block, such as that of Ctrl-C, stops the job, too, but its checkpoint stays.

    >>> with CloseableIterator(iter([1, 2]), lambda: print("stopped")) as records:
    ...     next(records)
    1
    stopped
    """

    def __init__(
        self, records: Iterator[Any], close: Callable[[], None], interrupted: Callable[[], None] | None = None
    ) -> None:
        """``interrupted`` is called instead of ``close`` where an exception leaves the ``with`` block."""
        self._records = records
        self._close = close
        self._interrupted = interrupted or close
        self._closed = False

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Any:
        if self._closed:
            raise StopIteration
        return next(self._records)

    def next(self) -> Any:
        """The next record, as ``next(iterator)``."""
        return next(self)

    def close(self) -> None:
        """Stops the job. Calling it again does nothing."""
        self._end(self._close)

    def _end(self, action: Callable[[], None]) -> None:
        if not self._closed:
            self._closed = True
            action()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(self._close if kind is None else self._interrupted)
