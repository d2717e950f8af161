"""A source of consecutive integers."""

from __future__ import annotations

from firesteel.connectors.sequence import SequenceSource
from firesteel.connectors.source import SplitSource
from firesteel.datastream.connectors.base import Source
from firesteel.errors import ProgramError

__all__ = ["NumberSequenceSource"]


class NumberSequenceSource(Source):
    """All integers from ``start`` to ``end``, both included. Bounded and parallel.

    >>> NumberSequenceSource(1, 3).split_source().count(0, 3)
    3
    """

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise ProgramError(f"A number sequence needs start <= end, got {start} and {end}.")
        self._start = start
        self._end = end

    def split_source(self) -> SplitSource:
        return SequenceSource(self._start, self._end)
