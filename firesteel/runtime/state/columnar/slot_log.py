"""The log of a table of slots: what fits into memory is read once, and a micro-batch appends what it changed.

It writes *segments*, each an Arrow batch of keys, whether the key is alive, and values. So writing costs what the batch
touched, and reading happens only when a task starts anew. A slot's *home* is the segment that has its newest version;
the rest of a segment is waste, and known without reading it:

1. A segment that is nobody's home is deleted.
2. Where more than half of all rows are waste, or where many small segments lie around, the slots of the worst ones are
   written again with those of this batch, and those segments are deleted. A batch cleans about as much as it writes.
3. A removed key is a slot that is not alive. It is written as such as long as an older segment may still have the key,
   and forgotten afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.durable.cells import SEGMENT as NUMBER
from firesteel.durable.cells import damaged
from firesteel.runtime.columns.packing import pack, unpack
from firesteel.runtime.state.columnar.index import grown
from firesteel.runtime.state.store import StateStore

if TYPE_CHECKING:
    from firesteel.runtime.state.columnar.slots import SlotTable

__all__ = ["SlotLog", "first_segment"]

Slots = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

SEGMENT_BYTES = 1 << 20
"""About how large a segment is before it is compressed."""
SMALL = 4096
"""Rows below which a segment is small."""
PILE = 16
"""How many small segments may lie around."""
SLACK = 4096
"""Rows of waste that are never worth cleaning."""
_READ_AT_ONCE = 8


class SlotLog:
    """Where a table that is in memory is stored."""

    def __init__(self, table: SlotTable, prefix: bytes, shape: dict[str, Any]) -> None:
        self._table = table
        self._home: Array = np.full(len(table.alive), -1, np.int64)
        self.reopen(prefix, shape)

    def reopen(self, prefix: bytes, shape: dict[str, Any]) -> None:
        """Goes on in another batch."""
        self._prefix, self._shape = prefix + b"\0", shape
        self._rows: dict[int, int] = shape.setdefault("segments", {})
        self._bytes: dict[int, int] = shape.setdefault("segment bytes", {})

    def read(self, store: StateStore) -> None:
        """Fills the table with what a store has."""
        table = self._table
        for number, batch in _segments(self._prefix, store, list(self._rows)):
            if batch.schema.names != table.schema.names:
                raise damaged(self._prefix, f"its columns are {batch.schema.names}, not {table.schema.names}")
            slots = table.fill(batch)
            self._home[slots] = number

    @property
    def nbytes(self) -> int:
        return self._home.nbytes

    @property
    def cells(self) -> list[bytes]:
        """The cells that it has in the store."""
        return [self._cell(number) for number in self._rows]

    def make_room(self, size: int) -> None:
        """The table has room for so many slots now."""
        before = len(self._home)
        self._home = grown(self._home, size)
        self._home[before:] = -1

    def changes(self, changed: Slots) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn if these slots have changed."""
        table = self._table
        homes = self._home[: table.size]
        homeless = changed[homes[changed] < 0]
        # What came and went within the batch leaves no trace.
        changed = changed[table.alive[changed] | (homes[changed] >= 0)]
        former = homes[changed].copy()
        homes[changed] = -1
        valid = self._valid()
        cleaned = self._to_clean(valid, len(changed))
        if cleaned:
            flags = np.zeros(self._shape["last"] + 1, bool)
            flags[list(cleaned)] = True
            rescued = np.flatnonzero(flags[homes] & (homes >= 0))
            changed, former = np.concatenate((changed, rescued)), np.concatenate((former, homes[rescued]))
            homes[rescued] = -1
        gone = [number for number in self._rows if number in cleaned or not valid.get(number)]
        for number in gone:
            del self._rows[number]
            self._shape["bytes"] -= self._bytes.pop(number)
            yield self._cell(number), None
        oldest = min(self._rows, default=None)
        # A removed key is worth a row only where an older segment may have it.
        written = changed[table.alive[changed] | (oldest is not None and former >= (oldest or 0))]
        yield from self._append(written)
        if len(written) < len(changed) or len(homeless):
            self._compact()

    def _valid(self) -> dict[int, int]:
        """How many slots have each segment as their home."""
        homes = self._home[: self._table.size]
        counts = np.bincount(homes[homes >= 0], minlength=1)
        return {number: int(counts[number]) for number in self._rows if number < len(counts)}

    def _to_clean(self, valid: dict[int, int], writing: int) -> set[int]:
        rows = self._rows
        stored, needed = sum(rows.values()), sum(valid.values()) + writing
        small = [number for number, count in rows.items() if count < SMALL]
        chosen = set(small) if len(small) >= PILE else set()
        if stored + writing - needed > needed + SLACK:
            budget = max(writing, SMALL)
            for number in sorted(rows, key=lambda number: valid.get(number, 0) / rows[number]):
                if budget <= 0:
                    break
                chosen.add(number)
                budget -= valid.get(number, 0)
        size = self._table.size
        dead = size - self._table.entries
        if dead > size // 2 + SLACK and rows:
            chosen.add(min(rows))
        return chosen

    def _append(self, slots: Slots) -> Iterator[tuple[bytes, bytes]]:
        width = 16 + 8 * len(self._table.schema)
        step = max(SMALL, SEGMENT_BYTES // width)
        for at in range(0, len(slots), step):
            piece = slots[at : at + step]
            number = self._shape["last"] = self._shape.get("last", -1) + 1
            cell = pack(self._table.batch(piece))
            self._home[piece] = number
            self._rows[number], self._bytes[number] = len(piece), len(cell)
            self._shape["bytes"] = self._shape.get("bytes", 0) + len(cell)
            yield self._cell(number), cell

    def _compact(self) -> None:
        """Forgets slots that are neither alive nor in the store, if they are many."""
        table = self._table
        size = table.size
        kept = np.flatnonzero(table.alive[:size] | (self._home[:size] >= 0))
        if size - len(kept) <= len(kept) + SLACK:
            return
        homes = self._home[kept]
        table.keep(kept)
        self._home = np.full(len(table.alive), -1, np.int64)
        self._home[: len(kept)] = homes

    def _cell(self, number: int) -> bytes:
        return self._prefix + NUMBER.pack(number)


def _segments(prefix: bytes, store: StateStore, numbers: list[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for start in range(0, len(numbers), _READ_AT_ONCE):
        window = numbers[start : start + _READ_AT_ONCE]
        cells = store.get_many([prefix + NUMBER.pack(number) for number in window])
        for number, cell in zip(window, cells, strict=True):
            if cell is None:
                raise damaged(prefix, f"segment {number} is missing")
            try:
                yield number, unpack(cell)
            except pa.ArrowException as error:
                raise damaged(prefix, error) from error


def first_segment(prefix: bytes, store: StateStore, shape: dict[str, Any]) -> pa.RecordBatch | None:
    """The oldest segment of a stored table, which tells its columns; None of an empty one."""
    found = next(_segments(prefix + b"\0", store, list(shape.get("segments", ()))[:1]), None)
    return None if found is None else found[1]
