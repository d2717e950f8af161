"""A stream in the order of time: ORDER BY whose first column is a time attribute, ascending."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import data_of
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.row_lists import order_ranks
from firesteel.runtime.operators.table.stored_rows import WaitingRows
from firesteel.runtime.operators.table.window_aggregate import LATE_METRIC
from firesteel.runtime.operators.table.window_specs import TimeSort
from firesteel.runtime.operators.table.window_times import milliseconds
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["TimeSortOperator"]

Array = npt.NDArray[Any]

_LONG_AGO = -(1 << 62)


@handles(TimeSort)
class TimeSortOperator(StreamOperator[TimeSort]):
    """Rows wait for the watermark. A row counts as late once one of its time, or of a later one, is out."""

    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._waiting = WaitingRows(context, "waiting", spec.input, ())
        self._progress = SlotTable([], [SlotColumn("last", pa.int64(), np.int64, _LONG_AGO)])
        context.keep_columns("progress", self._progress)
        self._late = runtime_context.get_metrics_group().counter(LATE_METRIC)

    def process(self, records: Records) -> None:
        for whole in records.values:
            batch = data_of(whole)
            if self.spec.time is None:
                # The clock is the same for rows that come together.
                self._emit(batch, np.zeros(batch.num_rows, np.int64))
                continue
            times = milliseconds(batch.column(self.spec.time))
            late = times <= self._last()
            if late.any():
                self._late.inc(int(late.sum()))
                batch, times = batch.filter(pa.array(~late)), times[~late]
            self._waiting.take(batch, times)

    def _last(self) -> int:
        """The time of the last row that is out."""
        slots = self._progress.slots([])
        return int(self._progress.values[0][slots][0])

    def on_watermark(self, watermark: int) -> None:
        released = self._waiting.release(watermark)
        if released is None:
            return
        batch, times = released
        self._emit(batch, times)
        slots = self._progress.slots([])
        self._progress.values[0][slots] = times[-1]
        self._progress.put(slots)

    def _emit(self, batch: pa.RecordBatch, times: Array) -> None:
        if not batch.num_rows:
            return
        if self.spec.order:
            ranks = [order_ranks(batch.column(order.column), order) for order in self.spec.order]
            batch = batch.take(pa.array(np.lexsort((*reversed(ranks), times))))
        self.context.emit([pa.RecordBatch.from_arrays(batch.columns, schema=self.spec.schema)])

    def end_batch(self) -> None:
        self._waiting.keep()
