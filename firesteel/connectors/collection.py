"""Records from a Python collection."""

from __future__ import annotations

import pickle
from typing import Any

from firesteel.connectors.blocks import blocks
from firesteel.connectors.source import CHUNK_RECORDS, Chunks, SplitSource
from firesteel.errors import SerializationError, short_repr
from firesteel.runtime.frames import encode, first_unpicklable

__all__ = ["CollectionSource"]


class CollectionSource(SplitSource):
    """A list that travels with the job in pickled pieces; a task gets only the pieces it reads.

    >>> source = CollectionSource.of(["a", "b", "c"])
    >>> end = source.latest(source.initial(), 10)
    >>> [list(source.read(share)) for share in source.plan(0, end, 2)]
    [[(['a'], None)], [(['b', 'c'], None)]]
    """

    def __init__(self, pieces: tuple[bytes, ...], size: int) -> None:
        self._pieces = pieces
        self._size = size

    @classmethod
    def of(cls, values: list[Any]) -> CollectionSource:
        chunks = [values[i : i + CHUNK_RECORDS] for i in range(0, len(values), CHUNK_RECORDS)]
        try:
            pieces = [encode(chunk) for chunk in chunks]
        except Exception as error:
            culprit = short_repr(first_unpicklable(values), 80)
            raise SerializationError(
                f"from_collection(): element {culprit} cannot be pickled, so it cannot reach the workers: {error}. "
                "Records must be plain data or instances of classes at the top level of a module."
            ) from error
        return cls(tuple(pieces), len(values))

    def for_tasks(self) -> CollectionSource:
        return CollectionSource((), self._size)

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
        return [None if block is None else self._share(*block) for block in blocks(start, end, parallelism)]

    def _share(self, low: int, high: int) -> Any:
        first, last = low // CHUNK_RECORDS, (high - 1) // CHUNK_RECORDS
        return (low - first * CHUNK_RECORDS, high - low, self._pieces[first : last + 1])

    def read(self, share: Any) -> Chunks:
        skip, left, pieces = share
        for piece in pieces:
            values = pickle.loads(piece)[skip : skip + left]
            skip = 0
            left -= len(values)
            if values:
                yield values, None
