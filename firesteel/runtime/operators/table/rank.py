"""Top-N and deduplication: the first rows of each partition in an order, as a changelog.

A partition is a short list in order. Rows that cannot get into a full list any more are left out for all partitions at
once, by the first column that rows are ordered by; what is left is worked on row by row.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, data_of, kinds_of, with_kinds
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import numpy_of
from firesteel.runtime.operators.table.specs import Order, Rank
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["Entry", "RankOperator", "RowLists", "row_places", "row_tuples"]

Array = npt.NDArray[Any]
Entry = tuple[Any, tuple[Any, ...]]
"""What a row is ordered by, and the row."""


@dataclass(frozen=True)
class RowLists(SlotColumn):
    """Rows in order. In the store they are lists of structs; what they are ordered by is worked out again."""

    order: tuple[Order, ...] = ()

    @staticmethod
    def of(input: pa.Schema, order: tuple[Order, ...]) -> RowLists:
        """Of rows with these columns."""
        fields = [pa.field(f"c{at}", field.type) for at, field in enumerate(input)]
        return RowLists("rows", pa.list_(pa.struct(fields)), object, None, order)

    def to_arrow(self, values: Array) -> pa.Array:
        lists = values.tolist()
        fields = list(self.type.value_type)  # type: ignore[union-attr]
        rows = [row for entries in lists if entries is not None for _, row in entries]
        columns = zip(*rows, strict=True) if rows else ([] for _ in fields)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
        lengths = [0 if entries is None else len(entries) for entries in lists]
        ends = np.concatenate((np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)))
        # A list that is NULL has no place to begin.
        missing = np.array([*(entries is None for entries in lists), False], bool)
        structs = pa.StructArray.from_arrays(arrays, fields=fields)
        return pa.ListArray.from_arrays(pa.array(ends, mask=missing), structs, self.type)

    def from_arrow(self, column: pa.Array) -> Array:
        columns = column.flatten().flatten()
        entries = list(zip(row_places(columns, self.order), row_tuples(columns), strict=True))
        lists = np.empty(len(column), object)
        at = 0
        for number, length in enumerate(pc.fill_null(pc.list_value_length(column), 0).to_pylist()):
            lists[number] = entries[at : at + length] or None
            at += length
        return lists


def row_places(columns: list[pa.Array], order: tuple[Order, ...]) -> list[Any]:
    """What each row is ordered by."""
    if not order:
        # All are equal.
        return [()] * (len(columns[0]) if columns else 0)
    parts = [_ordered_by(columns[one.column], one) for one in order]
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def row_tuples(columns: list[pa.Array]) -> list[tuple[Any, ...]]:
    """Rows as Python has them."""
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


class _Descending:
    """Turns the order of values round that have no negative."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(other.value == self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _ordered_by(column: pa.Array, order: Order) -> list[Any]:
    """For each row a pair that compares as the row is to be ordered: NULL or not, and the value."""
    content, known = numpy_of(column)
    values = content.tolist()
    if not order.ascending:
        plain = content.dtype != object or pa.types.is_decimal(column.type)
        values = [-value for value in values] if plain else [_Descending(value) for value in values]
    null = 0 if order.nulls_first else 2
    if known is None:
        return [(1, value) for value in values]
    return [(1, value) if there else (null, 0) for value, there in zip(values, known.tolist(), strict=True)]


