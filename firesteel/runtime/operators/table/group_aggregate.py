"""GROUP BY as a changelog: for each row what it changed in its group, as Flink gives it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import Values
from firesteel.runtime.operators.table.changelog import changelog, differing, joined
from firesteel.runtime.operators.table.groups import PIECE, Groups
from firesteel.runtime.operators.table.specs import GroupAggregate
from firesteel.runtime.state.columnar.index import grown

__all__ = ["GroupAggregateOperator"]

Array = npt.NDArray[Any]


@handles(GroupAggregate)
class GroupAggregateOperator(StreamOperator[GroupAggregate]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec = self.spec
        key_types = [spec.input.field(key).type for key in spec.keys]
        context = cast(OperatorContext, runtime_context)
        self._pieces = context.pieces
        self._groups = Groups(
            context,
            key_types,
            spec.calls,
            spec.input,
            spec.retracts,
            time_to_live=spec.state_ttl,
            paged=bool(spec.keys),
        )
        # Who keeps results for as long as they change needs to hear of them.
        self._always_changed = spec.state_ttl is not None or any(one.counts_rows for one in self._groups.calls)
        self._bundle: list[tuple[Array, Array, list[Values]]] = []
        """With mini-batch: groups that were touched, whether they existed before, and their results before."""
        self._touched = np.zeros(0, bool)

    def close(self) -> None:
        self._groups.close()

    def on_watermark(self, watermark: int) -> None:
        self._flush()

    def end_batch(self) -> None:
        self._flush()

    def process(self, records: Records) -> None:
        if self.spec.state_ttl is not None:
            self._groups.expire(self.context.timer_service().current_processing_time())
        results = []
        for batch in records.values:
            for piece in self._pieces(batch, self.spec.keys, self._flush):
                for at in range(0, piece.num_rows, PIECE):
                    result = self._process(piece.slice(at, PIECE) if piece.num_rows > PIECE else piece)
                    if result is not None and result.num_rows:
                        results.append(result)
        if results:
            self.context.emit(results)

    def _process(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        spec = self.spec
        keys = [batch.column(key) for key in spec.keys]
        if spec.mini_batch:
            self._groups.advance(batch, keys, False, self._remember)
            return None
        done = self._groups.advance(batch, keys, True)
        if done is None:
            return None
        # Where in the sorted rows each row of the input is.
        sorted_at = np.empty(len(done.order), np.int64)
        sorted_at[done.order] = np.arange(len(done.order))
        keys = [done.batch.column(key) for key in spec.keys]
        changed = None if self._always_changed else differing(done.results, len(done.order))
        return changelog(
            keys, done.existed, done.exists, changed, done.results, spec.schema, spec.update_before, sorted_at
        )

    # What a bundle of rows changed together, with mini-batch.

    def _remember(self, slots: Array) -> None:
        """Notes what groups are before the bundle changes them."""
        if len(self._touched) < self._groups.table.size:
            self._touched = grown(self._touched, self._groups.table.size)
        first = slots[~self._touched[slots]]
        if len(first):
            self._touched[first] = True
            self._bundle.append((first, self._groups.table.alive[first], self._groups.results(first)))

    def _flush(self) -> None:
        if not self._bundle:
            return
        bundle, self._bundle = self._bundle, []
        slots = np.concatenate([part[0] for part in bundle])
        existed = np.concatenate([part[1] for part in bundle])
        self._touched[slots] = False
        before = [joined([part[2][n] for part in bundle]) for n in range(len(self.spec.calls))]
        columns = list(zip(before, self._groups.results(slots), strict=True))
        result = changelog(
            self._groups.table.keys(slots),
            existed,
            self._groups.table.alive[slots],
            differing(columns, len(slots)),
            columns,
            self.spec.schema,
            self.spec.update_before,
        )
        if result.num_rows:
            self.context.emit([result])
