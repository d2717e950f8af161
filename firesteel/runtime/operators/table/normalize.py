"""Upserts as a full changelog: the last row of each key is kept, so that an update says what was before it."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import UPDATE_BEFORE, data_of, kinds_of
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.last_rows import LastRows
from firesteel.runtime.operators.table.specs import ChangelogNormalize

__all__ = ["ChangelogNormalizeOperator"]


@handles(ChangelogNormalize)
class ChangelogNormalizeOperator(StreamOperator[ChangelogNormalize]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._pieces = context.pieces
        # Who keeps rows for as long as they come needs to hear of them.
        repeats = spec.state_ttl is not None
        self._rows = LastRows(spec.schema, spec.keys, spec.update_before, repeats, spec.state_ttl)
        context.keep_columns("rows", self._rows.table, paged=bool(spec.keys))

    def process(self, records: Records) -> None:
        if self.spec.state_ttl is not None:
            self._rows.table.expire(self.context.timer_service().current_processing_time())
        results = [
            result
            for batch in records.values
            for piece in self._pieces(batch, self.spec.keys)
            if (result := self._normalized(piece)).num_rows
        ]
        if results:
            self.context.emit(results)

    def _normalized(self, whole: pa.RecordBatch) -> pa.RecordBatch:
        kinds = kinds_of(whole)
        batch = data_of(whole)
        if kinds is not None and (kinds == UPDATE_BEFORE).any():
            # What was before is known here.
            kept = np.flatnonzero(kinds != UPDATE_BEFORE)
            batch, kinds = batch.take(pa.array(kept)), kinds[kept]
        return self._rows.replace(batch, kinds)
