"""The pages of a table of slots that is too large for memory.

A page has the slots of all keys of the stream whose hash leads to it, and is one cell of the store. Memory holds the
pages of the rows at hand: who works on rows has their pages read before (:mod:`.slot_pager`), and pages with changed
slots are written anew as a whole. The table grows by linear hashing: a batch splits as many pages as what it added
calls for, so that its cost depends on what it touches, not on the size of the state.

    key of the stream ──► hash ──► page number ──► a cell: keys, hashes, values ──► slots in memory
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.durable.cells import PAGE, damaged
from firesteel.runtime.columns.routing import row_hashes
from firesteel.runtime.state.columnar.index import grown
from firesteel.runtime.state.store import StateStore

if TYPE_CHECKING:
    from firesteel.runtime.state.columnar.slots import SlotTable

__all__ = ["HASH", "SlotPages", "mixed", "page_schema"]

Slots = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

HASH = "$hash"
"""The column of a page that has the hashes of the keys, so that reading them again costs no hashing."""
PAGE_ROWS = 512
"""Slots that a page has on average."""
PAGE_BYTES = 64 << 10
"""Bytes that a page may have on average in the store: slots with long lists make pages of fewer slots."""
_READ_AT_ONCE = 1024
_WRITE_AT_ONCE = 128
_SWEPT = 8
"""One page in so many that are written is looked through for expired slots besides."""
_UNKNOWN = -1


def mixed(hashes: Array) -> Slots:
    """Hashes whose lowest bits lead to pages. Those of the hash itself have chosen the subtask already."""
    whole = hashes.astype(np.int64)
    found: Slots = whole ^ (whole >> 15)
    return found


def page_of(numbers: Slots, pages: int) -> Slots:
    """Linear hashing: as many low bits of each number as lead to a page that exists.

    >>> page_of(np.arange(4), pages=3).tolist()
    [0, 1, 2, 1]
    """
    top = 1 << (pages - 1).bit_length()
    found = numbers & (top - 1)
    return np.where(found < pages, found, found & ((top >> 1) - 1))


def _pages_for(entries: int, width: float) -> int:
    """How many pages so many slots of so many bytes take."""
    return math.ceil(max(entries / PAGE_ROWS, entries * width / PAGE_BYTES))


def page_schema(shape: dict[str, Any]) -> pa.Schema:
    """The columns of a page: the key's, the hash, and the values."""
    return pa.ipc.read_schema(pa.py_buffer(shape["schema"]))


