"""Rows that are made of rows: table functions and UNNEST."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import KIND, has_kinds
from firesteel.runtime.operators.table.specs import Correlate
from firesteel.runtime.operators.table.user_functions import UserFunctions

__all__ = ["CorrelateOperator", "correlated"]


@handles(Correlate)
class CorrelateOperator(StreamOperator[Correlate]):
    def open(self, runtime_context: Any) -> None:
        self._functions = UserFunctions((self.spec.made,), runtime_context)

    def close(self) -> None:
        self._functions.close()

    def process(self, records: Records) -> None:
        now = self.context.timer_service().current_processing_time()
        results = [result for batch in records.values if (result := correlated(self.spec, batch, now)).num_rows]
        if results:
            self.context.emit(results)


def correlated(spec: Correlate, batch: pa.RecordBatch, now: int) -> pa.RecordBatch:
    """The rows of a batch with those that are made of them; ``now`` is the processing time, in milliseconds."""
    places, made = spec.made.rows(batch, now)
    if spec.outer:
        places, made = _with_lonely(places, made, batch.num_rows)
    indices = pa.array(places)
    columns = [*(batch.column(index).take(indices) for index in spec.kept), *made]
    if has_kinds(batch.schema):
        kinds = batch.column(batch.num_columns - 1).take(indices)
        return pa.RecordBatch.from_arrays([*columns, kinds], schema=spec.schema.append(pa.field(KIND, pa.int8())))
    return pa.RecordBatch.from_arrays(columns, schema=spec.schema)


def _with_lonely(places: Any, made: list[pa.Array], rows: int) -> tuple[Any, list[pa.Array]]:
    """With a row of NULLs for each row of which nothing was made.

    >>> _with_lonely(np.array([0, 2]), [pa.array(["a", "b"])], 3)[1][0].to_pylist()
    ['a', None, 'b']
    """
    lonely = np.flatnonzero(np.bincount(places, minlength=rows) == 0)
    if not len(lonely):
        return places, made
    every = np.concatenate((places, lonely))
    order = np.argsort(every, kind="stable")
    # Behind all that was made comes nothing: that is what the lonely ones take.
    taken = np.concatenate((np.arange(len(places)), np.full(len(lonely), -1)))[order]
    indices = pa.array(taken, mask=taken < 0)
    return every[order], [column.take(indices) for column in made]
