"""A table of slots: one for each key, with a place in every column.

As long as all of it fits into memory, a log in the store has what changed (:mod:`.slot_log`). A table that is too large
turns to pages (:mod:`.slot_pages`), of which memory holds those that the rows at hand belong to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.durable.headers import COLUMN_BACKENDS
from firesteel.runtime.columns.nested import from_keys, keys_of
from firesteel.runtime.state.columnar.index import grown
from firesteel.runtime.state.columnar.key_words import KeyIndex
from firesteel.runtime.state.columnar.slot_log import SlotLog, first_segment
from firesteel.runtime.state.columnar.slot_pages import SlotPages, page_schema
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.weight import mean_weight

__all__ = ["SlotColumn", "SlotTable", "Slots", "scan_slots"]

Slots = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

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


class _Index(Protocol):
    @property
    def nbytes(self) -> int: ...


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

    BACKENDS: tuple[str, ...] = COLUMN_BACKENDS

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
        self.key_width = len(key_types)
        """How many columns the key of the stream has. They are the first of a slot's key."""
        self.key_types = [*key_types, *parts]
        self._key_fields = [pa.field(f"k{n}", kind) for n, kind in enumerate(self.key_types)]
        self.stored_fields = [pa.field(column.name, column.type) for column in columns if column.type is not None]
        self.schema = pa.schema([*self._key_fields, pa.field(_ALIVE, pa.bool_()), *self.stored_fields])
        """Of a segment of the log."""
        self.indexes: list[_Index] = []
        """What finds its slots besides, and takes memory with them."""
        self._reset()
        self._stored: SlotLog | SlotPages = SlotLog(self, b"", {})

    def _reset(self) -> None:
        self.generation += 1
        self._index = KeyIndex(self.key_types)
        self.values = [column.fresh(_FIRST) for column in self.columns]
        """The columns. They are replaced when the table grows: look them up after :meth:`slots`."""
        self.alive: Array = np.zeros(_FIRST, bool)
        self.dirty: Array = np.zeros(_FIRST, bool)

    # What operators do

    @property
    def size(self) -> int:
        """How many slots there are, alive or not."""
        return self._index.size

    @property
    def entries(self) -> int:
        """How many keys have a value, in memory and elsewhere; of pages, at the end of the batch before."""
        if isinstance(self._stored, SlotPages):
            return self._stored.entries
        return int(np.count_nonzero(self.alive[: self.size]))

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory it takes. Of objects a few are weighed."""
        size = self.size
        arrays = sum(values.nbytes for values in self.values)
        objects = sum(size * mean_weight(values[:size]) for values in self.values if values.dtype == object)
        beside = self._index.nbytes + self._stored.nbytes + 2 * self.alive.nbytes
        return arrays + int(objects) + beside + sum(index.nbytes for index in self.indexes)

    def slots(self, keys: Sequence[pa.Array]) -> Slots:
        """The slots of distinct keys. New keys get slots that are not alive, with initial values."""
        found = self._index.slots(keys)
        if self._index.size > len(self.alive):
            self._grow(self._index.size)
        return found

    def _grow(self, size: int) -> None:
        before = len(self.alive)
        self.alive = grown(self.alive, size)
        self.dirty = grown(self.dirty, size)
        room = len(self.alive)
        self._stored.make_room(room)
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
        self.dirty[slots] = True
        if self.time_to_live is not None:
            self.values[-1][slots] = self._now

    def remove(self, slots: Slots) -> None:
        """These slots have no values any more."""
        self.alive[slots] = False
        self.dirty[slots] = True
        for values, column in zip(self.values, self.columns, strict=True):
            values[slots] = column.initial

    def expire(self, now: int) -> Slots:
        """Removes what was not changed for too long, at this processing time. Changes from now on are of this time.
        Gives the slots that were removed."""
        if self.time_to_live is None or now == self._now:
            return np.zeros(0, np.int64)
        self._now = now
        size = self.size
        old = np.flatnonzero(self.alive[:size] & (self.values[-1][:size] + self.time_to_live <= now))
        if len(old):
            self.remove(old)
        return old

    # Memory and store

    def attach(self, prefix: bytes, store: StateStore, shape: dict[str, Any], unchanged: bool = False) -> None:
        """Goes on with what a store has. ``unchanged`` promises that memory has just that."""
        self._place = prefix, store, shape
        if unchanged:
            self.dirty[: self.size] = False
            self._stored.reopen(prefix, shape)
            return
        self._reset()
        # What is read now has not expired yet, even if a former attempt of this batch was at the same time.
        self._now = 0
        shape["keys"] = self.key_width
        # Whether a row's place is a tuple that begins with the key, or the key alone.
        shape["places"] = self.key_width < len(self.key_types)
        if "pages" in shape:
            self._stored = SlotPages(self, prefix, shape)
        else:
            self._stored = SlotLog(self, prefix, shape)
            self._stored.read(store)

    @property
    def backend(self) -> str:
        """What the header of a store calls it."""
        return self.BACKENDS[isinstance(self._stored, SlotPages)]

    @property
    def pages(self) -> SlotPages | None:
        """The pages of a table that was too large for memory."""
        return self._stored if isinstance(self._stored, SlotPages) else None

    def turn_to_pages(self) -> list[bytes]:
        """Has pages from now on, all of which are in memory and yet to be written. Gives the cells of the log, which
        nobody needs any more."""
        assert isinstance(self._stored, SlotLog)
        cells = self._stored.cells
        prefix, _, shape = self._place
        for name in ("segments", "segment bytes", "bytes", "last"):
            shape.pop(name, None)
        self._stored = SlotPages(self, prefix, shape)
        self._stored.adopt()
        return cells

    def load(self, hashes: Array) -> None:
        """Makes sure that keys of the stream with these hashes are in memory, if anything of them is stored."""
        if isinstance(self._stored, SlotPages):
            self._stored.load(hashes, self._place[1])

    def release(self) -> None:
        """Forgets what memory holds of pages. Only after :meth:`changes`; slots are others afterwards."""
        if isinstance(self._stored, SlotPages):
            self._reset()
            self._stored.release()

    def fill(self, batch: pa.RecordBatch) -> Slots:
        """Takes a stored segment."""
        width = len(self.key_types)
        columns = batch.columns
        slots = self.slots(columns[:width])
        self.alive[slots] = columns[width].to_numpy(zero_copy_only=False)
        self.set_values(slots, columns[width + 1 :])
        return slots

    def set_values(self, slots: Slots, columns: Sequence[pa.Array]) -> None:
        """Gives slots what was stored of them."""
        for (values, column), stored in zip(self._stored_values(), columns, strict=True):
            values[slots] = column.from_arrow(stored)

    def forget_expired(self, slots: Slots) -> None:
        """Removes those of some slots that have come from the store and were not changed for too long."""
        if self.time_to_live is not None and len(slots):
            self.remove(slots[self.values[-1][slots] + self.time_to_live <= self._now])

    def _stored_values(self) -> list[tuple[Array, SlotColumn]]:
        pairs = zip(self.values, self.columns, strict=True)
        return [(values, column) for values, column in pairs if column.type is not None]

    def take_rows(self, keys: Sequence[Any], contents: Sequence[Any]) -> None:
        """Takes keys, and for each a tuple of values, as :func:`scan_slots` gives them: from a savepoint."""
        if self.key_width < len(self.key_types):
            parts = [(*_as_tuple(key, self.key_width), *rest) for key, *rest in keys]
        else:
            parts = [_as_tuple(key, self.key_width) for key in keys]
        rows = [(*key, True, *content) for key, content in zip(parts, contents, strict=True)]
        columns = [list(column) for column in zip(*rows, strict=True)]
        for at, kind in enumerate(self.key_types):
            columns[at] = from_keys(columns[at], kind)
        columns = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        self.dirty[self.fill(pa.RecordBatch.from_arrays(columns, schema=self.schema))] = True

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """What the store must learn. Memory and store agree afterwards."""
        size = self.size
        changed = np.flatnonzero(self.dirty[:size])
        if not len(changed):
            return
        if isinstance(self._stored, SlotPages):
            yield from self._stored.changes(changed, self._place[1])
            return
        self.dirty[:size] = False
        yield from self._stored.changes(changed)

    def batch(self, slots: Slots) -> pa.RecordBatch:
        """Some slots as a segment has them."""
        arrays = [*self._index.keys(slots), pa.array(self.alive[slots]), *self.stored_columns(slots)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def stored_columns(self, slots: Slots) -> list[pa.Array]:
        """The values of some slots as they are stored."""
        return [column.to_arrow(values[slots]) for values, column in self._stored_values()]

    def keep(self, kept: Slots) -> None:
        """Forgets all other slots. These get new numbers 0, 1, 2, …"""
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
        self.dirty = np.zeros(room, bool)

    def rows(self) -> Iterator[tuple[list[Any], list[Any]]]:
        """The keys in memory that are alive and the tuples of their values, some at a time."""
        alive = np.flatnonzero(self.alive[: self.size])
        for at in range(0, len(alive), _FIRST):
            piece = alive[at : at + _FIRST]
            keys = [column.to_pylist() for column in self._index.keys(piece)]
            values = [column.to_pylist() for column in self.stored_columns(piece)]
            yield self._as_rows(keys, values, len(piece))

    def _as_rows(self, keys: list[list[Any]], values: list[list[Any]], count: int) -> tuple[list[Any], list[Any]]:
        for number, kind in enumerate(self.key_types):
            # A savepoint's rows are found by their keys.
            keys[number] = keys_of(keys[number], kind)
        found = _keys(keys[: self.key_width], count)
        if self.key_width < len(self.key_types):
            found = list(zip(found, *keys[self.key_width :], strict=True))
        return found, list(zip(*values, strict=True)) or [()] * count


def _keys(columns: list[list[Any]], count: int) -> list[Any]:
    """Keys as the engine knows them: a value, or a tuple of several."""
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)) or [()] * count


def _as_tuple(key: Any, width: int) -> tuple[Any, ...]:
    return (key,) if width == 1 else tuple(key)


def scan_slots(prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """All keys that a stored table has, with tuples of their values, without the program that wrote it."""
    if "pages" in shape:
        fields = list(page_schema(shape))
        width = [field.name for field in fields].index("$hash")
    else:
        first = first_segment(prefix, store, shape)
        if first is None:
            return
        fields = list(first.schema)
        width = first.schema.names.index(_ALIVE)
    columns = [SlotColumn(field.name, field.type, object, None) for field in fields[width + 1 :]]
    types = [field.type for field in fields[:width]]
    table = SlotTable(types[: shape["keys"]], columns, types[shape["keys"] :])
    table.attach(prefix, store, dict(shape))
    if table.pages is None:
        yield from table.rows()
        return
    for _ in table.pages.walk(store):
        yield from table.rows()
        table.release()
