"""Brings what is stored of the rows at hand into memory, piece by piece, where the tables of an operator are too large.

Where a batch needs more pages than memory holds, its rows are taken apart by their pages: so each page is read and
written once, and not once for each row. Rows of one key stay together and in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.columns.routing import row_hashes
from firesteel.runtime.state.columnar.slot_pages import mixed
from firesteel.runtime.state.columnar.slots import SlotTable
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import ColumnTable

__all__ = ["SlotPager"]

_STORED_TO_HELD = 4
"""How many times the bytes in the store a slot takes in memory, as long as nothing better is known."""


class SlotPager:
    """The tables of one operator, all of which are keyed by the key of the stream.

    >>> from firesteel.runtime.state.columnar.slots import SlotColumn
    >>> from firesteel.runtime.state.store import MemoryStore
    >>> table, store = SlotTable([pa.int64()], [SlotColumn("seen", pa.bool_(), bool)]), MemoryStore()
    >>> table.attach(b"t", store, {})
    >>> pager = SlotPager(memory=1)
    >>> pager.add(table)
    >>> rows = pa.record_batch({"n": range(100_000)})
    >>> for piece in pager.pieces(rows, [rows.column(0)], store):
    ...     table.put(table.slots([piece.column(0)]))
    >>> store.write(pager.changes())
    >>> table.entries, table.size, table.pages.count
    (100000, 0, 196)
    >>> sum(piece.num_rows for piece in pager.pieces(rows, [rows.column(0)], store))
    100000
    """

    def __init__(self, memory: int | None) -> None:
        """``memory``: how many bytes they may take together; None: as many as there are."""
        self._tables: list[SlotTable] = []
        self._memory = None if memory is None else max(memory, 1)
        self._widths: dict[int, float] = {}
        """By table, how many bytes of memory a slot takes."""

    def add(self, table: ColumnTable) -> None:
        """One more table."""
        assert isinstance(table, SlotTable), "other tables have no pages"
        self._tables.append(table)

    @property
    def _crowded(self) -> bool:
        return self._memory is not None and sum(table.nbytes for table in self._tables) > self._memory

    def pieces(
        self,
        batch: pa.RecordBatch,
        keys: Sequence[pa.Array],
        store: StateStore,
        before_release: Callable[[], None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a batch, as many at a time as the memory allows, each time with all that is stored of them in
        the tables. ``before_release`` is called before slots become others."""
        if self._crowded:
            self._relieve(store, before_release)
        if all(table.pages is None for table in self._tables):
            yield batch
            return
        hashes = row_hashes(keys, batch.num_rows)
        pieces = self._wanted_pieces(hashes)
        if pieces == 1:
            yield self._loaded(batch, hashes, store, before_release)
            return
        numbers = mixed(hashes) & (pieces - 1)
        for number in np.unique(numbers).tolist():
            rows = np.flatnonzero(numbers == number)
            yield self._loaded(batch.take(pa.array(rows)), hashes[rows], store, before_release)

    def _loaded(
        self,
        batch: pa.RecordBatch,
        hashes: npt.NDArray[Any],
        store: StateStore,
        before_release: Callable[[], None] | None,
    ) -> pa.RecordBatch:
        if self._memory is not None:
            held = sum(table.nbytes for table in self._tables)
            if held + self._needed(hashes) > self._memory:
                self._relieve(store, before_release)
        for table in self._tables:
            table.load(hashes)
        return batch

    def _wanted_pieces(self, hashes: npt.NDArray[Any]) -> int:
        """As many as are needed for what a piece needs to take half of the memory: a power of two, so that the rows of
        a piece share the lowest bits of the number of their page; not more than there are pages, none of which is read
        for two pieces then."""
        if self._memory is None:
            return 1
        wanted = 2 * self._needed(hashes) / self._memory
        most = max(table.pages.count for table in self._tables if table.pages is not None)
        pieces = 1
        while pieces < wanted and 2 * pieces <= most:
            pieces *= 2
        return pieces

    def _needed(self, hashes: npt.NDArray[Any]) -> float:
        """About how many bytes the pages of these rows take that are not in memory."""
        needed = 0.0
        for at, table in enumerate(self._tables):
            pages = table.pages
            if pages is not None and pages.entries:
                width = self._widths.get(at) or _STORED_TO_HELD * pages.stored_bytes / pages.entries
                needed += len(pages.missing(hashes)) * width * pages.entries / pages.count
        return needed

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn at the end of a batch. Memory lets go of pages where it is short."""
        crowded = self._crowded
        for table in self._tables:
            if crowded and table.pages is None:
                for cell in table.turn_to_pages():
                    yield cell, None
            yield from table.changes()
        if crowded:
            self._release()

    def make_room(self, store: StateStore) -> None:
        """Where rows come from elsewhere than a batch."""
        if self._crowded:
            self._relieve(store, None)

    def _relieve(self, store: StateStore, before_release: Callable[[], None] | None) -> None:
        """In the middle of a batch: the store takes part of it only if all of the batch succeeds."""
        if before_release is not None:
            before_release()
        for table in self._tables:
            cells = table.turn_to_pages() if table.pages is None else []
            store.write((cell, None) for cell in cells)
            store.write(table.changes())
        self._release()

    def _release(self) -> None:
        for at, table in enumerate(self._tables):
            if table.size > 1000:
                self._widths[at] = table.nbytes / table.size
            table.release()
