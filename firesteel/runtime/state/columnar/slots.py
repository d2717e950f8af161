"""A table of slots: one for each key, with a place in every column; a log of what changed in the store.

A micro-batch appends the slots that it changed as *segments*, each an Arrow batch of keys, whether the key is alive,
and values. So writing costs what the batch touched, and reading happens only when a task starts anew. A slot's *home*
is the segment that has its newest version; the rest of a segment is waste, and known without reading it:

1. A segment that is nobody's home is deleted.
2. Where more than half of all rows are waste, or where many small segments lie around, the slots of the worst ones are
   written again with those of this batch, and those segments are deleted. A batch cleans about as much as it writes.
3. A removed key is a slot that is not alive. It is written as such as long as an older segment may still have the key,
   and forgotten afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.durable.cells import SEGMENT as NUMBER
from firesteel.durable.cells import damaged
from firesteel.runtime.columns.nested import from_plain, is_nested, plain
from firesteel.runtime.columns.packing import pack, unpack
from firesteel.runtime.state.columnar.index import grown
from firesteel.runtime.state.columnar.key_words import KeyIndex
from firesteel.runtime.state.store import StateStore

__all__ = ["SlotColumn", "SlotTable", "Slots", "scan_slots"]

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
_ALIVE = "$alive"
_FIRST = 1024


@dataclass(frozen=True)
class SlotColumn:
    """One column of a slot table."""

    name: str
    type: pa.DataType | None
    """None: it is not stored, and has initial values after a restart."""
    dtype: Any
    """Of the array in memory: a number, or ``object``."""
    initial: Any = 0

    def fresh(self, size: int) -> Array:
        return np.full(size, self.initial, self.dtype)

    def to_arrow(self, values: Array) -> pa.Array:
        return pa.array(values, self.type)

    def from_arrow(self, column: pa.Array) -> Array:
        if self.dtype is object:
            values = np.empty(len(column), object)
            values[:] = column.to_pylist()
            return values
        found: Array = column.to_numpy(zero_copy_only=False).astype(self.dtype, copy=False)
        return found


class SlotTable:
    """
    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store, shape = MemoryStore(), {}
    >>> table = SlotTable([pa.string()], [SlotColumn("count", pa.int64(), np.int64)])
    >>> table.attach(b"counts", store, shape)
    >>> slots = table.slots([pa.array(["a", "b"])])
    >>> table.values[0][slots] += [3, 4]
    >>> table.put(slots)
    >>> store.write(table.changes())
    >>> again = SlotTable([pa.string()], table.columns)
    >>> again.attach(b"counts", store, shape)
    >>> again.values[0][again.slots([pa.array(["b"])])].tolist()
    [4]
    """

    BACKEND = "columnar"
    """What the header of a store calls it."""

    def __init__(
        self,
        key_types: Sequence[pa.DataType],
        columns: Sequence[SlotColumn],
        parts: Sequence[pa.DataType] = (),
        time_to_live: int | None = None,
    ) -> None:
        """``parts``: what a slot belongs to besides the key that the stream is keyed by. A slot's key then is the
        stream's key and these. ``time_to_live``: milliseconds after its last change at which a slot expires."""
        self.time_to_live = time_to_live
        self._now = 0
        if time_to_live is not None:
            columns = [*columns, SlotColumn("$used", pa.int64(), np.int64)]
        self.columns = tuple(columns)
        self.generation = 0
        """Another number after the slots were renumbered."""
        self._key_width = len(key_types)
        key_types = [*key_types, *parts]
        self._key_types = key_types
        self._schema = pa.schema(
            [
                *(pa.field(f"k{n}", kind) for n, kind in enumerate(key_types)),
                pa.field(_ALIVE, pa.bool_()),
                *(pa.field(column.name, column.type) for column in columns if column.type is not None),
            ]
        )
        self._reset()

    def _reset(self) -> None:
        self.generation += 1
        self._index = KeyIndex(self._key_types)
        self.values = [column.fresh(_FIRST) for column in self.columns]
        """The columns. They are replaced when the table grows: look them up after :meth:`slots`."""
        self.alive: Array = np.zeros(_FIRST, bool)
        self._dirty: Array = np.zeros(_FIRST, bool)
        self._home: Array = np.full(_FIRST, -1, np.int64)

    # What operators do

    @property
    def size(self) -> int:
        """How many slots there are, alive or not."""
        return self._index.size

    @property
    def entries(self) -> int:
        return int(np.count_nonzero(self.alive[: self.size]))

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory it takes. An object counts as 64."""
        arrays = sum(values.nbytes * (8 if values.dtype == object else 1) for values in self.values)
        return arrays + self._index.nbytes + self._home.nbytes + 2 * self.alive.nbytes

    def slots(self, keys: Sequence[pa.Array]) -> Slots:
        """The slots of distinct keys. New keys get slots that are not alive, with initial values."""
        found = self._index.slots(keys)
        if self._index.size > len(self.alive):
            self._grow(self._index.size)
        return found

    def _grow(self, size: int) -> None:
        before = len(self.alive)
        self.alive = grown(self.alive, size)
        self._dirty = grown(self._dirty, size)
        self._home = grown(self._home, size)
        self._home[before:] = -1
        room = len(self.alive)
        self.values = [
            np.concatenate((values, column.fresh(room - before)))
            for values, column in zip(self.values, self.columns, strict=True)
        ]

    def keys(self, slots: Slots) -> list[pa.Array]:
        """The keys of some slots, column by column."""
        return self._index.keys(slots)

    def key_numbers(self, slots: Slots, column: int) -> Array:
        """One column of the keys, which are whole numbers and never NULL."""
        return self._index.words(slots, column)

    def put(self, slots: Slots) -> None:
        """These slots have values, which may have changed."""
        self.alive[slots] = True
        self._dirty[slots] = True
        if self.time_to_live is not None:
            self.values[-1][slots] = self._now

    def remove(self, slots: Slots) -> None:
        """These slots have no values any more."""
        self.alive[slots] = False
        self._dirty[slots] = True
        for values, column in zip(self.values, self.columns, strict=True):
            values[slots] = column.initial

    def expire(self, now: int) -> None:
        """Removes what was not changed for too long, at this processing time. Changes from now on are of this time."""
        if self.time_to_live is None or now == self._now:
            return
        self._now = now
        size = self.size
        old = self.alive[:size] & (self.values[-1][:size] + self.time_to_live <= now)
        if old.any():
            self.remove(np.flatnonzero(old))

    # Reading

    def attach(self, prefix: bytes, store: StateStore, shape: dict[str, Any], unchanged: bool = False) -> None:
        """Goes on with what a store has. ``unchanged`` promises that memory has just that."""
        self._prefix, self._shape = prefix + b"\0", shape
        self._rows: dict[int, int] = shape.setdefault("segments", {})
        self._bytes: dict[int, int] = shape.setdefault("segment bytes", {})
        if unchanged:
            self._dirty[: self.size] = False
            return
        self._reset()
        shape["keys"] = self._key_width
        # Whether a row's place is a tuple that begins with the key, or the key alone.
        shape["places"] = self._key_width < len(self._key_types)
        for number, batch in _segments(self._prefix, store, list(self._rows)):
            if batch.schema.names != self._schema.names:
                raise damaged(prefix, f"its columns are {batch.schema.names}, not {self._schema.names}")
            slots = self._load(batch)
            self._home[slots] = number

    def _load(self, batch: pa.RecordBatch) -> Slots:
        width = len(self._key_types)
        columns = batch.columns
        slots = self.slots(columns[:width])
        self.alive[slots] = columns[width].to_numpy(zero_copy_only=False)
        for (values, column), stored in zip(self._stored(), columns[width + 1 :], strict=True):
            values[slots] = column.from_arrow(stored)
        return slots

    def _stored(self) -> list[tuple[Array, SlotColumn]]:
        pairs = zip(self.values, self.columns, strict=True)
        return [(values, column) for values, column in pairs if column.type is not None]

    def take_rows(self, keys: Sequence[Any], contents: Sequence[Any]) -> None:
        """Takes keys, and for each a tuple of values, as :func:`scan_slots` gives them: from a savepoint."""
        if self._key_width < len(self._key_types):
            parts = [(*_as_tuple(key, self._key_width), *rest) for key, *rest in keys]
        else:
            parts = [_as_tuple(key, self._key_width) for key in keys]
        rows = [(*key, True, *content) for key, content in zip(parts, contents, strict=True)]
        columns = [list(column) for column in zip(*rows, strict=True)]
        for at, kind in enumerate(self._key_types):
            if is_nested(kind):
                columns[at] = [from_plain(value, kind) for value in columns[at]]
        columns = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._dirty[self._load(pa.RecordBatch.from_arrays(columns, schema=self._schema))] = True

    # Writing

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn. Memory and store agree afterwards."""
        size = self.size
        changed = np.flatnonzero(self._dirty[:size])
        if not len(changed):
            return
        self._dirty[:size] = False
        homes = self._home[:size]
        homeless = changed[homes[changed] < 0]
        # What came and went within the batch leaves no trace.
        changed = changed[self.alive[changed] | (homes[changed] >= 0)]
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
        written = changed[self.alive[changed] | (oldest is not None and former >= (oldest or 0))]
        yield from self._append(written)
        if len(written) < len(changed) or len(homeless):
            self._compact()

    def _valid(self) -> dict[int, int]:
        """How many slots have each segment as their home."""
        homes = self._home[: self.size]
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
        dead = self.size - self.entries
        if dead > self.size // 2 + SLACK and rows:
            chosen.add(min(rows))
        return chosen

    def _append(self, slots: Slots) -> Iterator[tuple[bytes, bytes]]:
        width = 16 + 8 * len(self._schema)
        step = max(SMALL, SEGMENT_BYTES // width)
        for at in range(0, len(slots), step):
            piece = slots[at : at + step]
            number = self._shape["last"] = self._shape.get("last", -1) + 1
            cell = pack(self._batch(piece))
            self._home[piece] = number
            self._rows[number], self._bytes[number] = len(piece), len(cell)
            self._shape["bytes"] = self._shape.get("bytes", 0) + len(cell)
            yield self._cell(number), cell

    def _batch(self, slots: Slots) -> pa.RecordBatch:
        columns = [column.to_arrow(values[slots]) for values, column in self._stored()]
        return pa.RecordBatch.from_arrays(
            [*self._index.keys(slots), pa.array(self.alive[slots]), *columns], schema=self._schema
        )

    def _compact(self) -> None:
        """Forgets slots that are neither alive nor in the store, if they are many."""
        size = self.size
        kept = np.flatnonzero(self.alive[:size] | (self._home[:size] >= 0))
        if size - len(kept) <= len(kept) + SLACK:
            return
        self.generation += 1
        self._index.keep(kept)
        room = max(_FIRST, len(kept))

        def moved(values: Array, fresh: Array) -> Array:
            fresh[: len(kept)] = values[kept]
            return fresh

        self.values = [
            moved(values, column.fresh(room)) for values, column in zip(self.values, self.columns, strict=True)
        ]
        self.alive = moved(self.alive, np.zeros(room, bool))
        self._home = moved(self._home, np.full(room, -1, np.int64))
        self._dirty = np.zeros(room, bool)

    def _cell(self, number: int) -> bytes:
        return self._prefix + NUMBER.pack(number)

    def rows(self) -> Iterator[tuple[list[Any], list[Any]]]:
        """The keys that are alive and the tuples of their values, some at a time."""
        alive = np.flatnonzero(self.alive[: self.size])
        width = len(self._key_types)
        for at in range(0, len(alive), _FIRST):
            columns = [column.to_pylist() for column in self._batch(alive[at : at + _FIRST]).columns]
            for number, kind in enumerate(self._key_types):
                if is_nested(kind):
                    # A savepoint's rows are found by their keys.
                    columns[number] = list(map(plain, columns[number]))
            count = len(columns[width])
            keys = _keys(columns[: self._key_width], count)
            if self._key_width < width:
                keys = list(zip(keys, *columns[self._key_width : width], strict=True))
            yield keys, list(zip(*columns[width + 1 :], strict=True)) or [()] * count


def _keys(columns: list[list[Any]], count: int) -> list[Any]:
    """Keys as the engine knows them: a value, or a tuple of several."""
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)) or [()] * count


def _as_tuple(key: Any, width: int) -> tuple[Any, ...]:
    return (key,) if width == 1 else tuple(key)


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


def scan_slots(prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """All keys that a stored table has, with tuples of their values, without the program that wrote it."""
    first = next(_segments(prefix + b"\0", store, list(shape.get("segments", ()))[:1]), None)
    if first is None:
        return iter(())
    fields = list(first[1].schema)
    width = first[1].schema.names.index(_ALIVE)
    columns = [SlotColumn(field.name, field.type, object, None) for field in fields[width + 1 :]]
    types = [field.type for field in fields[:width]]
    table = SlotTable(types[: shape["keys"]], columns, types[shape["keys"] :])
    table.attach(prefix, store, dict(shape))
    return table.rows()
