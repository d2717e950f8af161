"""The iterator that ``execute_and_collect`` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

__all__ = ["CloseableIterator"]


class CloseableIterator(Iterator[Any]):
    """Iterates while the job runs; closing it (or leaving its ``with`` block) stops the job.

    >>> with CloseableIterator(iter([1, 2]), lambda: print("stopped")) as records:
    ...     next(records)
    1
    stopped
    """

    def __init__(self, records: Iterator[Any], close: Callable[[], None]) -> None:
        self._records = records
        self._close = close
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
        if not self._closed:
            self._closed = True
            self._close()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
