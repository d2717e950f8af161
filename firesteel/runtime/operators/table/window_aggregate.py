"""Aggregates in windows of event time: TUMBLE, HOP, CUMULATE and SESSION."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.datastream.time_domain import TimeDomain
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import arrow_of
from firesteel.runtime.operators.table.groups import PIECE, Groups
from firesteel.runtime.operators.table.sessions import Sessions
from firesteel.runtime.operators.table.specs import WindowAggregate
from firesteel.runtime.operators.table.window_times import as_moments, local_milliseconds, window_ends, window_spans
from firesteel.runtime.state.columnar.key_words import distinct_keys

__all__ = ["LATE_METRIC", "WindowAggregateOperator"]

Array = npt.NDArray[Any]

LATE_METRIC = "numLateRecordsDropped"


@handles(WindowAggregate)
class WindowAggregateOperator(StreamOperator[WindowAggregate]):
    """A slot for each group of each window that is open."""

    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        key_types = [spec.input.field(key).type for key in spec.keys]
        self._sessions = Sessions(context, spec) if spec.window.kind.upper() == "SESSION" else None
        if self._sessions is not None:
            self._groups = self._sessions.groups
        else:
            self._groups = Groups(context, key_types, spec.calls, spec.input, spec.retracts, [pa.int64()])
        # The last column of a slot's key is the end of its window; that of a session has its start before it.
        self._end = len(spec.keys) + (self._sessions is not None)
        self._zone = None if self._sessions is not None else spec.window.time_zone
        self._late = runtime_context.get_metrics_group().counter(LATE_METRIC)

    def close(self) -> None:
        self._groups.close()

    def process(self, records: Records) -> None:
        for batch in records.values:
            for at in range(0, batch.num_rows, PIECE):
                self._process(batch.slice(at, PIECE))

    def _process(self, batch: pa.RecordBatch) -> None:
        spec = self.spec
        times = self._times(batch)
        watermark = self._now()
        if self._sessions is not None:
            self._late.inc(self._sessions.take(batch, times, watermark))
            if spec.rowtime is None:
                self._set_timers(batch, times + spec.window.size)
            return
        places, ends = window_ends(spec.window, times)
        open_ones = as_moments(ends - 1, self._zone) > watermark
        as_it_is = spec.window.kind.upper() in ("TUMBLE", "ENDS")
        if not open_ones.all():
            as_it_is = False
            places, ends = places[open_ones], ends[open_ones]
            self._late.inc(batch.num_rows - len(np.unique(places)))
        for at in range(0, len(places), PIECE):
            piece = batch if as_it_is else batch.take(pa.array(places[at : at + PIECE]))
            piece_ends = ends[at : at + PIECE]
            keys = [*(piece.column(key) for key in spec.keys), pa.array(piece_ends)]
            self._groups.advance(piece, keys, False)
            if spec.rowtime is None:
                self._set_timers(piece, piece_ends)

    def _times(self, batch: pa.RecordBatch) -> Array:
        """Sessions are of moments, other windows of local times."""
        spec = self.spec
        if spec.rowtime is None:
            now = self.context.timer_service().current_processing_time()
            column = pa.array(np.full(batch.num_rows, now), pa.timestamp("ms", "UTC"))
        else:
            column = batch.column(spec.rowtime)
        in_zone = None if spec.window.kind.upper() == "ENDS" else self._zone
        return local_milliseconds(column, in_zone)

    def _now(self) -> int:
        """What has come to this moment is over."""
        if self.spec.rowtime is None:
            return self.context.timer_service().current_processing_time() - 1
        return self.context.timer_service().current_watermark()

    def _set_timers(self, batch: pa.RecordBatch, ends: Array) -> None:
        """Processing time wakes up a key, so each key of each window has a timer."""
        columns = [*(batch.column(key) for key in self.spec.keys), pa.array(ends)]
        _, (*keys, distinct_ends) = distinct_keys(columns, batch.num_rows)
        moments = as_moments(distinct_ends.to_numpy(), self._zone).tolist()
        values = [key.to_pylist() for key in keys]
        every = values[0] if len(values) == 1 else list(zip(*values, strict=True)) or [()] * len(moments)
        timers = self.context.timer_service()
        for key, moment in zip(every, moments, strict=True):
            self.context.set_current_key(key)
            timers.register_processing_time_timer(moment - 1)

    def on_timer(self, timestamp: int, domain: TimeDomain) -> None:
        self._fire(timestamp)

    def on_watermark(self, watermark: int) -> None:
        if self.spec.rowtime is not None:
            self._fire(watermark)

    def _fire(self, until: int) -> None:
        """Gives out the windows that have ended."""
        spec, table = self.spec, self._groups.table
        alive = np.flatnonzero(table.alive[: table.size])
        if not len(alive):
            return
        ends = table.key_numbers(alive, self._end)
        due = as_moments(ends - 1, self._zone) <= until
        if not due.any():
            return
        slots, ends = alive[due], ends[due]
        order = np.argsort(ends, kind="stable")
        slots, ends = slots[order], ends[order]
        if self._sessions is None:
            starts = ends - window_spans(spec.window, ends)
        else:
            starts = table.key_numbers(slots, len(spec.keys))
        arrays = table.keys(slots)[: len(spec.keys)]
        fields = list(spec.schema)[len(arrays) :]
        results = self._groups.results(slots)
        arrays += [arrow_of(values, field.type) for values, field in zip(results, fields, strict=False)]
        for name, field in zip(spec.properties, fields[len(results) :], strict=True):
            moments = {"start": starts, "end": ends, "time": ends - 1}[name]
            arrays.append(self._property(moments, field.type))
        table.remove(slots)
        for one in self._groups.calls:
            if one.distinct is not None:
                one.distinct.forget(len(spec.keys), int(ends[-1]))
        self.context.emit([pa.RecordBatch.from_arrays(arrays, schema=spec.schema)])

    def _property(self, times: Array, kind: pa.DataType) -> pa.Array:
        zoned = pa.types.is_timestamp(kind) and kind.tz is not None
        if zoned:
            times = as_moments(times, self._zone)
        elif self._sessions is not None and self.spec.window.time_zone is not None:
            times = local_milliseconds(pa.array(times, pa.timestamp("ms", "UTC")), self.spec.window.time_zone)
        return pa.array(times, pa.timestamp("ms")).cast(kind)
