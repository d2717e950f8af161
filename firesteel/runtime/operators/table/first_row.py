"""The first row of each partition in an order, as a changelog: deduplication, and Top-N with an N of 1.

Of the rows of a batch only those matter that are before all earlier ones of their partition. They are found for all
partitions at once; each of them then replaces the row before it.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import data_of, kinds_of, with_kinds
from firesteel.runtime.columns.scans import Segments, sorted_by_code
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import Values, distinct_in_order, numpy_of
from firesteel.runtime.operators.table.last_rows import LastRows
from firesteel.runtime.operators.table.specs import FirstRow, Order
from firesteel.runtime.state.columnar.key_words import distinct_keys

__all__ = ["FirstRowOperator"]

Array = npt.NDArray[Any]


@handles(FirstRow)
class FirstRowOperator(StreamOperator[FirstRow]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._pieces = context.pieces
        self._rows = LastRows(spec.input, spec.keys, spec.update_before, time_to_live=spec.state_ttl)
        context.keep_columns("first rows", self._rows.table, paged=bool(spec.keys))
        # What is the same for all rows of a partition orders none of them.
        self._order = [one for one in spec.order if one.column not in spec.keys]

    def process(self, records: Records) -> None:
        if self.spec.state_ttl is not None:
            self._rows.table.expire(self.context.timer_service().current_processing_time())
        results = [
            result
            for batch in records.values
            for piece in self._pieces(batch, self.spec.keys)
            if (result := self._process(data_of(piece))).num_rows
        ]
        if results:
            self.context.emit(results)

    def _process(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        winners = self._winners(batch)
        if len(winners) < batch.num_rows:
            batch = batch.take(pa.array(winners))
        changes = self._rows.replace(batch, None)
        if not self.spec.with_rank:
            return changes
        rows = data_of(changes)
        first = pa.array(np.ones(rows.num_rows, np.int64))
        ranked = pa.RecordBatch.from_arrays([*rows.columns, first], schema=self.spec.schema)
        return with_kinds(ranked, kinds_of(changes))

    def _winners(self, batch: pa.RecordBatch) -> Array:
        """The rows that are before all earlier ones of their partition, in their order."""
        rows, table = batch.num_rows, self._rows.table
        codes, keys = distinct_keys([batch.column(key) for key in self.spec.keys], rows)
        slots = table.slots(keys)
        alive = table.alive[slots]
        order = sorted_by_code(codes, len(slots))
        ends = np.cumsum(np.bincount(codes, minlength=len(slots)))
        segments = Segments(np.concatenate(([0], ends[:-1])), rows)
        places = self._places(batch, slots, alive, segments)
        stored, places = places[rows:], places[:rows][order]
        # Any row is before one that is not there.
        stored[~alive] = places.max(initial=0) + 1
        best = -segments.running_max(-places, -stored)
        before = segments.before(best, stored)
        won = places <= before if self.spec.last_wins else places < before
        winners: Array = np.sort(order[won])
        return winners

    def _places(self, batch: pa.RecordBatch, slots: Array, alive: Array, segments: Segments) -> Array:
        """Numbers that order the rows of the batch, and behind them those that are kept, by what they are ordered by.
        They are small enough for each segment to have a range of its own."""
        places = np.zeros(batch.num_rows + len(slots), np.int64)
        for order in self._order:
            found = _numbers(numpy_of(batch.column(order.column)), self._rows.column(order.column, slots), alive, order)
            places, count = _narrowed(places, len(places))
            found, width = _narrowed(found, _WIDE // count)
            places = places * width + found
        # Each segment needs one number more, for what is behind all others.
        return _narrowed(places, _WIDE // (len(segments.starts) + 2) - 3)[0]


_WIDE = 1 << 61


def _narrowed(numbers: Array, most: int) -> tuple[Array, int]:
    """Numbers with the same order from 0 on, and the one behind the last: not more than ``most``, if numbers that lie
    without gaps are not more."""
    if not len(numbers):
        return numbers, 1
    least = int(numbers.min())
    width = int(numbers.max()) - least + 1
    if width <= most:
        return numbers - least, width
    values, ranks = np.unique(numbers, return_inverse=True)
    return ranks, len(values)


def _numbers(now: Values, stored: Values, alive: Array, order: Order) -> Array:
    """Whole numbers that are ordered as values are to be. Those of rows that are not there mean nothing."""
    assert stored.known is not None
    content = np.concatenate((now.content, stored.content))
    known = np.concatenate((np.ones(len(now.content), bool) if now.known is None else now.known, stored.known & alive))
    if content.dtype.kind in "iu" and known[: len(now.content)].all() and stored.known[alive].all():
        whole = content.astype(np.int64, copy=False)
        # The complement turns the order round, and there is one of each number.
        return whole if order.ascending else ~whole
    numbers = np.full(len(content), -1 if order.nulls_first else len(content), np.int64)
    ranks = distinct_in_order(content[known])[1]
    numbers[known] = ranks if order.ascending else len(content) - 1 - ranks
    return numbers
