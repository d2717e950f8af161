"""GROUP BY as a changelog: for each row what it changed in its group, as Flink gives it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import kinds_of, signs_of
from firesteel.runtime.columns.scans import Segments, sorted_by_code
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import (
    Accumulator,
    RetractingExtreme,
    Rows,
    Values,
    accumulator_of,
    numpy_of,
)
from firesteel.runtime.operators.table.changelog import changelog, differing, joined
from firesteel.runtime.operators.table.distinct import DistinctValues, floored
from firesteel.runtime.operators.table.specs import AggregateCall, GroupAggregate
from firesteel.runtime.state.columnar.index import grown
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["GroupAggregateOperator"]

Array = npt.NDArray[Any]

PIECE = 1 << 16
"""The most rows that are worked on at once: so their groups have numbers of 16 bits."""


class _Call:
    """One aggregate: where its argument is, which of the table's columns are its state."""

    def __init__(self, call: AggregateCall, spec: GroupAggregate, first: int) -> None:
        self.call = call
        self.counts_rows = call.function.upper() == "COUNT" and call.argument is None and call.filter is None
        """COUNT(*): the number of rows of the group, which is kept anyway."""
        argument = None if call.argument is None else spec.input.field(call.argument).type
        self.accumulator: Accumulator = accumulator_of(call, argument, spec.retracts)
        width = 0 if self.counts_rows else len(self.accumulator.columns)
        self.state = slice(first, first + width)
        self.distinct: DistinctValues | None = None


