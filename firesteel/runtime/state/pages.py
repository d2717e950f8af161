"""A table from user keys to values, kept in pages.

A call to Spark's state store costs a hundred microseconds and more, a dict look-up tens of nanoseconds. So the store
holds pages, each a pickled dict of all entries whose hash falls into it, and a batch reads each page it needs once and
writes each page it changed once. The table grows by linear hashing: one page is split at a time, so that no batch
ever rewrites the whole table and the cost of a batch depends on what it touches, not on the size of the state.

How large a page may grow depends on how it is used. Where a batch touches a good part of every page (a million records
on a million keys), large pages save calls. Where it touches one entry here and there, small ones save copying.

    hash ──► page number ──► one entry of the store ──► {key: value, …} ──► merged into ``live``

``live`` is the dict that the hot path reads and writes directly. A table may be kept in memory after its batch and
reopened for the next one, if the store has not changed in between (see ``KeyedStateBackend``): then nothing is read.
"""

from __future__ import annotations

import math
import pickle
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.runtime.keys import stable_hash
from firesteel.runtime.state.store import StateStore

__all__ = ["PagedTable", "TableShape", "table_pages"]

_PAGE = struct.Struct(">I")

SMALL_PAGE = 64
LARGE_PAGE = 1024
TOUCHES_TO_ENTRIES = 16
"""A page may have this many times the entries that a batch touches in it: what is copied for nothing stays bounded."""


@dataclass
class TableShape:
    """What must be known to find a page: how many there are. Kept in the subtask's header."""

    entries: int = 0
    pages: int = 1

    def page_of(self, hashed: int) -> int:
        """The page of a hash.

        The low bits already chose the subtask (through the key group), so the high ones are mixed in.
        """
        return self.slot(hashed ^ (hashed >> 15))

    def slot(self, number: int) -> int:
        """Linear hashing: as many low bits as lead to a page that exists.

        >>> [TableShape(pages=3).slot(number) for number in range(4)]
        [0, 1, 2, 1]
        """
        top = 1 << (self.pages - 1).bit_length()
        page = number & (top - 1)
        return page if page < self.pages else page & ((top >> 1) - 1)


class PagedTable:
    """One keyed state of one operator in one subtask, during one batch (or several, if it is reopened).

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store, shape = MemoryStore(), TableShape()
    >>> table = PagedTable(b"counts", store, shape)
    >>> table.load(["a"])
    >>> table.live["a"] = 1
    >>> table.dirty.add("a")
    >>> store.write(table.changes())
    >>> later = PagedTable(b"counts", store, shape)
    >>> later.load(["a", "b"])
    >>> later.live
    {'a': 1}
    """

    def __init__(self, prefix: bytes, store: StateStore, shape: TableShape) -> None:
        self.live: dict[Any, Any] = {}
        self.dirty: set[Any] = set()
        self._prefix = prefix + b"\0"
        self._store = store
        self._shape = shape
        self._pages: dict[int, dict[Any, Any]] = {}
        self._hashes: dict[Any, int] = {}

    def reopen(self, store: StateStore, shape: TableShape) -> None:
        """Goes on with what is in memory. The store must be as ``changes`` left it."""
        self._store, self._shape = store, shape
        self.dirty.clear()

    @property
    def held(self) -> int:
        """Entries in memory, and keys that are remembered though they have none."""
        return max(len(self.live), len(self._hashes))

    def load(self, keys: Iterable[Any]) -> None:
        """Reads the pages of these keys unless they are here already."""
        found = {key: stable_hash(key) for key in keys}
        self._hashes.update(found)
        self._read(set(map(self._shape.page_of, found.values())).difference(self._pages))

    def forget(self, key: Any) -> None:
        """Drops what is known of a key in this batch, without a trace."""
        self.live.pop(key, None)
        self.dirty.discard(key)
        self._hashes.pop(key, None)

    def _read(self, numbers: Iterable[int]) -> None:
        wanted = sorted(numbers)
        if not wanted:
            return
        if not self._shape.entries:
            self._pages.update((number, {}) for number in wanted)
            return
        for number, cell in zip(wanted, self._store.get_many([self._cell(n) for n in wanted]), strict=True):
            page: dict[Any, Any] = {} if cell is None else pickle.loads(cell)
            self._pages[number] = page
            self.live.update(page)

    def _cell(self, number: int) -> bytes:
        return self._prefix + _PAGE.pack(number)

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn of this batch."""
        shape, live, pages, hashes = self._shape, self.live, self._pages, self._hashes
        changed: set[int] = set()
        page_of = shape.page_of
        for key in self.dirty:
            number = page_of(hashes[key])
            changed.add(number)
            page = pages[number]
            if key in live:
                shape.entries += key not in page
                page[key] = live[key]
            elif key in page:
                shape.entries -= 1
                del page[key]
        changed.update(self._grow(self._wanted_pages(len(changed))))
        for number in sorted(changed):
            page = pages[number]
            yield self._cell(number), pickle.dumps(page, pickle.HIGHEST_PROTOCOL) if page else None

    def _wanted_pages(self, changed: int) -> int:
        """How many pages the table should have, at most a few times as many as the batch changed more than now."""
        shape = self._shape
        touched = len(self.dirty) / max(1, changed)
        room = min(max(touched * TOUCHES_TO_ENTRIES, SMALL_PAGE), LARGE_PAGE)
        limit = shape.pages + 2 * changed + len(self.dirty) // SMALL_PAGE
        return max(shape.pages, min(math.ceil(shape.entries / room), limit))

    def _grow(self, wanted: int) -> set[int]:
        """Adds pages and moves to them what belongs there. Returns the pages that changed."""
        shape, pages, hashes = self._shape, self._pages, self._hashes
        before = TableShape(pages=shape.pages)
        # A new page takes entries of the one that its number led to before.
        parents = {before.slot(number) for number in range(shape.pages, wanted)}
        self._read(parents.difference(pages))
        shape.pages = wanted
        pages.update((number, {}) for number in range(before.pages, wanted))
        page_of = shape.page_of
        for parent in parents:
            entries, pages[parent] = pages[parent], {}
            for key, value in entries.items():
                hashed = hashes.get(key)
                pages[page_of(stable_hash(key) if hashed is None else hashed)][key] = value
        return parents | set(range(before.pages, wanted))


def table_pages(prefix: bytes, shape: TableShape) -> list[bytes]:
    """The cells in which a table of this shape can have entries, for readers of the whole state."""
    return [prefix + b"\0" + _PAGE.pack(number) for number in range(shape.pages)]
