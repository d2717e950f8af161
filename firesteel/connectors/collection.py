"""Records from a Python collection."""

from __future__ import annotations

import pickle
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from firesteel.connectors.blocks import blocks
from firesteel.connectors.source import CHUNK_RECORDS, Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.datastream.connectors.base import Source
from firesteel.errors import SerializationError, short_repr
from firesteel.runtime.frames import encode, first_unpicklable
from firesteel.runtime.pace import about

__all__ = ["CollectionEnumerator", "CollectionReader", "CollectionSource"]

_PIECE_BYTES = 4 << 20


class Pieces(NamedTuple):
    """Neighbouring pieces of a collection, pickled."""

    first: int
    """The index of the first element."""
    pickled: tuple[bytes, ...]


class CollectionSource(Source[Pieces, Any]):
    """The elements of a Python list."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def create_enumerator(self) -> CollectionEnumerator:
        return CollectionEnumerator.of(self._values)

    def create_reader(self) -> CollectionReader:
        return CollectionReader()


class CollectionEnumerator(SplitEnumerator[Pieces]):
    """Has the list in pickled pieces; a task gets only the pieces it reads. A position is a number of elements.

    >>> enumerator, reader = CollectionEnumerator.of(["a", "b", "c"]), CollectionReader()
    >>> end = enumerator.latest(enumerator.initial(), 10)
    >>> for (share,) in enumerator.plan(0, end, 2):
    ...     list(reader.read(share.split, share.start, share.end))
    [Records(values=['a'], timestamps=None)]
    [Records(values=['b', 'c'], timestamps=None)]
    """

    def __init__(self, pieces: tuple[bytes, ...], ends: tuple[int, ...]) -> None:
        self._pieces = pieces
        self._ends = ends
        """Behind how many elements each piece ends."""
        self._size = ends[-1] if ends else 0

    @classmethod
    def of(cls, values: list[Any]) -> CollectionEnumerator:
        pieces: list[bytes] = []
        ends: list[int] = []
        try:
            for start in range(0, len(values), CHUNK_RECORDS):
                for count, piece in _pickled(values[start : start + CHUNK_RECORDS]):
                    pieces.append(piece)
                    ends.append((ends[-1] if ends else 0) + count)
        except Exception as error:
            culprit = short_repr(first_unpicklable(values), 80)
            raise SerializationError(
                f"from_collection(): element {culprit} cannot be pickled, so it cannot reach the workers: {error}. "
                "Records must be plain data or instances of classes at the top level of a module."
            ) from error
        return cls(tuple(pieces), tuple(ends))

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

    def pending(self, position: int) -> int:
        return self._size - position

    def plan(self, start: int, end: int, parallelism: int) -> list[list[SplitRange[Pieces]]]:
        return [[] if block is None else [self._share(*block)] for block in blocks(start, end, parallelism)]

    def _share(self, low: int, high: int) -> SplitRange[Pieces]:
        first, last = bisect_right(self._ends, low), bisect_left(self._ends, high)
        begin = self._ends[first - 1] if first else 0
        return SplitRange(Pieces(begin, self._pieces[first : last + 1]), low, high)

    def size(self, start: int, end: int) -> int:
        if start >= end:
            return 0
        # Of the pieces at both ends what the batch has of them.
        first, last = bisect_right(self._ends, start), bisect_left(self._ends, end)
        return int(sum(self._within(at, start, end) for at in range(first, last + 1)))

    def _within(self, at: int, start: int, end: int) -> float:
        low, high = self._ends[at - 1] if at else 0, self._ends[at]
        return len(self._pieces[at]) * (min(end, high) - max(start, low)) / (high - low)


class CollectionReader(SourceReader[Pieces, Any]):
    def read(self, split: Pieces, start: int, end: int) -> Iterator[Records[Any]]:
        skip, left = start - split.first, end - start
        for piece in split.pickled:
            values = pickle.loads(piece)[skip : skip + left]
            skip = 0
            left -= len(values)
            if values:
                yield Records(values)


def _pickled(values: list[Any]) -> Iterator[tuple[int, bytes]]:
    """A list in pickled pieces that are not large, unless an element is."""
    # What is known to be large is not pickled as a whole first.
    content = encode(values) if about(values) <= _PIECE_BYTES else b""
    if content and (len(content) <= _PIECE_BYTES or len(values) == 1):
        yield len(values), content
    elif len(values) == 1:
        yield 1, encode(values)
    else:
        middle = len(values) // 2
        yield from _pickled(values[:middle])
        yield from _pickled(values[middle:])