class SlotPages:
    """Where a table that is larger than memory is stored."""

    def __init__(self, table: SlotTable, prefix: bytes, shape: dict[str, Any]) -> None:
        self._table = table
        log_schema, width = table.schema, len(table.key_types)
        keys = list(log_schema)[:width]
        self._schema = pa.schema([*keys, pa.field(HASH, pa.uint32()), *table.stored_fields])
        shape.setdefault("schema", self._schema.serialize().to_pybytes())
        shape.setdefault("pages", 1)
        shape.setdefault("entries", 0)
        shape.setdefault("bytes", 0)
        stored = page_schema(shape)
        if stored != self._schema:
            raise damaged(prefix, f"its columns are {stored.names}, not {self._schema.names}")
        self.reopen(prefix, shape)
        self.release()

    def reopen(self, prefix: bytes, shape: dict[str, Any]) -> None:
        """Goes on in another batch."""
        self._prefix, self._shape = prefix + b"\0", shape

    def release(self) -> None:
        """Memory has nothing of the pages any more."""
        room, pages = len(self._table.alive), self._shape["pages"]
        self._homes: Array = np.full(room, _UNKNOWN, np.int32)
        """The page of each slot."""
        self._hashes: Array = np.zeros(room, np.uint32)
        self._resident: Array = np.zeros(pages, bool)
        self._counts: Array = np.zeros(pages, np.int64)
        """How many slots the store has of each page in memory."""
        self._bytes: Array = np.zeros(pages, np.int64)

    def adopt(self) -> None:
        """Begins with all slots of a table that was in memory: they are to be written."""
        table = self._table
        alive = table.alive[: table.size]
        table.dirty[: table.size] = alive
        there = np.flatnonzero(alive)
        sample = there[:: len(there) // PAGE_ROWS + 1]
        width = sum(column.nbytes for column in self._columns(sample)) / max(1, len(sample))
        self._shape["pages"] = max(1, _pages_for(len(there), width))
        self.release()
        self._resident[:] = True

    @property
    def entries(self) -> int:
        """How many slots the store has."""
        entries: int = self._shape["entries"]
        return entries

    @property
    def count(self) -> int:
        """How many pages there are."""
        pages: int = self._shape["pages"]
        return pages

    @property
    def stored_bytes(self) -> int:
        """How many bytes they have in the store."""
        size: int = self._shape["bytes"]
        return size

    @property
    def nbytes(self) -> int:
        of_slots, of_pages = (self._homes, self._hashes), (self._resident, self._counts, self._bytes)
        return sum(array.nbytes for array in (*of_slots, *of_pages))

    def make_room(self, size: int) -> None:
        """The table has room for so many slots now."""
        before = len(self._homes)
        self._homes, self._hashes = grown(self._homes, size), grown(self._hashes, size)
        self._homes[before:] = _UNKNOWN

    # Reading

    def missing(self, hashes: Array) -> Slots:
        """The pages that keys with these hashes belong to and that are not in memory."""
        numbers = page_of(mixed(hashes), self.count)
        found: Slots = np.unique(numbers[~self._resident[numbers]])
        return found

    def load(self, hashes: Array, store: StateStore) -> None:
        """Reads the pages of keys with these hashes, but for those that are in memory."""
        self._read(self.missing(hashes), store)

    def walk(self, store: StateStore) -> Iterator[None]:
        """Reads all pages, some at a time: what was read is in the table until it is released."""
        for start in range(0, self.count, _READ_AT_ONCE):
            self._read(np.arange(start, min(start + _READ_AT_ONCE, self.count)), store)
            yield

    def _read(self, numbers: Slots, store: StateStore) -> None:
        for start in range(0, len(numbers), _READ_AT_ONCE):
            window = numbers[start : start + _READ_AT_ONCE]
            self._resident[window] = True
            if not self.entries:
                continue
            found = store.get_many([self._cell(number) for number in window.tolist()])
            batches = []
            for number, cell in zip(window.tolist(), found, strict=True):
                if cell is None:
                    continue
                try:
                    batch = pa.ipc.read_record_batch(pa.py_buffer(cell), self._schema)
                except pa.ArrowException as error:
                    raise damaged(self._prefix, f"page {number}: {error}") from error
                self._counts[number], self._bytes[number] = batch.num_rows, len(cell)
                batches.append(batch)
            if batches:
                self._take(pa.concat_batches(batches) if len(batches) > 1 else batches[0])

    def _take(self, batch: pa.RecordBatch) -> None:
        table = self._table
        width = len(table.key_types)
        columns = batch.columns
        slots = table.slots(columns[:width])
        self._hashes[slots] = hashes = columns[width].to_numpy()
        self._homes[slots] = page_of(mixed(hashes), self.count)
        if table.dirty[slots].any():
            # What was put before its page was read is newer.
            older = ~table.dirty[slots]
            slots, mask = slots[older], pa.array(older)
            columns = [column.filter(mask) for column in columns]
        table.alive[slots] = True
        table.set_values(slots, columns[width + 1 :])
        table.forget_expired(slots)

    # Writing

    def changes(self, changed: Slots, store: StateStore) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn if these slots have changed: the whole pages that they are on."""
        table = self._table
        self._hash_new_slots()
        touched = self._pages(changed)
        self._read(touched[~self._resident[touched]], store)
        if table.time_to_live is not None:
            self._sweep(len(touched), store)
            touched = self._pages(self._dirty())
        members, ends = self._members(touched)
        split = self._grow(touched, int(ends[-1] - self._counts[touched].sum()), store)
        if len(split):
            # With those slots that had expired when they were read.
            touched = np.union1d(split, self._pages(self._dirty()))
            members, ends = self._members(touched)
        table.dirty[: table.size] = False
        counts = np.diff(ends)
        self._shape["entries"] += int(counts.sum() - self._counts[touched].sum())
        self._counts[touched] = counts
        for first in range(0, len(touched), _WRITE_AT_ONCE):
            yield from self._written(touched[first : first + _WRITE_AT_ONCE], members, ends[first:])

    def _written(self, numbers: Slots, members: Slots, ends: Array) -> Iterator[tuple[bytes, bytes | None]]:
        """The cells of some pages, with their slots in order, and where in those each page begins."""
        first, last = int(ends[0]), int(ends[len(numbers)])
        batch = pa.RecordBatch.from_arrays(self._columns(members[first:last]), schema=self._schema)
        for number, start, end in zip(numbers.tolist(), ends.tolist(), ends[1:].tolist(), strict=False):
            cell = batch.slice(start - first, end - start).serialize().to_pybytes() if end > start else b""
            self._shape["bytes"] += len(cell) - int(self._bytes[number])
            if cell or self._bytes[number]:
                yield self._cell(number), cell or None
            self._bytes[number] = len(cell)

    def _columns(self, slots: Slots) -> list[pa.Array]:
        table = self._table
        return [*table.keys(slots), pa.array(self._hashes[slots]), *table.stored_columns(slots)]

    def _members(self, touched: Slots) -> tuple[Slots, Array]:
        """The slots that are alive on some pages, page by page, and where each page begins; behind it, the end."""
        table = self._table
        # Slots without a page, of which nothing is known, ask for the last place.
        wanted = np.full(self.count + 1, _UNKNOWN, np.int32)
        wanted[touched] = np.arange(len(touched))
        at = wanted[self._homes[: table.size]]
        chosen = np.flatnonzero((at >= 0) & table.alive[: table.size])
        at = at[chosen]
        counts = np.bincount(at, minlength=len(touched))
        return chosen[np.argsort(at, kind="stable")], np.concatenate(([0], np.cumsum(counts)))

    def _dirty(self) -> Slots:
        found: Slots = np.flatnonzero(self._table.dirty[: self._table.size])
        return found

    def _pages(self, slots: Slots) -> Slots:
        found: Slots = np.unique(self._homes[slots]).astype(np.int64)
        return found

    def _hash_new_slots(self) -> None:
        table = self._table
        new = np.flatnonzero(self._homes[: table.size] == _UNKNOWN)
        if len(new):
            self._hashes[new] = hashes = row_hashes(table.keys(new)[: table.key_width], len(new))
            self._homes[new] = page_of(mixed(hashes), self.count)

    def _grow(self, touched: Slots, added: int, store: StateStore) -> Slots:
        """Adds pages if there are too few for what is to be written, in which so many slots are more than before. Gives
        those that slots have moved from or to."""
        table, before = self._table, self.count
        wanted = _pages_for(self.entries + added, self.stored_bytes / max(1, self.entries))
        # Where much is to be caught up, because slots have become larger, later batches do their part.
        wanted = min(wanted, before + 2 * (len(touched) + math.ceil(max(0, added) / PAGE_ROWS)))
        if wanted <= before:
            return np.zeros(0, np.int64)
        new = np.arange(before, wanted)
        sources = np.unique(page_of(new, before))
        self._read(sources[~self._resident[sources]], store)
        self._hash_new_slots()
        self._shape["pages"] = wanted
        more = np.zeros(wanted - before, np.int64)
        self._counts, self._bytes = np.concatenate((self._counts, more)), np.concatenate((self._bytes, more))
        self._resident = np.concatenate((self._resident, np.ones(wanted - before, bool)))
        splits = np.zeros(before, bool)
        splits[sources] = True
        moving = np.flatnonzero(splits[self._homes[: table.size]])
        self._homes[moving] = page_of(mixed(self._hashes[moving]), wanted)
        return np.concatenate((sources, new))

    def _sweep(self, written: int, store: StateStore) -> None:
        """Reads the next few pages, so that what has expired on them is noticed although nobody asks for it."""
        first = self._shape.get("swept", 0) % self.count
        last = min(first + 1 + written // _SWEPT, self.count)
        numbers = np.arange(first, last)
        self._read(numbers[~self._resident[numbers]], store)
        self._shape["swept"] = last

    def _cell(self, number: int) -> bytes:
        return self._prefix + PAGE.pack(number)
