"""The rows of one side of a join, found by their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.state.columnar.index import grown
from firesteel.runtime.state.columnar.key_words import KeyIndex, distinct_keys
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["JoinSide"]

Array = npt.NDArray[Any]


class JoinSide:
    """A slot for each distinct row: how often it is there, and how many rows of the other side it has met.

    Rows of one key are a chain: each knows the one before it. Chains are not stored, but made anew after a restart.
    """

    def __init__(self, schema: pa.Schema, keys: tuple[int, ...], time_to_live: int | None = None) -> None:
        self._keys = keys
        self._schema = schema
        self._others = [at for at in range(len(schema)) if at not in keys]
        # A key may use a column twice.
        self._key_types = [schema.field(key).type for key in keys]
        self.table = SlotTable(
            self._key_types,
            [SlotColumn("count", pa.int64(), np.int64), SlotColumn("degree", pa.int64(), np.int64)],
            [schema.field(at).type for at in self._others],
            time_to_live,
        )
        self._generation = -1

    @property
    def counts(self) -> Array:
        return self.table.values[0]

    @property
    def degrees(self) -> Array:
        return self.table.values[1]

    def add(self, batch: pa.RecordBatch, signs: Array) -> Array:
        """Puts rows in, or takes them out. Gives the slot of each."""
        columns = [batch.column(at) for at in (*self._keys, *self._others)]
        codes, rows = distinct_keys(columns, batch.num_rows)
        slots = self.table.slots(rows)
        counts = self.counts[slots] + np.bincount(codes, weights=signs, minlength=len(slots)).astype(np.int64)
        np.maximum(counts, 0, out=counts)
        self.counts[slots] = counts
        self.table.put(slots[counts > 0])
        self.table.remove(slots[counts == 0])
        each: Array = slots[codes]
        return each

    def set_degrees(self, slots: Array, degrees: Array) -> None:
        there = self.counts[slots] > 0
        self.degrees[slots[there]] = degrees[there]
        self.table.put(slots[there])

    def matches(self, keys: Sequence[pa.Array], rows: int) -> tuple[Array, Array]:
        """For each match of rows with these keys: the place of the row, and the slot of what it matches. By row."""
        self._link()
        codes, distinct = distinct_keys(keys, rows)
        found = self._index.slots(distinct, add=False)
        at = np.where(found >= 0, self._last[found], -1)[codes]
        places: list[Array] = []
        slots: list[Array] = []
        open_ones = np.flatnonzero(at >= 0)
        at = at[open_ones]
        while len(at):
            places.append(open_ones)
            slots.append(at)
            at = self._before[at]
            further = at >= 0
            at, open_ones = at[further], open_ones[further]
        if not places:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        every, matched = np.concatenate(places), np.concatenate(slots)
        alive = self.counts[matched] > 0
        every, matched = every[alive], matched[alive]
        order = np.argsort(every, kind="stable")
        return every[order], matched[order]

    def rows(self, slots: Array) -> list[pa.Array]:
        """The columns of some rows."""
        keys = self.table.keys(slots)
        columns: list[Any] = [None] * len(self._schema)
        for at, column in zip((*self._keys, *self._others), keys, strict=True):
            columns[at] = column
        return columns

    def _link(self) -> None:
        """Puts rows that are new into the chains of their keys."""
        if self._generation != self.table.generation:
            self._generation = self.table.generation
            self._index = KeyIndex(self._key_types)
            self._last = np.full(1024, -1, np.int64)
            self._before = np.full(1024, -1, np.int64)
            self._linked = 0
        size = self.table.size
        if size == self._linked:
            return
        fresh = np.arange(self._linked, size)
        keys = self.table.keys(fresh)[: len(self._keys)]
        codes, distinct = distinct_keys(keys, len(fresh))
        owners = self._index.slots(distinct)
        self._last = _with_room(self._last, self._index.size)
        self._before = _with_room(self._before, size)
        order = np.argsort(codes, kind="stable")
        codes, rows = codes[order], fresh[order]
        first = np.ones(len(rows), bool)
        first[1:] = codes[1:] != codes[:-1]
        before = np.concatenate(([-1], rows[:-1]))
        before[first] = self._last[owners[codes[first]]]
        self._before[rows] = before
        ends = np.append(first[1:], True)
        self._last[owners[codes[ends]]] = rows[ends]
        self._linked = size


def _with_room(array: Array, size: int) -> Array:
    larger = grown(array, size)
    if larger is not array:
        larger[len(array) :] = -1
    return larger
