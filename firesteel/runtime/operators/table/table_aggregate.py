"""Table aggregate functions: any number of rows for each group, as a changelog."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import DELETE, INSERT, with_kinds
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.groups import PIECE, Groups
from firesteel.runtime.operators.table.specs import TableAggregate

__all__ = ["TableAggregateOperator"]

Array = npt.NDArray[Any]


@handles(TableAggregate)
class TableAggregateOperator(StreamOperator[TableAggregate]):
    """For each group that a bundle of rows touches: -D of the rows that it had, then +I of those that it has."""

    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._pieces = context.pieces
        key_types = [spec.input.field(key).type for key in spec.keys]
        self._groups = Groups(context, key_types, (spec.call,), spec.input, spec.retracts, paged=bool(spec.keys))
        self._before: dict[int, list[Any]] = {}
        """The groups that were touched, and the rows that they had."""

    def close(self) -> None:
        self._groups.close()

    def on_watermark(self, watermark: int) -> None:
        self._flush()

    def end_batch(self) -> None:
        self._flush()

    def process(self, records: Records) -> None:
        for batch in records.values:
            for loaded in self._pieces(batch, self.spec.keys, self._flush):
                for at in range(0, loaded.num_rows, PIECE):
                    piece = loaded.slice(at, PIECE) if loaded.num_rows > PIECE else loaded
                    keys = [piece.column(key) for key in self.spec.keys]
                    self._groups.advance(piece, keys, False, self._remember)

    def _remember(self, slots: Array) -> None:
        accumulators = self._groups.table.values[self._groups.calls[0].state][0]
        for slot in slots.tolist():
            if slot not in self._before:
                stored = accumulators[slot]
                self._before[slot] = [] if stored is None else self.spec.call.user.emitted(stored)

    def _flush(self) -> None:
        if not self._before:
            return
        before, self._before = self._before, {}
        table, user = self._groups.table, self.spec.call.user
        accumulators = table.values[self._groups.calls[0].state][0]
        owners: list[int] = []
        kinds: list[int] = []
        rows: list[Any] = []
        for slot, had in before.items():
            has = user.emitted(accumulators[slot]) if table.alive[slot] else []
            rows += [*had, *has]
            owners += [slot] * (len(had) + len(has))
            kinds += [DELETE] * len(had) + [INSERT] * len(has)
        if not rows:
            return
        columns = [*table.keys(np.array(owners, np.int64)), *user.columns_of(rows)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.spec.schema)
        self.context.emit([with_kinds(batch, pa.array(kinds, pa.int8()) if any(kinds) else None)])
