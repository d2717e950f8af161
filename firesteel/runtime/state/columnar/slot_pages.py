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
        self._hashes: Array = np.full(len(self._table.alive), _UNKNOWN, np.int64)
        pages = self._shape["pages"]
        self._resident: Array = np.zeros(pages, bool)
        self._counts: Array = np.zeros(pages, np.int64)
        """How many slots the store has of each page in memory."""
        self._bytes: Array = np.zeros(pages, np.int64)

    def adopt(self) -> None:
        """Begins with all slots of a table that was in memory: they are to be written."""
        table = self._table
        alive = table.alive[: table.size]
        table.dirty[: table.size] = alive
        self._shape["pages"] = max(1, math.ceil(np.count_nonzero(alive) / PAGE_ROWS))
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
        return self._hashes.nbytes + self._resident.nbytes + self._counts.nbytes + self._bytes.nbytes

    def make_room(self, size: int) -> None:
        """The table has room for so many slots now."""
        before = len(self._hashes)
        self._hashes = grown(self._hashes, size)
        self._hashes[before:] = _UNKNOWN

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
        self._hashes[slots] = columns[width].to_numpy()
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
        touched = np.union1d(touched, self._grow(touched, store))
        # With those slots that had expired when they were read.
        dirty = np.flatnonzero(table.dirty[: table.size])
        table.dirty[dirty] = False
        touched = np.union1d(touched, self._pages(dirty))
        members, ends = self._members(touched)
        counts = np.diff(ends)
        self._shape["entries"] += int(counts.sum() - self._counts[touched].sum())
        self._counts[touched] = counts
        for at, number in enumerate(touched.tolist()):
            cell = b""
            if counts[at]:
                cell = self._encoded(members[ends[at] : ends[at + 1]])
            self._shape["bytes"] += len(cell) - int(self._bytes[number])
            if cell or self._bytes[number]:
                yield self._cell(number), cell or None
            self._bytes[number] = len(cell)

    def _encoded(self, slots: Slots) -> bytes:
        table = self._table
        hashes = pa.array(self._hashes[slots].astype(np.uint32))
        arrays = [*table.keys(slots), hashes, *table.stored_columns(slots)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return batch.serialize().to_pybytes()  # type: ignore[no-any-return]

    def _members(self, touched: Slots) -> tuple[Slots, Array]:
        """The slots that are alive on some pages, page by page, and where each page begins; behind it, the end."""
        table = self._table
        wanted = np.full(self.count, _UNKNOWN, np.int64)
        wanted[touched] = np.arange(len(touched))
        alive = np.flatnonzero(table.alive[: table.size])
        at = wanted[page_of(mixed(self._hashes[alive]), self.count)]
        chosen = np.flatnonzero(at >= 0)
        order = np.argsort(at[chosen], kind="stable")
        counts = np.bincount(at[chosen], minlength=len(touched))
        return alive[chosen[order]], np.concatenate(([0], np.cumsum(counts)))

    def _pages(self, slots: Slots) -> Slots:
        found: Slots = np.unique(page_of(mixed(self._hashes[slots]), self.count))
        return found

    def _hash_new_slots(self) -> None:
        table = self._table
        new = np.flatnonzero(self._hashes[: table.size] == _UNKNOWN)
        if len(new):
            self._hashes[new] = row_hashes(table.keys(new)[: table.key_width], len(new))

    def _grow(self, touched: Slots, store: StateStore) -> Slots:
        """Adds pages if there are too few for what is to be written. Gives those that slots have moved from or to."""
        before = self.count
        added = np.diff(self._members(touched)[1]).sum() - self._counts[touched].sum()
        entries = self.entries + int(added)
        width = self.stored_bytes / max(1, self.entries)
        wanted = math.ceil(max(entries / PAGE_ROWS, entries * width / PAGE_BYTES))
        if wanted <= before:
            return np.zeros(0, np.int64)
        new = np.arange(before, wanted)
        sources = np.unique(page_of(new, before))
        self._read(sources[~self._resident[sources]], store)
        self._shape["pages"] = wanted
        more = np.zeros(wanted - before, np.int64)
        self._counts, self._bytes = np.concatenate((self._counts, more)), np.concatenate((self._bytes, more))
        self._resident = np.concatenate((self._resident, np.ones(wanted - before, bool)))
        self._hash_new_slots()
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
