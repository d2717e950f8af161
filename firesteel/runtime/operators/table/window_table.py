"""Windows without state: each row with the windows that it is in, and rows for grouping sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import data_of, kinds_of, with_kinds
from firesteel.runtime.operators.table.window_specs import Expand, UnpackRows, WindowTable
from firesteel.runtime.operators.table.window_times import (
    as_moments,
    local_milliseconds,
    window_ends,
    window_spans,
)

__all__ = ["ExpandOperator", "UnpackRowsOperator", "WindowTableOperator"]

Array = npt.NDArray[Any]


@handles(WindowTable)
class WindowTableOperator(StreamOperator[WindowTable]):
    def process(self, records: Records) -> None:
        self.context.emit([self._windowed(batch) for batch in records.values if batch.num_rows])

    def _windowed(self, whole: pa.RecordBatch) -> pa.RecordBatch:
        spec = self.spec
        batch, kinds = data_of(whole), kinds_of(whole)
        if spec.rowtime is None:
            now = self.context.timer_service().current_processing_time()
            column = pa.array(np.full(batch.num_rows, now), pa.timestamp("ms", "UTC"))
        else:
            column = batch.column(spec.rowtime)
        places, ends = window_ends(spec.window, local_milliseconds(column, spec.window.time_zone))
        times = [ends - window_spans(spec.window, ends), ends, ends - 1]
        if len(places) != batch.num_rows or spec.window.kind.upper() != "TUMBLE":
            batch = batch.take(pa.array(places))
            kinds = None if kinds is None else kinds[places]
        fields = list(spec.schema)[batch.num_columns :]
        added = [_moment(each, field.type, spec.window.time_zone) for each, field in zip(times, fields, strict=True)]
        return with_kinds(pa.RecordBatch.from_arrays([*batch.columns, *added], schema=spec.schema), kinds)


def _moment(times: Array, kind: pa.DataType, time_zone: str | None) -> pa.Array:
    """A column of windows: local times, or moments where the type has a time zone."""
    if kind.tz is not None:
        return pa.array(as_moments(times, time_zone), pa.timestamp("ms", kind.tz)).cast(kind)
    return pa.array(times, pa.timestamp("ms")).cast(kind)


@handles(Expand)
class ExpandOperator(StreamOperator[Expand]):
    def process(self, records: Records) -> None:
        self.context.emit([self._expanded(batch) for batch in records.values if batch.num_rows])

    def _expanded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        spec, rows, times = self.spec, batch.num_rows, len(self.spec.projections)
        now = self.context.timer_service().current_processing_time()
        parts = [[each.evaluate(batch, now) for each in projection] for projection in spec.projections]
        # All copies of the first row, then those of the second one.
        order = pa.array((np.arange(times)[None, :] * rows + np.arange(rows)[:, None]).ravel())
        columns = [
            pa.concat_arrays([part[at].cast(field.type) for part in parts]).take(order)
            for at, field in enumerate(spec.schema)
        ]
        kinds = kinds_of(batch)
        repeated = None if kinds is None else np.repeat(kinds, times)
        return with_kinds(pa.RecordBatch.from_arrays(columns, schema=spec.schema), repeated)


@handles(UnpackRows)
class UnpackRowsOperator(StreamOperator[UnpackRows]):
    def process(self, records: Records) -> None:
        self.context.emit([self._unpacked(batch) for batch in records.values if batch.num_rows])

    def _unpacked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        lists = batch.column(self.spec.rows)
        of = pc.list_parent_indices(lists)
        columns = [*lists.flatten().flatten(), *(column.take(of) for column in batch.columns[self.spec.rows + 1 :])]
        return pa.RecordBatch.from_arrays(columns, schema=self.spec.schema)
