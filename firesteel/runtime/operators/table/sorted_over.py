"""OVER in another order than that of time: every row that comes changes the results of those behind it."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, data_of, kinds_of, with_kinds
from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import Accumulator, Rows, Values, arrow_of, numpy_of
from firesteel.runtime.operators.table.aggregate_functions import accumulator_of
from firesteel.runtime.operators.table.row_lists import Entry, RowLists, row_places, row_tuples
from firesteel.runtime.operators.table.specs import AggregateCall
from firesteel.runtime.operators.table.window_specs import SortedOver
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["SortedOverOperator"]

Array = npt.NDArray[Any]
Results = list[tuple[Any, ...]]

_BY_PLACE = ("RANK", "DENSE_RANK", "LAG")
"""Functions whose results are a matter of the row's place alone."""


@handles(SortedOver)
class SortedOverOperator(StreamOperator[SortedOver]):
    """A partition is a list in order. Rows come one by one; the results of a partition are worked out together."""

    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        key_types = [spec.input.field(key).type for key in spec.keys]
        # Results are worked out again after a restart.
        columns = [RowLists.of(spec.input, spec.order), SlotColumn("results", None, object, None)]
        self._table = SlotTable(key_types, columns)
        context.keep_columns("partitions", self._table)
        self._accumulators = {
            call: accumulator_of(call, None if call.argument is None else spec.input.field(call.argument).type, False)
            for call in spec.calls
            if call.function not in _BY_PLACE
        }
        self._out: list[tuple[int, tuple[Any, ...]]] = []

    def process(self, records: Records) -> None:
        for batch in records.values:
            if batch.num_rows:
                self._process(batch)
        if self._out:
            out, self._out = self._out, []
            columns = zip(*(row for _, row in out), strict=True)
            fields = list(self.spec.schema)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
            kinds = np.array([kind for kind, _ in out], np.int8)
            result = pa.RecordBatch.from_arrays(arrays, schema=self.spec.schema)
            self.context.emit([with_kinds(result, kinds if kinds.any() else None)])

    def _process(self, whole: pa.RecordBatch) -> None:
        spec, table = self.spec, self._table
        kinds, batch = kinds_of(whole), data_of(whole)
        codes, keys = distinct_keys([batch.column(key) for key in spec.keys], batch.num_rows)
        slots = table.slots(keys)
        lists, known = table.values
        kinds = np.zeros(batch.num_rows, np.int8) if kinds is None else kinds
        entries = zip(row_places(batch.columns, spec.order), row_tuples(batch.columns), strict=True)
        for slot, entry, kind in zip(slots[codes].tolist(), entries, kinds.tolist(), strict=True):
            if lists[slot] is None:
                lists[slot] = []
            before = known[slot] if known[slot] is not None else self._results(lists[slot])
            known[slot] = self._change(lists[slot], before, entry, kind)
        empty = np.array([not lists[slot] for slot in slots.tolist()], bool)
        table.put(slots[~empty])
        table.remove(slots[empty])

    def _change(self, entries: list[Entry], before: Results, entry: Entry, kind: int) -> Results:
        """One row comes, with the kind that it has, or goes. Gives the results after that."""
        comes = kind in (INSERT, UPDATE_AFTER)
        if comes:
            at = bisect_right(entries, entry[0], key=lambda known: known[0])
            entries.insert(at, entry)
        else:
            found = next((at for at, known in enumerate(entries) if known == entry), None)
            if found is None:
                return before
            at = found
            del entries[at]
        after = self._results(entries)
        former = iter(before)
        for place, (_, row) in enumerate(entries):
            if place == at and comes:
                self._out.append((kind, (*row, *after[place])))
                continue
            if place == at:
                self._out.append((DELETE, (*entry[1], *next(former))))
            was = next(former)
            if was != after[place]:
                self._out.append((UPDATE_BEFORE, (*row, *was)))
                self._out.append((UPDATE_AFTER, (*row, *after[place])))
        if not comes and at == len(entries):
            self._out.append((DELETE, (*entry[1], *next(former))))
        return after

    def _results(self, entries: list[Entry]) -> Results:
        """Of each row of a partition."""
        if not entries:
            return []
        count = len(entries)
        last: Array = np.array([at + 1 == count or entries[at][0] != entries[at + 1][0] for at in range(count)], bool)
        # With RANGE up to the last one of the same order.
        frame = np.arange(count) if self.spec.rows else np.flatnonzero(last)[np.cumsum(last) - last]
        segments = Segments(np.zeros(1, np.int64), count)
        columns = []
        for call in self.spec.calls:
            if call.function in _BY_PLACE:
                columns.append(_by_place(call, entries, last))
                continue
            accumulator = self._accumulators[call]
            base = [column.fresh(1) for column in accumulator.columns]
            states = accumulator.run(segments, self._rows(call, accumulator, entries), base)
            values = accumulator.result(states).map(lambda content: content[frame])
            columns.append(arrow_of(values, call.type).to_pylist())
        return list(zip(*columns, strict=True))

    def _rows(self, call: AggregateCall, accumulator: Accumulator, entries: list[Entry]) -> Rows:
        count = len(entries)
        counted = np.ones(count, bool)
        values = Values(np.zeros(count, np.int64))
        if call.argument is not None:
            at = call.argument
            given = [row[at] for _, row in entries]
            values = numpy_of(pa.array(given, self.spec.input.field(at).type))
            if values.known is not None and not accumulator.counts_nulls:
                counted = values.known.copy()
            if accumulator.plain_values:
                values = Values(np.empty(count, object))
                values.content[:] = given
            if call.distinct:
                first = {value: place for place, value in reversed(list(enumerate(given)))}
                counted &= np.array([first[value] == place for place, value in enumerate(given)], bool)
        if call.filter is not None:
            column = call.filter
            counted &= np.array([row[column] is True for _, row in entries], bool)
        return Rows(values.content, counted.astype(np.int8))


def _by_place(call: AggregateCall, entries: list[Entry], last: Array) -> list[Any]:
    """The results of one of these functions. ``last`` tells which rows are the last ones of the same order."""
    if call.function == "LAG":
        offset, default = call.options
        at = cast(int, call.argument)
        given = [row[at] for _, row in entries]
        return [given[place - offset] if place >= offset else default for place in range(len(entries))]
    ends = np.flatnonzero(last)
    before: Array = np.cumsum(last) - last
    if call.function == "RANK":
        before = np.concatenate((np.zeros(1, np.int64), ends + 1))[before]
    found: list[Any] = (before + 1).tolist()
    return found
