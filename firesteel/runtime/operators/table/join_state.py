"""The rows of one side of a join, found by their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.operators.table.chains import Chains
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["JoinSide"]

Array = npt.NDArray[Any]


class JoinSide:
    """A slot for each distinct row: how often it is there, and how many rows of the other side it has met. Rows are
    found by their keys, and by the columns ``near`` behind them."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: tuple[int, ...],
        time_to_live: int | None = None,
        near: tuple[int, ...] = (),
    ) -> None:
        self._keys = keys
        self._schema = schema
        self._others = [*near, *(at for at in range(len(schema)) if at not in (*keys, *near))]
        # A key may use a column twice.
        self._key_types = [schema.field(key).type for key in keys]
        self.table = SlotTable(
            self._key_types,
            [SlotColumn("count", pa.int64(), np.int64), SlotColumn("degree", pa.int64(), np.int64)],
            [schema.field(at).type for at in self._others],
            time_to_live,
        )
        self._chains = Chains(self.table, [*self._key_types, *(schema.field(at).type for at in near)])

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
        places, slots = self._chains.matches(keys, rows)
        there = self.counts[slots] > 0
        return places[there], slots[there]

    def numbers(self, slots: Array, column: int) -> Array:
        """A column of some rows, which are whole numbers and never NULL; counted among those that are no keys."""
        width = len(self._keys) + len(self._others)
        return self.table.key_numbers(slots, column % width if column < 0 else len(self._keys) + column)

    def rows(self, slots: Array) -> list[pa.Array]:
        """The columns of some rows."""
        keys = self.table.keys(slots)
        columns: list[Any] = [None] * len(self._schema)
        for at, column in zip((*self._keys, *self._others), keys, strict=True):
            columns[at] = column
        return columns