@handles(Rank)
class RankOperator(StreamOperator[Rank]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        key_types = [spec.input.field(key).type for key in spec.keys]
        self._table = SlotTable(key_types, [RowLists.of(spec.input, spec.order)], time_to_live=spec.state_ttl)
        context.keep_columns("partitions", self._table)
        self._out = _Changes(spec.schema, spec.with_rank)

    def process(self, records: Records) -> None:
        if self.spec.state_ttl is not None:
            self._table.expire(self.context.timer_service().current_processing_time())
        for batch in records.values:
            self._process(batch)
        result = self._out.taken()
        if result is not None:
            self.context.emit([result])

    def _process(self, whole: pa.RecordBatch) -> None:
        spec, table = self.spec, self._table
        kinds = kinds_of(whole) if spec.retracts else None
        batch = data_of(whole)
        codes, keys = distinct_keys([batch.column(key) for key in spec.keys], batch.num_rows)
        slots = table.slots(keys)
        lists = table.values[0]
        if kinds is None:
            chosen = self._promising(batch, codes, lists[slots])
            if chosen is not None:
                batch, codes = batch.take(pa.array(chosen)), codes[chosen]
        if not batch.num_rows:
            return
        places, rows = row_places(batch.columns, spec.order), row_tuples(batch.columns)
        signs = [True] * len(rows) if kinds is None else [kind in (INSERT, UPDATE_AFTER) for kind in kinds.tolist()]
        touched = slots[codes]
        for slot, place, row, adds in zip(touched.tolist(), places, rows, signs, strict=True):
            entries = lists[slot]
            if entries is None:
                entries = lists[slot] = []
            if adds:
                self._insert(entries, (place, row))
            else:
                self._remove(entries, (place, row))
        used = np.unique(touched)
        empty = np.array([not lists[slot] for slot in used.tolist()], bool)
        table.put(used[~empty])
        table.remove(used[empty])

    def _promising(self, batch: pa.RecordBatch, codes: Array, lists: Array) -> Array | None:
        """The rows that may get into the lists of their partitions; None: perhaps all."""
        if not self.spec.order:
            return None
        order = self.spec.order[0]
        content, known = numpy_of(batch.column(order.column))
        if content.dtype == object or known is not None:
            return None
        end = self.spec.end
        full = np.array([rows is not None and len(rows) >= end for rows in lists], bool)
        if not full.any():
            return None
        worst = np.zeros(len(lists), content.dtype)
        for at in np.flatnonzero(full).tolist():
            place = lists[at][end - 1][0]
            null, value = place if len(self.spec.order) == 1 else place[0]
            if null != 1:
                full[at] = False
            else:
                worst[at] = value if order.ascending else -value
        better = content <= worst[codes] if order.ascending else content >= worst[codes]
        return np.flatnonzero(better | ~full[codes])

    # One row at a time

    def _insert(self, entries: list[Entry], entry: Entry) -> None:
        spec = self.spec
        end = spec.end
        if len(entries) >= end and not spec.retracts and not spec.last_wins and not entry[0] < entries[-1][0]:
            return
        # Behind those that are equal, unless the last one wins.
        at = bisect_right(entries, entry[0], key=lambda known: known[0])
        if spec.last_wins:
            while at and entries[at - 1][0] == entry[0]:
                at -= 1
        if at >= end and not spec.retracts:
            return
        before = entries[spec.start - 1 : end]
        entries.insert(at, entry)
        if not spec.retracts:
            del entries[end:]
        if at < end:
            self._tell(before, entries[spec.start - 1 : end])

    def _remove(self, entries: list[Entry], entry: Entry) -> None:
        spec = self.spec
        at = next((at for at, known in enumerate(entries) if known == entry), None)
        if at is None:
            return
        before = entries[spec.start - 1 : spec.end]
        del entries[at]
        if at < spec.end:
            self._tell(before, entries[spec.start - 1 : spec.end])

    def _tell(self, before: list[Entry], after: list[Entry]) -> None:
        """What a change of the list means for the result."""
        spec, tell = self.spec, self._out.add
        if not spec.with_rank and spec.end > 1:
            gone, come = _difference(before, after)
            for entry in gone:
                tell(DELETE, entry[1], 0)
            for entry in come:
                tell(INSERT, entry[1], 0)
            return
        rank = spec.start
        for was, now in zip_longest(before, after):
            if was is None:
                tell(INSERT, now[1], rank)
            elif now is None:
                tell(DELETE, was[1], rank)
            elif was is not now and was[1] != now[1]:
                if spec.update_before:
                    tell(UPDATE_BEFORE, was[1], rank)
                tell(UPDATE_AFTER, now[1], rank)
            rank += 1


class _Changes:
    """Rows of the result, of which many are the same rows at other places: each is made into columns once."""

    def __init__(self, schema: pa.Schema, with_rank: bool) -> None:
        self._schema, self._with_rank = schema, with_rank
        self._kinds: list[int] = []
        self._rows: list[tuple[Any, ...]] = []
        self._ranks: list[int] = []

    def add(self, kind: int, row: tuple[Any, ...], rank: int) -> None:
        self._kinds.append(kind)
        self._rows.append(row)
        self._ranks.append(rank)

    def taken(self) -> pa.RecordBatch | None:
        """All of them; none are left."""
        rows, ranks, kinds = self._rows, self._ranks, np.array(self._kinds, np.int8)
        if not rows:
            return None
        self._kinds, self._rows, self._ranks = [], [], []
        different = {id(row): row for row in rows}
        numbers = {number: at for at, number in enumerate(different)}
        places = pa.array([numbers[id(row)] for row in rows])
        fields = list(self._schema)[: -1 if self._with_rank else None]
        values = zip(*different.values(), strict=True)
        columns = [pa.array(column, field.type).take(places) for column, field in zip(values, fields, strict=True)]
        if self._with_rank:
            columns.append(pa.array(ranks, self._schema.field(len(fields)).type))
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return with_kinds(batch, kinds if kinds.any() else None)


def _difference(before: list[Entry], after: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    """What one list has and the other has not. They differ in one row that came or went, and one that it moved."""
    first = 0
    while first < len(before) and first < len(after) and before[first] is after[first]:
        first += 1
    kept = {id(entry) for entry in after[first:]}
    had = {id(entry) for entry in before[first:]}
    return (
        [entry for entry in before[first:] if id(entry) not in kept],
        [entry for entry in after[first:] if id(entry) not in had],
    )
