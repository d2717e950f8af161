"""The means to run one operator on tables by itself (rows in, rows out, time, and restarts), or in a program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.datastream import DataStream
from firesteel.datastream.operators import Records, StreamOperator
from firesteel.runtime.columns.kinds import with_kinds
from firesteel.runtime.operators.table import ColumnsType, RowsToColumns, rows_of, rowtime_strategy
from firesteel.runtime.state.columnar.slot_pager import SlotPager
from firesteel.runtime.state.store import MemoryStore

Change = tuple[int, tuple[Any, ...]]
"""The kind of a row, and the row."""


class Stub:
    """Stands for the context of an operator; state is in a store of its own."""

    def __init__(self, store: MemoryStore, shapes: dict[str, Any], memory: int | None = None) -> None:
        self.store, self.shapes = store, shapes
        self.pager = SlotPager(memory)
        self.paged: set[str] = set()
        self.tables: dict[str, Any] = {}
        self.emitted: list[pa.RecordBatch] = []
        self.watermark = -(1 << 60)
        self.now = 0
        self.timers: dict[int, set[Any]] = {}
        self._key: Any = None

    def timer_service(self) -> Any:
        return self

    def current_watermark(self) -> int:
        return self.watermark

    def current_processing_time(self) -> int:
        return self.now

    def set_current_key(self, key: Any) -> None:
        self._key = key

    def register_processing_time_timer(self, moment: int) -> None:
        self.timers.setdefault(moment, set()).add(self._key)

    def get_metrics_group(self) -> Any:
        return self

    def counter(self, name: str) -> Any:
        return self

    def inc(self, count: int = 1) -> None:
        """Nobody counts here."""

    def keep_columns(self, name: str, table: Any, paged: bool = False) -> None:
        self.tables[name] = table
        if paged:
            self.pager.add(table)
            self.paged.add(name)
        table.attach(name.encode(), self.store, self.shapes.setdefault(name, {}))

    def pieces(self, batch: pa.RecordBatch, keys: Sequence[int], before_release: Any = None) -> Any:
        return self.pager.pieces(batch, [batch.column(key) for key in keys], self.store, before_release)

    def emit(self, values: list[pa.RecordBatch], timestamps: Any = None) -> None:
        self.emitted += values

    def end_batch(self) -> None:
        self.store.write(self.pager.changes())
        for name, table in self.tables.items():
            if name not in self.paged:
                self.store.write(table.changes())
            table.attach(name.encode(), self.store, self.shapes[name], unchanged=True)

    def read_again(self) -> None:
        """State is what the store has, as before a batch that is done again."""
        for name, table in self.tables.items():
            table.attach(name.encode(), self.store, self.shapes[name])

    def changes(self) -> list[Change]:
        return [(row.get_row_kind().value, tuple(row)) for batch in self.emitted for row in rows_of(batch)]


class OperatorRun:
    """An operator over some batches, with a restart wherever it is asked for."""

    def __init__(self, operator: type[StreamOperator[Any]], spec: Any, memory: int | None = None) -> None:
        """``memory``: bytes that tables may take which can be in pages."""
        self._class, self._spec, self._memory = operator, spec, memory
        self._store, self._shapes = MemoryStore(), {}
        self._stubs: list[Stub] = []
        self._watermark = -(1 << 60)
        self.restart()

    @property
    def stub(self) -> Stub:
        """The context since the last restart."""
        return self._stubs[-1]

    def restart(self) -> None:
        if self._stubs:
            self.end_batch()
        stub = Stub(self._store, self._shapes, self._memory)
        stub.watermark = self._watermark
        self._stubs.append(stub)
        self.operator = self._class(self._spec)
        self.operator.context = stub  # type: ignore[assignment]
        self.operator.open(stub)  # type: ignore[arg-type]

    def end_batch(self) -> None:
        self.operator.end_batch()
        self.stub.end_batch()

    def take(self, rows: Sequence[Change], schema: pa.Schema, input: int = 0) -> None:
        if rows:
            self.operator.process(Records([batch_of(rows, schema)], input=input))

    def watermark(self, value: int) -> None:
        self._watermark = self.stub.watermark = max(value, self._watermark)
        self.operator.on_watermark(value)

    @property
    def changes(self) -> list[Change]:
        """All that was emitted."""
        return [change for stub in self._stubs for change in stub.changes()]

    def taken(self) -> list[Change]:
        """What was emitted since this was asked last."""
        changes = self.changes
        for stub in self._stubs:
            stub.emitted.clear()
        return changes

    @property
    def entries(self) -> int:
        """How many entries of state are kept."""
        return sum(table.entries for table in self.stub.tables.values())


def batch_of(rows: Sequence[Change], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*(row for _, row in rows), strict=True))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    kinds = np.array([kind for kind, _ in rows], np.int8)
    return with_kinds(pa.RecordBatch.from_arrays(arrays, schema=schema), kinds if kinds.any() else None)


# In a program


@dataclass(frozen=True)
class Behind:
    """Some milliseconds before the time in a column."""

    column: int
    delay: int

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        return pc.subtract(batch.column(self.column).cast(pa.int64()), self.delay)


def timed_columns(rows: DataStream, schema: pa.Schema, watermark: Behind, name: str = "") -> DataStream:
    """Rows as columns, with watermarks. The name tells two such streams of a program apart."""
    batches = rows.transform("Columns", RowsToColumns(schema), ColumnsType(schema)).uid(f"columns{name}")
    timed = batches.set_parallelism(1).assign_timestamps_and_watermarks(rowtime_strategy(watermark))
    return timed.uid(f"time{name}").set_parallelism(1)
