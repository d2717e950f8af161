"""Joins and Top-N of rows in the same window. Rows wait until their window has ended; then all of them are worked on at
once, and the result never changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.errors import ProgramError
from firesteel.runtime.columns.kinds import data_of
from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.row_lists import order_ranks
from firesteel.runtime.operators.table.stored_rows import WaitingRows
from firesteel.runtime.operators.table.user_functions import UserFunctions
from firesteel.runtime.operators.table.window_aggregate import LATE_METRIC
from firesteel.runtime.operators.table.window_specs import WindowJoin, WindowRank
from firesteel.runtime.operators.table.window_times import as_moments, milliseconds
from firesteel.runtime.state.columnar.key_words import distinct_keys

__all__ = ["WindowJoinOperator", "WindowRankOperator"]

Array = npt.NDArray[Any]

_KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")


class _InWindows:
    """Rows that wait for the end of their window."""

    def __init__(
        self, context: OperatorContext, name: str, schema: pa.Schema, keys: tuple[int, ...], end: int, zone: str | None
    ) -> None:
        self._waiting = WaitingRows(context, name, schema, keys)
        self._end = end
        self._zone = zone
        self._late = context.get_metrics_group().counter(LATE_METRIC)

    def take(self, whole: pa.RecordBatch, watermark: int) -> None:
        batch = data_of(whole)
        times = as_moments(milliseconds(batch.column(self._end)) - 1, self._zone)
        late = times <= watermark
        if late.any():
            self._late.inc(int(late.sum()))
            batch, times = batch.filter(pa.array(~late)), times[~late]
        self._waiting.take(batch, times)

    def release(self, watermark: int) -> tuple[pa.RecordBatch, Array] | None:
        return self._waiting.release(watermark)

    def prune(self, chosen: Callable[[pa.RecordBatch], Array]) -> None:
        self._waiting.prune(chosen)

    def keep(self) -> None:
        self._waiting.keep()


@handles(WindowJoin)
class WindowJoinOperator(StreamOperator[WindowJoin]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._kind = spec.kind.upper()
        if self._kind not in _KINDS:
            raise ProgramError(f"A join of the kind {spec.kind} is not known here. There are {', '.join(_KINDS)}.")
        self._sides = (
            _InWindows(context, "left", spec.left, spec.left_keys, spec.left_end, spec.time_zone),
            _InWindows(context, "right", spec.right, spec.right_keys, spec.right_end, spec.time_zone),
        )
        taken = set(spec.left.names)
        renamed = [field.with_name(f"{field.name}_right") if field.name in taken else field for field in spec.right]
        self._both = pa.schema([*spec.left, *renamed])
        self._functions = UserFunctions((spec.condition,), runtime_context)

    def close(self) -> None:
        self._functions.close()

    def process(self, records: Records) -> None:
        watermark = self.context.timer_service().current_watermark()
        for batch in records.values:
            self._sides[records.input].take(batch, watermark)

    def end_batch(self) -> None:
        for side in self._sides:
            side.keep()

    def on_watermark(self, watermark: int) -> None:
        spec = self.spec
        left, right = (side.release(watermark) for side in self._sides)
        if left is None and right is None:
            return
        nothing = np.zeros(0, np.int64)
        left_rows, left_times = left or (_empty(spec.left), nothing)
        right_rows, right_times = right or (_empty(spec.right), nothing)
        own, other = self._matches(left_rows, right_rows)
        result, times = self._joined(left_rows, right_rows, own, other, left_times, right_times)
        if result.num_rows:
            order = np.argsort(times, kind="stable")
            in_order = (order[1:] > order[:-1]).all()
            self.context.emit([result if in_order else result.take(pa.array(order))])

    def _matches(self, left: pa.RecordBatch, right: pa.RecordBatch) -> tuple[Array, Array]:
        """The places of both rows of each match, in the order of the left ones."""
        spec = self.spec
        columns = [
            pa.concat_arrays([left.column(a), right.column(b).cast(left.column(a).type)])
            for a, b in zip(spec.left_keys, spec.right_keys, strict=True)
        ]
        codes, _ = distinct_keys(columns, left.num_rows + right.num_rows)
        known = np.ones(len(codes), bool)
        for column in columns:
            if column.null_count:
                known &= pc.is_valid(column).to_numpy(zero_copy_only=False)
        number = int(codes.max(initial=-1)) + 1
        left_codes = np.where(known, codes, number)[: left.num_rows]
        right_places = np.flatnonzero(known[left.num_rows :])
        right_codes = codes[left.num_rows :][right_places]
        order = np.argsort(right_codes, kind="stable")
        counts = np.bincount(right_codes, minlength=number + 1)
        starts = np.cumsum(counts) - counts
        times = counts[left_codes]
        own = np.repeat(np.arange(left.num_rows), times)
        first = np.repeat(starts[left_codes] - (np.cumsum(times) - times), times)
        other = right_places[order[first + np.arange(len(own))]]
        if spec.condition is None or not len(own):
            return own, other
        pairs = [*left.take(pa.array(own)).columns, *right.take(pa.array(other)).columns]
        joined = pa.RecordBatch.from_arrays(pairs, schema=self._both)
        now = self.context.timer_service().current_processing_time()
        true = pc.fill_null(spec.condition.evaluate(joined, now), False).to_numpy(zero_copy_only=False)
        return own[true], other[true]

    def _joined(
        self,
        left: pa.RecordBatch,
        right: pa.RecordBatch,
        own: Array,
        other: Array,
        left_times: Array,
        right_times: Array,
    ) -> tuple[pa.RecordBatch, Array]:
        schema = self.spec.schema
        met = np.zeros(left.num_rows, bool)
        met[own] = True
        if self._kind in ("SEMI", "ANTI"):
            chosen = np.flatnonzero(met if self._kind == "SEMI" else ~met)
            rows = left.take(pa.array(chosen)).columns
            return pa.RecordBatch.from_arrays(rows, schema=schema), left_times[chosen]
        own_places, other_places, times = [own], [other], [left_times[own]]
        if self._kind in ("LEFT", "FULL"):
            alone = np.flatnonzero(~met)
            own_places.append(alone)
            other_places.append(np.full(len(alone), -1))
            times.append(left_times[alone])
        if self._kind in ("RIGHT", "FULL"):
            found = np.zeros(right.num_rows, bool)
            found[other] = True
            alone = np.flatnonzero(~found)
            own_places.append(np.full(len(alone), -1))
            other_places.append(alone)
            times.append(right_times[alone])
        columns = [
            *left.take(_places(np.concatenate(own_places))).columns,
            *right.take(_places(np.concatenate(other_places))).columns,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema), np.concatenate(times)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _places(rows: Array) -> pa.Array:
    nobody = rows < 0
    return pa.array(rows, mask=nobody) if nobody.any() else pa.array(rows)


@handles(WindowRank)
class WindowRankOperator(StreamOperator[WindowRank]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._rows = _InWindows(context, "rows", spec.input, spec.keys, spec.window_end, spec.time_zone)

    def process(self, records: Records) -> None:
        watermark = self.context.timer_service().current_watermark()
        for batch in records.values:
            self._rows.take(batch, watermark)

    def end_batch(self) -> None:
        # What is not among the first ones of a micro-batch is not among the first ones of its window.
        self._rows.prune(self._promising)
        self._rows.keep()

    def _promising(self, batch: pa.RecordBatch) -> Array:
        order, places = self._places(batch)
        return np.sort(order[places <= self.spec.last])

    def _places(self, batch: pa.RecordBatch) -> tuple[Array, Array]:
        """Rows in order by partition, and the place of each in its own."""
        spec = self.spec
        codes, keys = distinct_keys([batch.column(key) for key in spec.keys], batch.num_rows)
        came = np.arange(batch.num_rows)
        by = [order_ranks(batch.column(one.column), one) for one in reversed(spec.order)]
        order = np.lexsort((-came if spec.last_wins else came, *by, codes))
        counts = np.bincount(codes, minlength=len(keys[0]) if keys else 1)
        return order, Segments(np.cumsum(counts) - counts, batch.num_rows).places()

    def on_watermark(self, watermark: int) -> None:
        spec = self.spec
        released = self._rows.release(watermark)
        if released is None:
            return
        batch, _ = released
        order, places = self._places(batch)
        kept = (places >= spec.first) & (places <= spec.last)
        if not kept.any():
            return
        columns = batch.take(pa.array(order[kept])).columns
        if spec.with_rank:
            columns = [*columns, pa.array(places[kept])]
        self.context.emit([pa.RecordBatch.from_arrays(columns, schema=spec.schema)])