@handles(GroupAggregate)
class GroupAggregateOperator(StreamOperator[GroupAggregate]):
    """A slot for each group: how many rows it has, and the state of each call."""

    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        columns = [SlotColumn("rows", pa.int64(), np.int64)]
        self._calls: list[_Call] = []
        key_types = [spec.input.field(key).type for key in spec.keys]
        for number, call in enumerate(spec.calls):
            one = _Call(call, spec, len(columns))
            self._calls.append(one)
            if not one.counts_rows:
                columns += [_named(column, f"{number} {column.name}") for column in one.accumulator.columns]
            if call.argument is not None and (call.distinct or isinstance(one.accumulator, RetractingExtreme)):
                one.distinct = DistinctValues(key_types, spec.input.field(call.argument).type)
                context.keep_columns(f"distinct {number}", one.distinct.table)
        self._table = SlotTable(key_types, columns)
        context.keep_columns("groups", self._table)
        self._bundle: list[tuple[Array, Array, list[Values]]] = []
        """With mini-batch: groups that were touched, whether they existed before, and their results before."""
        self._touched = np.zeros(0, bool)

    def on_watermark(self, watermark: int) -> None:
        self._flush()

    def end_batch(self) -> None:
        self._flush()

    def process(self, records: Records) -> None:
        results = []
        for batch in records.values:
            for at in range(0, batch.num_rows, PIECE):
                result = self._process(batch.slice(at, PIECE) if batch.num_rows > PIECE else batch)
                if result is not None and result.num_rows:
                    results.append(result)
        if results:
            self.context.emit(results)

    def _process(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        spec, table = self.spec, self._table
        rows = batch.num_rows
        kinds = kinds_of(batch) if spec.retracts else None
        signs = None if kinds is None or not (kinds & 1).any() else signs_of(kinds)
        codes, keys = distinct_keys([batch.column(key) for key in spec.keys], rows)
        slots = table.slots(keys)
        order = sorted_by_code(codes, len(slots))
        # Codes are 0, 1, 2, … and each has rows, so the segments of the sorted rows are the codes.
        ends = np.cumsum(np.bincount(codes, minlength=len(slots)))
        groups = Segments(np.concatenate(([0], ends[:-1])), rows)
        if spec.mini_batch:
            self._remember(slots)
        held = table.values[0][slots]
        if signs is None:
            counts = groups.running_counts(held)
            segments, base_slots = groups, slots
        else:
            counts, ignored = floored(groups, signs[order], held)
            if ignored is not None:
                # As in Flink, nothing is taken back from a group that is not there.
                kept = np.ones(rows, bool)
                kept[order[ignored]] = False
                return self._process(batch.filter(pa.array(kept))) if kept.any() else None
            segments, base_slots = _renewed(groups, counts, slots)
        fresh = base_slots < 0
        renewed = fresh.any()
        last = groups.ends
        columns = []
        for one in self._calls:
            if one.counts_rows:
                after, before = Values(counts), Values(groups.before(counts, held))
            else:
                if isinstance(one.accumulator, RetractingExtreme):
                    self._fill_lists(one, slots)
                base = [values[base_slots] for values in table.values[one.state]]
                if renewed:
                    for values, column in zip(base, one.accumulator.columns, strict=True):
                        values[fresh] = column.initial
                states = one.accumulator.run(segments, self._rows(one, batch, order, signs, codes, keys), base)
                for values, state in zip(table.values[one.state], states, strict=True):
                    values[slots] = state[last]
                if spec.mini_batch:
                    continue
                after, begun = one.accumulator.result(states), one.accumulator.result(base)
                before = after.map(segments.before, begun)
            columns.append((before, after))
        table.values[0][slots] = left = counts[last]
        if signs is None:
            table.put(slots)
        else:
            table.put(slots[left > 0])
            table.remove(slots[left == 0])
        if spec.mini_batch:
            return None
        # Where in the sorted rows each row of the input is.
        sorted_at = np.empty(rows, np.int64)
        sorted_at[order] = np.arange(rows)
        existed = groups.before(counts, held) > 0
        exists = None if signs is None else counts > 0
        changed = None if any(one.counts_rows for one in self._calls) else differing(columns)
        arrays = [batch.column(key) for key in spec.keys]
        return changelog(arrays, existed, exists, changed, columns, spec.schema, spec.update_before, sorted_at)

    def _fill_lists(self, one: _Call, slots: Array) -> None:
        """Makes the lists of values anew where a restart has left none."""
        _, known, lists = self._table.values[one.state]
        if one.distinct is None or not any(values is None for values in lists[slots[known[slots]]]):
            return
        keys, column = one.distinct.everything()
        codes, groups = distinct_keys(keys, len(column))
        owners = self._table.slots(groups)[codes]
        lists = self._table.values[one.state][2]
        found: dict[int, list[Any]] = {}
        for slot, value in zip(owners.tolist(), numpy_of(column).content.tolist(), strict=True):
            found.setdefault(slot, []).append(value)
        for slot, values in found.items():
            values.sort()
            lists[slot] = values

    def _rows(
        self, one: _Call, batch: pa.RecordBatch, order: Array, signs: Array | None, codes: Array, keys: list[pa.Array]
    ) -> Rows:
        """What a call gets of the batch, sorted."""
        call = one.call
        if call.argument is None:
            values = Values(np.zeros(0, np.int64))
        else:
            column = batch.column(call.argument)
            values = Values(np.zeros(0, np.int64)) if call.function.upper() == "COUNT" else numpy_of(column)
            if column.null_count and values.known is None:
                values = Values(values.content, pc.is_valid(column).to_numpy(zero_copy_only=False))
        weights = signs
        if values.known is not None:
            weights = values.known.astype(np.int8) if weights is None else weights * values.known
        if call.filter is not None:
            chosen = pc.fill_null(batch.column(call.filter), False).to_numpy(zero_copy_only=False)
            weights = chosen.astype(np.int8) if weights is None else weights * chosen
        if one.distinct is not None and call.argument is not None:
            weights = one.distinct.weights(codes, keys, batch.column(call.argument), weights)
        content = values.content
        return Rows(content[order] if len(content) else content, None if weights is None else weights[order])

    # What a bundle of rows changed together, with mini-batch.

    def _remember(self, slots: Array) -> None:
        """Notes what groups are before the bundle changes them."""
        if len(self._touched) < self._table.size:
            self._touched = grown(self._touched, self._table.size)
        first = slots[~self._touched[slots]]
        if len(first):
            self._touched[first] = True
            self._bundle.append((first, self._table.alive[first], self._results(first)))

    def _results(self, slots: Array) -> list[Values]:
        values = self._table.values
        return [
            Values(values[0][slots])
            if one.counts_rows
            else one.accumulator.result([column[slots] for column in values[one.state]])
            for one in self._calls
        ]

    def _flush(self) -> None:
        if not self._bundle:
            return
        bundle, self._bundle = self._bundle, []
        slots = np.concatenate([part[0] for part in bundle])
        existed = np.concatenate([part[1] for part in bundle])
        self._touched[slots] = False
        before = [joined([part[2][n] for part in bundle]) for n in range(len(self._calls))]
        columns = list(zip(before, self._results(slots), strict=True))
        result = changelog(
            self._table.keys(slots),
            existed,
            self._table.alive[slots],
            differing(columns),
            columns,
            self.spec.schema,
            self.spec.update_before,
        )
        if result.num_rows:
            self.context.emit([result])


def _named(column: SlotColumn, name: str) -> SlotColumn:
    return type(column)(name, column.type, column.dtype, column.initial)


def _renewed(groups: Segments, counts: Array, slots: Array) -> tuple[Segments, Array]:
    """Segments that also begin behind each row that emptied its group, and the slot that each begins with: -1 where it
    begins with nothing."""
    emptied = counts == 0
    emptied[groups.ends] = False
    if not emptied.any():
        return groups, slots
    begins = np.zeros(groups.rows, bool)
    begins[groups.starts] = True
    begins[1:] |= emptied[:-1]
    starts = np.flatnonzero(begins)
    base = np.full(len(starts), -1, np.int64)
    base[np.searchsorted(starts, groups.starts)] = slots
    return Segments(starts, groups.rows), base
