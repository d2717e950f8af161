"""Numbers and generated records: sources that compute what they read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from firesteel.connectors.blocks import blocks
from firesteel.connectors.source import CHUNK_RECORDS, Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.datastream.functions import Function

__all__ = ["GeneratorReader", "IndexEnumerator", "NumberReader"]


class IndexEnumerator(SplitEnumerator[None]):
    """Indexes from 0 on, so many in all, or without end; at most so many a second. A position is the next index.

    >>> IndexEnumerator(5).plan(0, 4, parallelism=2)
    [[SplitRange(split=None, start=0, end=2, name=None)], [SplitRange(split=None, start=2, end=4, name=None)]]
    """

    def __init__(self, count: int | None, per_second: float | None = None) -> None:
        self.bounded = count is not None
        self._size = (1 << 62) if count is None else count
        self._per_second = per_second
        self._epoch: float | None = None
        self._allowed = 0.0

    def ends_within(self, records: int) -> bool:
        return self._size <= records

    def initial(self) -> int:
        return 0

    def latest(self, position: int, max_records: int) -> int:
        if self._per_second is None:
            return min(self._size, position + max_records)
        now = time.monotonic()
        if self._epoch is None:
            self._epoch = now
        # The allowance counts from this run's start, not from the first run's: a restart makes no burst.
        self._allowed += (now - self._epoch) * self._per_second
        self._epoch = now
        reached = min(self._size, position + min(max_records, int(self._allowed)))
        self._allowed -= reached - position
        return reached

    def ended(self, position: int) -> bool:
        return position >= self._size

    def count(self, start: int, end: int) -> int:
        return end - start

    def pending(self, position: int) -> int | None:
        """With a limit of speed that is what may be read by now; without one and without an end nobody can say."""
        if self._per_second is not None:
            return max(0, min(self._size - position, int(self._allowed)))
        return self._size - position if self.bounded else None

    def plan(self, start: int, end: int, parallelism: int) -> list[list[SplitRange[None]]]:
        return [[] if block is None else [SplitRange(None, *block)] for block in blocks(start, end, parallelism)]


class NumberReader(SourceReader[None, int]):
    """The numbers from ``first`` on.

    >>> list(NumberReader(5).read(None, 2, 4))
    [Records(values=[7, 8], timestamps=None)]
    """

    def __init__(self, first: int) -> None:
        self._first = first

    def read(self, split: None, start: int, end: int) -> Iterator[Records[int]]:
        for low in range(start, end, CHUNK_RECORDS):
            high = min(low + CHUNK_RECORDS, end)
            yield Records(list(range(self._first + low, self._first + high)))


class GeneratorReader(SourceReader[None, Any]):
    """Records that a function makes of an index.

    ``rich`` is what is opened and closed in each task: the object that the function belongs to, if it has a life.
    """

    def __init__(self, function: Callable[[int], Any], rich: Function | None = None) -> None:
        self._function = function
        self._rich = rich

    def open(self, context: Any) -> None:
        if self._rich is not None:
            self._rich.open(context)

    def close(self) -> None:
        if self._rich is not None:
            self._rich.close()

    def read(self, split: None, start: int, end: int) -> Iterator[Records[Any]]:
        function = self._function
        for low in range(start, end, CHUNK_RECORDS):
            # No map(): it would take a StopIteration of the function for the end.
            yield Records([function(index) for index in range(low, min(low + CHUNK_RECORDS, end))])
