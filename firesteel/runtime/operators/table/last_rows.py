"""The last row of each key, and what each row that comes changes about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.columns.kinds import DELETE, has_kinds
from firesteel.runtime.operators.table.accumulators import Values, numpy_of
from firesteel.runtime.operators.table.changelog import Pair, changelog, differing
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["LastRows"]

Array = npt.NDArray[Any]


class LastRows:
    """A slot for each key, with a row. All rows of a batch at once: what was before a row is the row of its key before
    it, or what the table has.

    >>> rows = LastRows(pa.schema([("word", pa.string()), ("n", pa.int64())]), (0,))
    >>> rows.replace(pa.record_batch({"word": ["a", "a"], "n": [1, 2]}), None).to_pydict()
    {'word': ['a', 'a', 'a'], 'n': [1, 1, 2], '$kind': [0, 1, 2]}
    """

    def __init__(
        self,
        schema: pa.Schema,
        keys: tuple[int, ...],
        update_before: bool = True,
        repeats: bool = False,
        time_to_live: int | None = None,
    ) -> None:
        """``repeats``: whether a row that is the same as the one before it is a change, too."""
        self._keys, self._update_before, self._repeats = keys, update_before, repeats
        self._rest = [index for index in range(len(schema)) if index not in keys]
        key_types = [schema.field(key).type for key in keys]
        self.table = SlotTable(key_types, _slot_columns(schema, self._rest), time_to_live=time_to_live)
        # Keys first, as the changelog is made; then back into the order of the columns.
        order = [*keys, *self._rest]
        self._arranged = pa.schema([schema.field(index) for index in order])
        self._back = [order.index(index) for index in range(len(schema))]

    def replace(self, batch: pa.RecordBatch, kinds: Array | None) -> pa.RecordBatch:
        """What rows change that replace those of their keys, or delete them, in their order."""
        rows, table = batch.num_rows, self.table
        keys = [batch.column(key) for key in self._keys]
        codes, distinct = distinct_keys(keys, rows)
        slots = table.slots(distinct)
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        first = np.ones(rows, bool)
        first[1:] = codes[1:] != codes[:-1]
        last = np.append(first[1:], True) if rows else first
        at = slots[codes]
        exists = np.ones(rows, bool) if kinds is None else (kinds != DELETE)[order]
        existed = np.concatenate((np.zeros(1, bool), exists[:-1]))[:rows]
        existed[first] = table.alive[at[first]]
        pairs = [self._pair(batch.column(index), order, first, at, place) for place, index in enumerate(self._rest)]
        changed = None if self._repeats else differing(pairs, rows)
        sorted_at = np.empty(rows, np.int64)
        sorted_at[order] = np.arange(rows)
        result = changelog(keys, existed, exists, changed, pairs, self._arranged, self._update_before, sorted_at)
        self._keep(pairs, at[last], exists[last], last)
        return result.select([*self._back, *([result.num_columns - 1] if has_kinds(result.schema) else [])])

    def column(self, index: int, slots: Array) -> Values:
        """One column of the rows in some slots, which is none of the key's."""
        place = 2 * self._rest.index(index)
        return Values(self.table.values[place][slots], self.table.values[place + 1][slots])

    def _pair(self, column: pa.Array, order: Array, first: Array, at: Array, place: int) -> Pair:
        """A column before and after each row, sorted by key."""
        now = numpy_of(column).map(lambda values: values[order])
        known = np.ones(len(order), bool) if now.known is None else now.known
        stored, stored_known = self.table.values[2 * place], self.table.values[2 * place + 1]
        was, was_known = np.roll(now.content, 1), np.roll(known, 1)
        was[first], was_known[first] = stored[at[first]], stored_known[at[first]]
        return Values(was, was_known), Values(now.content, known)

    def _keep(self, pairs: list[Pair], slots: Array, exists: Array, last: Array) -> None:
        table = self.table
        alive = slots[exists]
        for place, (_, after) in enumerate(pairs):
            assert after.known is not None
            table.values[2 * place][alive] = after.content[last][exists]
            table.values[2 * place + 1][alive] = after.known[last][exists]
        table.put(alive)
        table.remove(slots[~exists & table.alive[slots]])


def _slot_columns(schema: pa.Schema, kept: list[int]) -> list[SlotColumn]:
    """For each column its values, and which of them are not NULL."""
    found = []
    for index in kept:
        kind = schema.field(index).type
        sample = numpy_of(pa.array([], kind)).content.dtype
        stored: pa.DataType
        dtype: Any
        initial: Any
        if pa.types.is_decimal(kind) or sample.hasobject:
            stored, dtype, initial = _stored(kind), object, None
        else:
            stored, dtype, initial = pa.from_numpy_dtype(sample), sample, 0
        found.append(SlotColumn(f"c{index}", stored, dtype, initial))
        found.append(SlotColumn(f"n{index}", pa.bool_(), bool, False))
    return found


def _stored(kind: pa.DataType) -> pa.DataType:
    # Decimals are whole numbers of their last digit.
    return pa.decimal128(38, 0) if pa.types.is_decimal(kind) else kind
