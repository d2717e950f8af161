"""Top-N and deduplication: the first rows of each partition in an order, as a changelog.

A partition is a list in order. Of an input of insertions it is short, and rows that cannot get into a full list any
more are left out for all partitions at once, by the first column that rows are ordered by.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import zip_longest
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, data_of, kinds_of, with_kinds
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import numpy_of
from firesteel.runtime.operators.table.row_lists import Entry, RowLists, row_places, row_tuples
from firesteel.runtime.operators.table.specs import Rank
from firesteel.runtime.operators.table.top_rows import TopRows
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotTable

__all__ = ["RankOperator"]

Array = npt.NDArray[Any]


@handles(Rank)
class RankOperator(StreamOperator[Rank]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._pieces = context.pieces
        key_types = [spec.input.field(key).type for key in spec.keys]
        self._table = SlotTable(key_types, [RowLists.of(spec.input, spec.order)], time_to_live=spec.state_ttl)
        context.keep_columns("partitions", self._table, paged=bool(spec.keys))
        self._out = _Changes(spec.schema, spec.with_rank)

    def process(self, records: Records) -> None:
        if self.spec.state_ttl is not None:
            self._table.expire(self.context.timer_service().current_processing_time())
        work = self._process_changes if self.spec.retracts else self._process_insertions
        results = [
            result
            for batch in records.values
            for piece in self._pieces(batch, self.spec.keys)
            if (result := work(piece)) is not None
        ]
        if results:
            self.context.emit(results)

    def _process_insertions(self, whole: pa.RecordBatch) -> pa.RecordBatch | None:
        batch, table = data_of(whole), self._table
        codes, keys = distinct_keys([batch.column(key) for key in self.spec.keys], batch.num_rows)
        slots = table.slots(keys)
        lists = table.values[0]
        chosen = self._promising(batch, codes, lists[slots])
        if chosen is not None:
            batch, codes = batch.take(pa.array(chosen)), codes[chosen]
        if not batch.num_rows:
            return None
        top = TopRows(self.spec, batch)
        result = top.insert(slots[codes].tolist(), lists)
        table.put(np.array(top.close(lists), np.int64))
        return result

    def _process_changes(self, whole: pa.RecordBatch) -> pa.RecordBatch | None:
        spec, table = self.spec, self._table
        kinds, batch = kinds_of(whole), data_of(whole)
        if not batch.num_rows:
            return None
        codes, keys = distinct_keys([batch.column(key) for key in spec.keys], batch.num_rows)
        slots = table.slots(keys)
        lists = table.values[0]
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
        return self._out.taken()

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
        # NaN is larger than any number.
        better = content <= worst[codes] if order.ascending else ~(content < worst[codes])
        return np.flatnonzero(better | ~full[codes])

    # One row at a time, of inputs that take rows back: all rows are kept

    def _insert(self, entries: list[Entry], entry: Entry) -> None:
        spec = self.spec
        # Behind those that are equal, unless the last one wins.
        at = bisect_right(entries, entry[0], key=lambda known: known[0])
        if spec.last_wins:
            while at and entries[at - 1][0] == entry[0]:
                at -= 1
        before = entries[spec.start - 1 : spec.end]
        entries.insert(at, entry)
        if at < spec.end:
            self._emit_changes(before, entries[spec.start - 1 : spec.end])

    def _remove(self, entries: list[Entry], entry: Entry) -> None:
        spec = self.spec
        at = next((at for at, known in enumerate(entries) if known == entry), None)
        if at is None:
            return
        before = entries[spec.start - 1 : spec.end]
        del entries[at]
        if at < spec.end:
            self._emit_changes(before, entries[spec.start - 1 : spec.end])

    def _emit_changes(self, before: list[Entry], after: list[Entry]) -> None:
        """What a change of the list means for the result."""
        spec, emit = self.spec, self._out.add
        if not spec.with_rank and spec.end > 1:
            gone, come = _difference(before, after)
            for entry in gone:
                emit(DELETE, entry[1], 0)
            for entry in come:
                emit(INSERT, entry[1], 0)
            return
        rank = spec.start
        for was, now in zip_longest(before, after):
            if was is None:
                emit(INSERT, now[1], rank)
            elif now is None:
                emit(DELETE, was[1], rank)
            elif was is not now and was[1] != now[1]:
                if spec.update_before:
                    emit(UPDATE_BEFORE, was[1], rank)
                emit(UPDATE_AFTER, now[1], rank)
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
