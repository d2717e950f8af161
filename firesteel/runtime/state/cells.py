"""A table of blocks of big collections: one cell of the store each, read when it is wanted."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import Judge

__all__ = ["CellTable"]

_CELL = struct.Struct(">QI")
_OVERHEAD = 300


class CellTable:
    """Keys are pairs (number of a collection, number of a block in it).

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store = MemoryStore()
    >>> table = CellTable(b"blocks", store, {})
    >>> table.live[7, 0] = ["a", "b"]
    >>> table.dirty.add((7, 0))
    >>> store.write(table.changes())
    >>> CellTable(b"blocks", store, {}).peek([(7, 0), (7, 1)])
    [['a', 'b'], None]
    """

    def __init__(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> None:
        self.live: dict[Any, Any] = {}
        self.dirty: set[Any] = set()
        self._prefix = prefix + b"\0"
        self._known: dict[Any, int] = {}
        """Keys that memory knows all of, with the bytes of their cells."""
        self.reopen(store, shape)

    def reopen(self, store: StateStore, shape: dict[str, Any]) -> None:
        self._store = store
        self.dirty.clear()

    @property
    def held(self) -> int:
        # What pickles to a byte takes several in memory.
        return sum(self._known.values()) * 4 + _OVERHEAD * len(self.live)

    def relieve(self) -> None:
        assert not self.dirty, "changes() comes before relieve()"
        self.live.clear()
        self._known.clear()

    def load(self, keys: Iterable[Hashable]) -> None:
        wanted = [key for key in keys if key not in self._known and key not in self.dirty]
        for key, cell in zip(wanted, self._cells(wanted), strict=True):
            self._known[key] = 0 if cell is None else len(cell)
            if cell is not None:
                self.live[key] = pickle.loads(cell)

    def peek(self, keys: Sequence[Hashable]) -> list[Any]:
        missing = [key for key in keys if key not in self._known and key not in self.dirty]
        read = dict(zip(missing, self._cells(missing), strict=True))
        return [
            self.live.get(key) if key not in read else None if (cell := read[key]) is None else pickle.loads(cell)
            for key in keys
        ]

    def _cells(self, keys: Sequence[Any]) -> Sequence[bytes | None]:
        return self._store.get_many([self._cell(key) for key in keys]) if keys else ()

    def _cell(self, key: tuple[int, int]) -> bytes:
        return self._prefix + _CELL.pack(*key)

    def every_key(self) -> Iterator[list[Any]]:
        raise NotImplementedError("the collections know their blocks")  # pragma: no cover - nobody asks

    def forget(self, key: Hashable) -> None:
        self.live.pop(key, None)
        self._known.pop(key, None)
        self.dirty.discard(key)

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        for key in sorted(self.dirty):
            entry = self.live.get(key)
            cell = None if entry is None else pickle.dumps(entry, pickle.HIGHEST_PROTOCOL)
            self._known[key] = 0 if cell is None else len(cell)
            yield self._cell(key), cell
        self.dirty.clear()

    def sweep(self, entries: int, judge: Judge) -> None:
        """Blocks are swept by the collections that own them."""
