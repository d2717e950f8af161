"""OVER: aggregates over the rows before each row, in the order of time.

A frame is a stretch of the rows of a key in their order: it ends with the current row (with RANGE with the last row of
the same time) and begins at a place that never goes back. So the frames of all new rows are one sequence of *events*:
rows come in, and before that others leave. Aggregates run through it as through any changelog, for all keys at once,
and add and take back in the same order as Flink does: floats round alike.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import data_of
from firesteel.runtime.columns.packing import joined
from firesteel.runtime.columns.scans import Segments, sorted_by_code
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import Values, arrow_of
from firesteel.runtime.operators.table.groups import Events, Groups
from firesteel.runtime.operators.table.rows_of_groups import RowsOfGroups
from firesteel.runtime.operators.table.specs import AggregateCall
from firesteel.runtime.operators.table.stored_rows import StoredRows, WaitingRows
from firesteel.runtime.operators.table.window_aggregate import LATE_METRIC
from firesteel.runtime.operators.table.window_specs import OverAggregate
from firesteel.runtime.operators.table.window_times import milliseconds
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotColumn

__all__ = ["OverAggregateOperator", "used_columns"]

Array = npt.NDArray[Any]

_LONG_AGO = -(1 << 62)


def used_columns(spec: OverAggregate) -> list[int]:
    """The columns of a row that frames need: keys and arguments."""
    used = list(spec.keys)
    for call in spec.calls:
        used += [at for at in (call.argument, call.filter, *call.arguments) if at is not None]
    return list(dict.fromkeys(used))


class _Frames(NamedTuple):
    """The events of some new rows."""

    rows: Array
    """Of each event: which row comes or leaves."""
    signs: Array
    arrivals: Array
    """Of each new row: the event by which it comes."""
    segments: Segments
    first: Array
    """Of each segment: the first row that is still in the frame."""


@handles(OverAggregate)
class OverAggregateOperator(StreamOperator[OverAggregate]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._used = used_columns(spec)
        self._narrow = pa.schema([spec.input.field(at).with_name(f"c{at}") for at in self._used])
        self._keys = [self._used.index(key) for key in spec.keys]
        calls = [self._moved(call) for call in spec.calls]
        key_types = [spec.input.field(key).type for key in spec.keys]
        bounded = spec.preceding is not None
        extra = [SlotColumn("last", pa.int64(), np.int64, _LONG_AGO)] if bounded else []
        time_to_live = None if bounded else spec.state_ttl
        self._groups = Groups(context, key_types, calls, self._narrow, bounded, time_to_live=time_to_live, extra=extra)
        self._waiting = WaitingRows(context, "waiting", spec.input, spec.keys) if spec.time is not None else None
        self._history: StoredRows | None = None
        if bounded:
            self._history = StoredRows(self._narrow, self._keys)
            context.keep_columns("frames", self._history.table)
            self._of_groups = RowsOfGroups(self._history, self._groups.table, len(self._keys))
        self._span = max(spec.preceding or 0, 1)
        self._cleaned = _LONG_AGO
        self._late = runtime_context.get_metrics_group().counter(LATE_METRIC)

    def _moved(self, call: AggregateCall) -> AggregateCall:
        argument = None if call.argument is None else self._used.index(call.argument)
        chosen = None if call.filter is None else self._used.index(call.filter)
        arguments = tuple(self._used.index(at) for at in call.arguments)
        return replace(call, argument=argument, filter=chosen, arguments=arguments)

    def close(self) -> None:
        self._groups.close()

    def process(self, records: Records) -> None:
        for whole in records.values:
            batch = data_of(whole)
            if self._waiting is None:
                now = self.context.timer_service().current_processing_time()
                self._advance(batch, np.full(batch.num_rows, now))
                continue
            times = milliseconds(batch.column(cast(int, self.spec.time)))
            late = self._too_late(batch, times)
            if late.any():
                self._late.inc(int(late.sum()))
                batch, times = batch.filter(pa.array(~late)), times[~late]
            self._waiting.take(batch, times)

    def _too_late(self, batch: pa.RecordBatch, times: Array) -> Array:
        """Behind the watermark; of a bounded frame only if the key is already further, or may be forgotten."""
        watermark = self.context.timer_service().current_watermark()
        late: Array = times <= watermark
        if self._history is None or not late.any():
            return late
        codes, keys = distinct_keys([batch.column(key) for key in self.spec.keys], batch.num_rows)
        slots = self._groups.table.slots(keys)
        last = np.where(self._groups.table.alive[slots], self._groups.table.values[-1][slots], _LONG_AGO)
        further: Array = late & (times <= last[codes])
        return further if self.spec.rows else further | (times < watermark - 2 * self._span)

    def on_watermark(self, watermark: int) -> None:
        if self._waiting is None:
            return
        released = self._waiting.release(watermark)
        if released is not None:
            self._advance(*released)
        self._clean(watermark)

    def end_batch(self) -> None:
        if self._waiting is not None:
            self._waiting.keep()

    # New rows, in the order of time.

    def _advance(self, batch: pa.RecordBatch, times: Array) -> None:
        if not batch.num_rows:
            return
        spec, groups = self.spec, self._groups
        if spec.state_ttl is not None and spec.preceding is None:
            groups.expire(self.context.timer_service().current_processing_time())
        narrow = pa.RecordBatch.from_arrays([batch.column(at) for at in self._used], schema=self._narrow)
        codes, keys = distinct_keys([batch.column(key) for key in spec.keys], batch.num_rows)
        slots = groups.table.slots(keys)
        order = sorted_by_code(codes, len(slots))
        sorted_codes, sorted_times = codes[order], times[order]
        if self._history is None:
            segments = _segments_of(sorted_codes)
            events = Events(narrow.take(pa.array(order)), None, segments, slots, keys)
            results = groups.follow(events)
            arrivals = np.arange(batch.num_rows)
        else:
            results, arrivals = self._through_frames(
                self._history, narrow.take(pa.array(order)), sorted_codes, sorted_times, slots, keys
            )
        if not spec.rows and (spec.time is not None or self._history is not None):
            # Rows of the same time are in each other's frame.
            arrivals = arrivals[_last_peers(sorted_codes, sorted_times)]
        back = np.empty(len(order), np.int64)
        back[order] = arrivals
        fields = list(spec.schema)[batch.num_columns :]
        columns = [
            arrow_of(values.map(lambda content: content[back]), field.type)
            for values, field in zip(results, fields, strict=True)
        ]
        self.context.emit([pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=spec.schema)])

    def _through_frames(
        self, history: StoredRows, fresh: pa.RecordBatch, codes: Array, times: Array, slots: Array, keys: list[pa.Array]
    ) -> tuple[list[Values], Array]:
        """Results after each event, and the event by which each new row comes."""
        table = self._groups.table
        known, owners = self._of_groups.find(slots)
        known_times = history.times(known)
        all_codes = np.concatenate((owners, codes))
        all_times = np.concatenate((known_times, times))
        # Stable: what is in the frame comes before what is new.
        order = sorted_by_code(all_codes, len(slots))
        is_new = np.zeros(len(order), bool)
        is_new[len(known) :] = True
        frames = self._frames(all_codes[order], all_times[order], is_new[order])
        both = joined([history.batch(known), fresh]) if len(known) else fresh
        events = Events(
            both.take(pa.array(order[frames.rows])),
            frames.signs,
            frames.segments,
            slots,
            keys,
        )
        results = self._groups.follow(events)
        ends = _segments_of(codes).ends
        table.values[-1][slots] = times[ends]
        # What is left of the frames.
        gone = np.arange(len(order)) < frames.first[all_codes[order]]
        left = np.empty(len(order), bool)
        left[order] = gone
        history.table.remove(known[left[: len(known)]])
        stays = ~left[len(known) :]
        self._of_groups.add(history.add(fresh.filter(pa.array(stays)), times[stays]), slots[codes[stays]])
        return results, frames.arrivals

    def _frames(self, codes: Array, times: Array, is_new: Array) -> _Frames:
        spec = self.spec
        preceding = cast(int, spec.preceding)
        segments = _segments_of(codes)
        starts = segments.starts[codes]
        places = np.flatnonzero(is_new)
        if spec.rows:
            first = np.maximum(starts[places], places - preceding)
        else:
            first = _since(codes, times, times[places] - preceding, codes[places])
        of_new = _segments_of(codes[places])
        before = of_new.before(first, segments.starts)
        leaving = first - before
        ends = np.cumsum(leaving + 1)
        total = int(ends[-1])
        arrivals = ends - 1
        rows = np.empty(total, np.int64)
        signs = np.full(total, -1, np.int8)
        rows[arrivals] = places
        signs[arrivals] = 1
        leaves = signs < 0
        begun = np.cumsum(leaving) - leaving
        rows[leaves] = np.repeat(before - begun, leaving) + np.arange(int(leaving.sum()))
        event_starts = np.concatenate(([0], ends[of_new.ends][:-1]))
        return _Frames(rows, signs, arrivals, Segments(event_starts, total), first[of_new.ends])

    def _clean(self, watermark: int) -> None:
        """Forgets keys of which no row is in any frame to come."""
        spec, table = self.spec, self._groups.table
        if self._history is None or spec.rows or spec.preceding is None:
            return
        span = self._span
        if watermark - self._cleaned < span:
            return
        self._cleaned = watermark
        alive = np.flatnonzero(table.alive[: table.size])
        # A row may be two spans late, and its frame begins a span before it.
        old = alive[table.values[-1][alive] < watermark - 3 * span]
        if not len(old):
            return
        self._history.table.remove(self._of_groups.find(old)[0])
        for one in self._groups.calls:
            if one.distinct is not None:
                one.distinct.forget_groups(table.keys(old))
        table.remove(old)


def _segments_of(codes: Array) -> Segments:
    """The segments of sorted codes."""
    begins = np.ones(len(codes), bool)
    begins[1:] = codes[1:] != codes[:-1]
    return Segments(np.flatnonzero(begins), len(codes))


def _last_peers(codes: Array, times: Array) -> Array:
    """For each row the last one with its key and time."""
    last = np.ones(len(codes), bool)
    last[:-1] = (codes[1:] != codes[:-1]) | (times[1:] != times[:-1])
    ends = np.flatnonzero(last)
    found: Array = ends[np.cumsum(last) - last]
    return found


def _since(codes: Array, times: Array, moments: Array, of: Array) -> Array:
    """For each moment, and the code it is of, the first row of that code that is not before it."""
    least = min(int(times.min()), int(moments.min()))
    span = max(int(times.max()), int(moments.max())) - least + 1
    if span * (int(codes[-1]) + 2) < 1 << 62:
        found: Array = np.searchsorted(codes * span + (times - least), of * span + (moments - least))
        return found
    # The times are too far apart for one number: places in their order take their place.
    distinct = np.unique(times)
    width = len(distinct) + 1
    ranked: Array = np.searchsorted(
        codes * width + np.searchsorted(distinct, times), of * width + np.searchsorted(distinct, moments)
    )
    return ranked
