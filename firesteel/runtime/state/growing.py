"""A table that is a log as long as it fits into memory, and pages from then on.

What fits need not be read again, and writing only what changed is cheapest: a log does that. What does not fit has to
be found in the store key by key: pages do that. When memory is short, all entries move from one to the other, once.
``live`` and ``dirty`` stay the same objects meanwhile, so that whoever uses the table notices nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from firesteel.runtime.state.log import LogTable, scan_log
from firesteel.runtime.state.pages import PagedTable, scan_pages
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import ExpiryCheck, Table
from firesteel.runtime.state.weight import SAMPLE, Scale

__all__ = ["GrowingTable", "scan_growing"]


def _is_log(shape: dict[str, Any]) -> bool:
    return "pages" not in shape


class GrowingTable(Table):
    """One state of one operator in one subtask.

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store, shape = MemoryStore(), {}
    >>> table = GrowingTable(b"counts", store, shape)
    >>> table.put("a", 1)
    >>> store.write(table.changes())
    >>> table.relieve()
    >>> store.write(table.changes())
    >>> table.relieve()
    >>> len(table.live), "pages" in shape, GrowingTable(b"counts", store, shape).peek(["a"])
    (0, True, [1])
    """

    def __init__(self, prefix: bytes, store: StateStore, shape: dict[str, Any], fits: bool = True) -> None:
        """``fits`` is False if memory can never hold all of it from one batch to the next."""
        self._prefix = prefix
        is_log = _is_log(shape) and (fits or "segments" in shape)
        self._table: LogTable | PagedTable = (LogTable if is_log else PagedTable)(prefix, store, shape)
        self.live, self.dirty = self._table.live, self._table.dirty
        self._store, self._shape = store, shape
        self._outgrown = not fits
        self._scale = Scale()
        self._scale.learn(list(islice(self.live.values(), SAMPLE)))

    def reopen(self, store: StateStore, shape: dict[str, Any]) -> None:
        self._store, self._shape = store, shape
        self._table.reopen(store, shape)

    @property
    def releasable_bytes(self) -> int:
        if isinstance(self._table, PagedTable):
            return self._table.releasable_bytes
        if not self._scale.calibrated:
            # In its first batch nothing was written yet, but memory fills all the same.
            self._scale.learn(self.dirty)
        return self._scale.of(len(self.live))

    @property
    def entries(self) -> int:
        return self._table.entries

    def relieve(self, keep: int = 0) -> None:
        if isinstance(self._table, PagedTable):
            self._table.relieve(keep)
        elif self.releasable_bytes > keep:
            # Pages are to be written before memory can let go of anything.
            self._outgrown = True

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        if isinstance(self._table, LogTable):
            self._scale.learn(self.dirty)
            if self._outgrown:
                yield from self._turn(self._table)
        yield from self._table.changes()

    def _turn(self, log: LogTable) -> Iterator[tuple[bytes, None]]:
        """Makes pages of all entries: they are written with the next changes, like new ones."""
        cells = log.cells
        self._shape.clear()
        self._table = PagedTable(self._prefix, self._store, self._shape)
        self._table.adopt(self.live, self.dirty)
        for cell in cells:
            yield cell, None

    def load(self, keys: Iterable[Hashable]) -> None:
        self._table.load(keys)

    def peek(self, keys: Sequence[Hashable]) -> list[Any]:
        return self._table.peek(keys)

    def every_key(self) -> Iterator[list[Any]]:
        return self._table.every_key()

    def forget(self, key: Hashable) -> None:
        self._table.forget(key)

    def sweep(self, entries: int, expiry_check: ExpiryCheck) -> None:
        self._table.sweep(entries, expiry_check)


def scan_growing(prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """All entries of a stored table as keys and values, without a table."""
    return (scan_log if _is_log(shape) else scan_pages)(prefix, store, shape)
