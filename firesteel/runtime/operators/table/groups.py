"""Groups of rows and the state of their aggregates: what GROUP BY and windows share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.runtime.columns.kinds import kinds_of, signs_of
from firesteel.runtime.columns.scans import Segments, sorted_by_code
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import (
    Accumulator,
    RetractingExtreme,
    Rows,
    Values,
    numpy_of,
)
from firesteel.runtime.operators.table.aggregate_functions import accumulator_of
from firesteel.runtime.operators.table.distinct import DistinctValues, floored
from firesteel.runtime.operators.table.specs import AggregateCall
from firesteel.runtime.operators.table.user_accumulators import objects, user_accumulator
from firesteel.runtime.operators.table.user_functions import UserFunctions
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["PIECE", "Advance", "Events", "Groups"]

Array = npt.NDArray[Any]

PIECE = 1 << 16
"""The most rows that are worked on at once: so their groups have numbers of 16 bits."""


class Advance(NamedTuple):
    """What the rows of a batch did to their groups. Arrays of rows are sorted by group."""

    order: Array
    """The places of the sorted rows in the batch."""
    existed: Array
    """Whether the group of a row was there before it."""
    exists: Array | None
    """And after it; None: always."""
    results: list[tuple[Values, Values]]
    """Of each call before and after each row; nothing if they were not asked for."""
    batch: pa.RecordBatch
    """The rows, less those that took something back from groups that were not there."""


class Events(NamedTuple):
    """Rows that come into the frames of their groups, or leave them, sorted by group."""

    batch: pa.RecordBatch
    signs: Array | None
    """-1 where a row leaves; None: all come."""
    segments: Segments
    slots: Array
    """Of each segment."""
    keys: list[pa.Array]
    """Of each segment, column by column."""


class _Call:
    """One aggregate: where its argument is, which of the table's columns are its state."""

    def __init__(self, call: AggregateCall, input: pa.Schema, retracts: bool, first: int) -> None:
        self.call = call
        self.counts_rows = (
            call.user is None and call.function.upper() == "COUNT" and call.argument is None and call.filter is None
        )
        """COUNT(*): the number of rows of the group, which is kept anyway."""
        argument = None if call.argument is None else input.field(call.argument).type
        self.accumulator: Accumulator = (
            accumulator_of(call, argument, retracts) if call.user is None else user_accumulator(call.user)
        )
        width = 0 if self.counts_rows else len(self.accumulator.columns)
        self.state = slice(first, first + width)
        self.distinct: DistinctValues | None = None


