"""Numbers and generated records: sources that compute what they read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from firesteel.connectors.blocks import blocks
from firesteel.connectors.source import CHUNK_RECORDS, Chunks, SplitSource
from firesteel.datastream.functions import Function

__all__ = ["GeneratedSource", "SequenceSource"]


class SequenceSource(SplitSource):
    """All integers from ``start`` to ``end``, both included.

    >>> source = SequenceSource(5, 8)
    >>> [list(source.read(share)) for share in source.plan(0, source.latest(0, 100), 2)]
    [[([5, 6], None)], [([7, 8], None)]]
    """

    def __init__(self, start: int, end: int) -> None:
        self._start = start
        self._size = max(0, end - start + 1)

    def ends_within(self, records: int) -> bool:
        return self._size <= records

    def initial(self) -> int:
        return 0

    def latest(self, position: int, max_records: int) -> int:
        return min(self._size, position + max_records)

    def ended(self, position: int) -> bool:
        return position >= self._size

    def count(self, start: int, end: int) -> int:
        return end - start

    def plan(self, start: int, end: int, parallelism: int) -> list[Any]:
        return list(blocks(start, end, parallelism))

    def read(self, share: Any) -> Chunks:
        low, high = share
        for start in range(low, high, CHUNK_RECORDS):
            end = min(start + CHUNK_RECORDS, high)
            yield list(range(self._start + start, self._start + end)), None


class GeneratedSource(SequenceSource):
    """Records that a function makes of an index, at most so many a second, for ever or up to a count.

    ``rich`` is what is opened and closed in each task: the object that the function belongs to, if it has a life.
    """

    def __init__(
        self, function: Callable[[int], Any], count: int | None, per_second: float | None, rich: Function | None = None
    ) -> None:
        super().__init__(0, (count if count is not None else 1 << 62) - 1)
        self.bounded = count is not None
        self._function = function
        self._rich = rich
        self._per_second = per_second
        self._epoch: float | None = None
        self._allowed = 0.0

    def latest(self, position: int, max_records: int) -> int:
        if self._per_second is not None:
            now = time.monotonic()
            if self._epoch is None:
                self._epoch = now
            # The allowance counts from this run's start, not from the first run's: a restart makes no burst.
            self._allowed += (now - self._epoch) * self._per_second
            self._epoch = now
            max_records = min(max_records, int(self._allowed))
            reached = super().latest(position, max_records)
            self._allowed -= reached - position
            return reached
        return super().latest(position, max_records)

    def open(self, context: Any) -> None:
        if self._rich is not None:
            self._rich.open(context)

    def close(self) -> None:
        if self._rich is not None:
            self._rich.close()

    def read(self, share: Any) -> Chunks:
        function = self._function
        for indexes, _ in super().read(share):
            # No map(): it would take a StopIteration of the function for the end.
            yield [function(index) for index in indexes], None
