"""A table of blocks of big collections: one cell of the store each, read when it is wanted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from firesteel.durable.cells import BLOCK, decode, encode
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import ExpiryCheck, Table

__all__ = ["CellTable"]

_CLEAN = 0
"""The home of an entry that is as the store has it. Every key has a cell of its own, so there is nothing to know."""
_OVERHEAD = 300


class CellTable(Table):
    """Keys are pairs (number of a collection, number of a block in it).

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store = MemoryStore()
    >>> table = CellTable(b"blocks", store, {})
    >>> table.put((7, 0), ["a", "b"])
    >>> store.write(table.changes())
    >>> CellTable(b"blocks", store, {}).peek([(7, 0), (7, 1)])
    [['a', 'b'], None]
    """

    def __init__(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> None:
        self.live = {}
        self.dirty = []
        self._prefix = prefix + b"\0"
        self._bytes: dict[Any, int] = {}
        self.reopen(store, shape)

    def reopen(self, store: StateStore, shape: dict[str, Any]) -> None:
        self._store, self._shape = store, shape
        self.dirty.clear()

    @property
    def releasable_bytes(self) -> int:
        # What pickles to a byte takes several in memory.
        return sum(self._bytes.values()) * 4 + _OVERHEAD * len(self.live)

    def relieve(self, keep: int = 0) -> None:
        assert not self.dirty, "changes() comes before relieve()"
        self.live.clear()
        self._bytes.clear()

    def load(self, keys: Iterable[Hashable]) -> None:
        wanted = [key for key in keys if key not in self.live]
        for key, cell in zip(wanted, self._cells(wanted), strict=True):
            self._bytes[key] = 0 if cell is None else len(cell)
            self.live[key] = [None if cell is None else decode(cell, self._prefix), _CLEAN, key]

    def peek(self, keys: Sequence[Hashable]) -> list[Any]:
        missing = [key for key in keys if key not in self.live]
        read = dict(zip(missing, self._cells(missing), strict=True))
        return [
            self.get(key) if key not in read else None if (cell := read[key]) is None else decode(cell, self._prefix)
            for key in keys
        ]

    def put(self, key: Hashable, value: Any) -> None:
        if value is None and key not in self.live:
            # The store may know it.
            self.live[key] = [None, _CLEAN, key]
        super().put(key, value)

    def every_key(self) -> Iterator[list[Any]]:
        raise NotImplementedError("the collections know their blocks")  # pragma: no cover - nobody asks

    def _cells(self, keys: Sequence[Any]) -> Sequence[bytes | None]:
        return self._store.get_many([self._cell(key) for key in keys]) if keys else ()

    def _cell(self, key: tuple[int, int]) -> bytes:
        return self._prefix + BLOCK.pack(*key)

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        dirty = self.dirty[:]
        self.dirty.clear()
        for entry in sorted(dirty, key=_key):
            value, _, key = entry
            entry[1] = _CLEAN
            cell = None if value is None else encode(value)
            length = 0 if cell is None else len(cell)
            # What was not read before it was replaced counts as nothing: blocks are read before they are changed.
            self._shape["bytes"] = max(0, self._shape.get("bytes", 0) + length - self._bytes.get(key, 0))
            self._bytes[key] = length
            yield self._cell(key), cell

    def sweep(self, entries: int, expiry_check: ExpiryCheck) -> None:
        """Blocks are swept by the collections that own them."""


def _key(entry: list[Any]) -> Any:
    return entry[2]