class Groups:
    """A slot for each group: how many rows it has, and the state of each call."""

    def __init__(
        self,
        context: OperatorContext,
        key_types: Sequence[pa.DataType],
        calls: Sequence[AggregateCall],
        input: pa.Schema,
        retracts: bool,
        parts: Sequence[pa.DataType] = (),
        time_to_live: int | None = None,
        extra: Sequence[SlotColumn] = (),
        paged: bool = False,
    ) -> None:
        """``parts``: what a group is known by besides the key of the stream. ``extra``: columns behind the others.
        ``paged``: not all groups need be in memory, because the operator asks for pieces of what it gets."""
        self._retracts = retracts
        columns = [SlotColumn("rows", pa.int64(), np.int64)]
        self.calls: list[_Call] = []
        for number, call in enumerate(calls):
            one = _Call(call, input, retracts, len(columns))
            self.calls.append(one)
            if not one.counts_rows:
                columns += [_named(column, f"{number} {column.name}") for column in one.accumulator.columns]
            if call.argument is not None and (call.distinct or isinstance(one.accumulator, RetractingExtreme)):
                one.distinct = DistinctValues(key_types, [*parts, input.field(call.argument).type], time_to_live)
                context.keep_columns(f"distinct {number}", one.distinct.table, paged)
        self._functions = UserFunctions((call.user for call in calls), context)
        self.table = SlotTable(key_types, [*columns, *extra], parts, time_to_live)
        context.keep_columns("groups", self.table, paged)

    def close(self) -> None:
        """Closes users' functions."""
        self._functions.close()

    def expire(self, now: int) -> None:
        """Forgets groups, and values of them, that were not changed for too long."""
        self.table.expire(now)
        for one in self.calls:
            if one.distinct is None:
                continue
            gone = one.distinct.table.expire(now)
            if len(gone) and isinstance(one.accumulator, RetractingExtreme):
                self._forget_lists(one, one.distinct.groups_of(gone))

    def results(self, slots: Array) -> list[Values]:
        """Of each call in some groups."""
        values = self.table.values
        return [
            Values(values[0][slots])
            if one.counts_rows
            else one.accumulator.result([column[slots] for column in values[one.state]])
            for one in self.calls
        ]

    def advance(
        self,
        batch: pa.RecordBatch,
        key_columns: Sequence[pa.Array],
        with_results: bool,
        touch: Callable[[Array], None] | None = None,
    ) -> Advance | None:
        """Takes rows. ``touch`` gets the slots before they are changed. None: nothing happened."""
        table = self.table
        rows = batch.num_rows
        kinds = kinds_of(batch) if self._retracts else None
        signs = None if kinds is None or not (kinds & 1).any() else signs_of(kinds)
        codes, keys = distinct_keys(key_columns, rows)
        slots = table.slots(keys)
        order = sorted_by_code(codes, len(slots))
        # Codes are 0, 1, 2, … and each has rows, so the segments of the sorted rows are the codes.
        ends = np.cumsum(np.bincount(codes, minlength=len(slots)))
        groups = Segments(np.concatenate(([0], ends[:-1])), rows)
        stored = table.values[0][slots]
        if signs is None:
            counts = groups.running_counts(stored)
            segments, base_slots = groups, slots
        else:
            counts, ignored = floored(groups, signs[order], stored)
            if ignored is not None:
                # As in Flink, nothing is taken back from a group that is not there.
                kept = np.ones(rows, bool)
                kept[order[ignored]] = False
                if not kept.any():
                    return None
                mask = pa.array(kept)
                return self.advance(batch.filter(mask), [key.filter(mask) for key in key_columns], with_results, touch)
            segments, base_slots = _renewed(groups, counts, slots)
        if touch is not None:
            touch(slots)
        fresh = base_slots < 0
        renewed = fresh.any()
        last = groups.ends
        before_counts = groups.before(counts, stored)
        results = []
        for one in self.calls:
            if one.counts_rows:
                after, before = Values(counts), Values(before_counts)
            else:
                if isinstance(one.accumulator, RetractingExtreme):
                    self._fill_lists(one, slots)
                base = [values[base_slots] for values in table.values[one.state]]
                if renewed:
                    for values, column in zip(base, one.accumulator.columns, strict=True):
                        values[fresh] = column.initial
                one.accumulator.eager = with_results
                states = one.accumulator.run(segments, self._rows(one, batch, order, signs, codes, keys), base)
                for values, state in zip(table.values[one.state], states, strict=True):
                    values[slots] = state[last]
                if not with_results:
                    continue
                after, begun = one.accumulator.result(states), one.accumulator.result(base)
                before = after.map(segments.before, begun)
            results.append((before, after))
        table.values[0][slots] = left = counts[last]
        if signs is None:
            table.put(slots)
        else:
            table.put(slots[left > 0])
            table.remove(slots[left == 0])
        return Advance(order, before_counts > 0, None if signs is None else counts > 0, results, batch)

    def follow(self, events: Events) -> list[Values]:
        """Takes rows that come into frames and leave them, and gives the results after each. Unlike groups, a frame
        that is empty for a moment goes on with the state that it has."""
        table, slots, segments, signs = self.table, events.slots, events.segments, events.signs
        stored = table.values[0][slots]
        counts = (
            segments.running_counts(stored) if signs is None else segments.running_sums(signs.astype(np.int64), stored)
        )
        in_order = np.arange(segments.rows)
        codes = segments.numbers
        results = []
        for one in self.calls:
            if one.counts_rows:
                results.append(Values(counts))
                continue
            if isinstance(one.accumulator, RetractingExtreme):
                self._fill_lists(one, slots)
            base = [values[slots] for values in table.values[one.state]]
            rows = self._rows(one, events.batch, in_order, signs, codes, events.keys)
            states = one.accumulator.run(segments, rows, base)
            for values, state in zip(table.values[one.state], states, strict=True):
                values[slots] = state[segments.ends]
            results.append(one.accumulator.result(states))
        table.values[0][slots] = counts[segments.ends]
        table.put(slots)
        return results

    def _fill_lists(self, one: _Call, slots: Array) -> None:
        """Makes the lists of values anew where they came from the store, which has none."""
        _, known, lists = self.table.values[one.state]
        if one.distinct is None:
            return
        bare = np.array([there and values is None for there, values in zip(known[slots], lists[slots], strict=True)])
        slots = slots[np.flatnonzero(bare)]
        if not len(slots):
            return
        owners, column = one.distinct.values_of(self.table.keys(slots), len(slots))
        found: dict[int, list[Any]] = {slot: [] for slot in slots.tolist()}
        for slot, value in zip(slots[owners].tolist(), numpy_of(column).content.tolist(), strict=True):
            found[slot].append(value)
        for slot, values in found.items():
            values.sort()
            lists[slot] = values

    def _forget_lists(self, one: _Call, groups: list[pa.Array]) -> None:
        """Of groups that have lost values by their age. Their lists are made of the rest then, as after a restart."""
        slots = self.table.slots(distinct_keys(groups, len(groups[0]))[1]) if groups else np.zeros(1, np.int64)
        self.table.values[one.state][2][slots] = None

    def _rows(
        self, one: _Call, batch: pa.RecordBatch, order: Array, signs: Array | None, codes: Array, keys: list[pa.Array]
    ) -> Rows:
        """What a call gets of the batch, sorted."""
        call = one.call
        if call.user is not None:
            columns = [batch.column(index) for index in call.arguments]
            values = Values(objects(call.user.arguments(columns, batch.num_rows)))
        elif call.argument is None:
            values = Values(np.zeros(0, np.int64))
        else:
            column = batch.column(call.argument)
            if one.accumulator.plain_values:
                values = Values(np.empty(len(column), object))
                values.content[:] = column.to_pylist()
            else:
                values = Values(np.zeros(0, np.int64)) if call.function.upper() == "COUNT" else numpy_of(column)
            if column.null_count and values.known is None:
                values = Values(values.content, pc.is_valid(column).to_numpy(zero_copy_only=False))
        weights = signs
        if values.known is not None and not one.accumulator.counts_nulls:
            weights = values.known.astype(np.int8) if weights is None else weights * values.known
        if call.filter is not None:
            chosen = pc.fill_null(batch.column(call.filter), False).to_numpy(zero_copy_only=False)
            weights = chosen.astype(np.int8) if weights is None else weights * chosen
        if one.distinct is not None and call.argument is not None:
            weights = one.distinct.weights(codes, keys, batch.column(call.argument), weights)
        content = values.content
        return Rows(content[order] if len(content) else content, None if weights is None else weights[order])


def _named(column: SlotColumn, name: str) -> SlotColumn:
    return replace(column, name=name)


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
