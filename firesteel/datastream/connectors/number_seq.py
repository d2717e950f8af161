"""A source of consecutive integers."""

from __future__ import annotations

from firesteel.connectors.sequence import IndexEnumerator, NumberReader
from firesteel.datastream.connectors.base import Source
from firesteel.errors import ProgramError

__all__ = ["NumberSequenceSource"]


class NumberSequenceSource(Source[None, int]):
    """All integers from ``start`` to ``end``, both included. Bounded and parallel.

    >>> list(NumberSequenceSource(1, 3).create_reader().read(None, 0, 3))
    [Records(values=[1, 2, 3], timestamps=None)]
    """

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise ProgramError(f"A number sequence needs start <= end, got {start} and {end}.")
        self._start = start
        self._end = end

    def create_enumerator(self) -> IndexEnumerator:
        return IndexEnumerator(self._end - self._start + 1)

    def create_reader(self) -> NumberReader:
        return NumberReader(self._start)
