"""Aggregates in windows of event time: TUMBLE, HOP, CUMULATE and SESSION."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.errors import ProgramError
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import arrow_of
from firesteel.runtime.operators.table.groups import PIECE, Groups
from firesteel.runtime.operators.table.sessions import Sessions
from firesteel.runtime.operators.table.specs import Window, WindowAggregate

__all__ = ["LATE_METRIC", "WindowAggregateOperator", "milliseconds", "window_ends"]

Array = npt.NDArray[Any]

LATE_METRIC = "numLateRecordsDropped"


def milliseconds(column: pa.Array) -> Array:
    """Times as milliseconds since 1970.

    >>> import datetime
    >>> milliseconds(pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1, 1999)])).tolist()
    [1001]
    """
    if column.null_count:
        raise ProgramError("The event time of a row is NULL. Leave such rows out, or give them a time, before windows.")
    if pa.types.is_timestamp(column.type):
        per_unit = {"s": 1000, "ms": 1, "us": -1000, "ns": -1_000_000}[column.type.unit]
        plain: Array = column.view(pa.int64()).to_numpy()
        return plain * per_unit if per_unit > 0 else plain // -per_unit
    found: Array = column.cast(pa.int64()).to_numpy()
    return found


def window_ends(window: Window, times: Array) -> tuple[Array, Array]:
    """For each window of each row the row's place, and the end of the window.

    >>> window_ends(Window("HOP", 10, 5), np.array([7]))[1].tolist()
    [15, 10]
    >>> window_ends(Window("CUMULATE", 10, 5), np.array([3, 7]))
    (array([0, 0, 1]), array([ 5, 10, 10]))
    """
    rows = np.arange(len(times))
    match window.kind.upper():
        case "TUMBLE":
            return rows, times - (times - window.offset) % window.size + window.size
        case "HOP":
            latest = times - (times - window.offset) % window.slide
            count = -(-window.size // window.slide)
            places = np.repeat(rows, count)
            starts = latest[places] - np.tile(np.arange(count) * window.slide, len(rows))
            inside = starts > times[places] - window.size
            return (places, starts + window.size) if inside.all() else (places[inside], starts[inside] + window.size)
        case "CUMULATE":
            starts = times - (times - window.offset) % window.size
            count = window.size // window.slide
            places = np.repeat(rows, count)
            ends = starts[places] + np.tile(np.arange(1, count + 1) * window.slide, len(rows))
            inside = ends > times[places]
            return places[inside], ends[inside]
    raise ProgramError(f"The window {window.kind} is not known here. There are TUMBLE, HOP, CUMULATE and SESSION.")


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
        self._late = runtime_context.get_metrics_group().counter(LATE_METRIC)

    def process(self, records: Records) -> None:
        for batch in records.values:
            for at in range(0, batch.num_rows, PIECE):
                self._process(batch.slice(at, PIECE))

    def _process(self, batch: pa.RecordBatch) -> None:
        spec = self.spec
        times = milliseconds(batch.column(spec.rowtime))
        watermark = self.context.timer_service().current_watermark()
        if self._sessions is not None:
            self._late.inc(self._sessions.take(batch, times, watermark))
            return
        places, ends = window_ends(spec.window, times)
        open_ones = ends - 1 > watermark
        as_it_is = spec.window.kind.upper() == "TUMBLE"
        if not open_ones.all():
            as_it_is = False
            places, ends = places[open_ones], ends[open_ones]
            self._late.inc(batch.num_rows - len(np.unique(places)))
        for at in range(0, len(places), PIECE):
            piece = batch if as_it_is else batch.take(pa.array(places[at : at + PIECE]))
            keys = [*(piece.column(key) for key in spec.keys), pa.array(ends[at : at + PIECE])]
            self._groups.advance(piece, keys, False)

    def on_watermark(self, watermark: int) -> None:
        spec, table = self.spec, self._groups.table
        alive = np.flatnonzero(table.alive[: table.size])
        if not len(alive):
            return
        ends = table.key_numbers(alive, self._end)
        due = ends - 1 <= watermark
        if not due.any():
            return
        slots, ends = alive[due], ends[due]
        order = np.argsort(ends, kind="stable")
        slots, ends = slots[order], ends[order]
        starts = ends - self._span(ends) if self._sessions is None else table.key_numbers(slots, len(spec.keys))
        arrays = table.keys(slots)[: len(spec.keys)]
        fields = list(spec.schema)[len(arrays) :]
        results = self._groups.results(slots)
        arrays += [arrow_of(values, field.type) for values, field in zip(results, fields, strict=False)]
        for name, field in zip(spec.properties, fields[len(results) :], strict=True):
            moments = {"start": starts, "end": ends, "time": ends - 1}[name]
            arrays.append(pa.array(moments, pa.timestamp("ms")).cast(field.type))
        table.remove(slots)
        for one in self._groups.calls:
            if one.distinct is not None:
                one.distinct.forget(len(spec.keys), int(ends[-1]))
        self.context.emit([pa.RecordBatch.from_arrays(arrays, schema=spec.schema)])

    def _span(self, ends: Array) -> Array | int:
        """How far before its end each window begins."""
        window = self.spec.window
        if window.kind.upper() != "CUMULATE":
            return window.size
        return (ends - window.offset - 1) % window.size + 1
