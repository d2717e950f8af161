"""Operators without state: projections and conditions, and the ways from rows to columns and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.types import Row, RowKind, make_row
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.errors import ProgramError, short_repr
from firesteel.runtime.columns.kinds import KIND, data_of, has_kinds, kinds_of, with_kinds
from firesteel.runtime.columns.nested import arrow_column, for_programs
from firesteel.runtime.operators.table.specs import Calc, ColumnsToEvents, ColumnsToRows, Replicate, RowsToColumns
from firesteel.runtime.operators.table.user_functions import UserFunctions
from firesteel.runtime.operators.table.window_times import milliseconds

__all__ = [
    "CalcOperator",
    "ColumnsToEventsOperator",
    "ColumnsToRowsOperator",
    "ReplicateOperator",
    "RowsToColumnsOperator",
    "rows_of",
]

_KIND_FIELD = pa.field(KIND, pa.int8())


@handles(Calc)
class CalcOperator(StreamOperator[Calc]):
    """Filters first, so that nothing is worked out for rows that do not pass."""

    def open(self, runtime_context: Any) -> None:
        self._schema = self.spec.schema
        self._with_kinds = self._schema.append(_KIND_FIELD)
        self._functions = UserFunctions((self.spec.condition, *self.spec.projections), runtime_context)

    def close(self) -> None:
        self._functions.close()

    def process(self, records: Records) -> None:
        now = self.context.timer_service().current_processing_time()
        results = [result for batch in records.values if (result := self._calc(batch, now)).num_rows]
        if results:
            self.context.emit(results)

    def _calc(self, batch: pa.RecordBatch, now: int) -> pa.RecordBatch:
        if self.spec.condition is not None:
            chosen = self.spec.condition.evaluate(batch, now)
            if pc.sum(chosen).as_py() != batch.num_rows:
                batch = batch.filter(chosen)
        columns = [_array(projection.evaluate(batch, now)) for projection in self.spec.projections]
        if has_kinds(batch.schema):
            return pa.RecordBatch.from_arrays([*columns, batch.column(batch.num_columns - 1)], schema=self._with_kinds)
        if not columns:
            # A batch without any column would have no rows: COUNT(*) needs nothing but their number.
            kinds = pa.array(np.zeros(batch.num_rows, np.int8))
            return pa.RecordBatch.from_arrays([kinds], schema=self._with_kinds)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


@handles(Replicate)
class ReplicateOperator(StreamOperator[Replicate]):
    def process(self, records: Records) -> None:
        results = []
        for batch in records.values:
            data, kinds = data_of(batch), kinds_of(batch)
            width = data.num_columns - 1
            times = pc.fill_null(data.column(width), 0).to_numpy(zero_copy_only=False)
            places = np.repeat(np.arange(data.num_rows), np.maximum(times, 0))
            if len(places):
                columns = data.select(range(width)).take(pa.array(places)).columns
                rows = pa.RecordBatch.from_arrays(columns, schema=self.spec.schema)
                results.append(with_kinds(rows, None if kinds is None else kinds[places]))
        if results:
            self.context.emit(results)


@handles(RowsToColumns)
class RowsToColumnsOperator(StreamOperator[RowsToColumns]):
    def process(self, records: Records) -> None:
        rows, schema = records.values, self.spec.schema
        if not rows:
            return
        if self.spec.rowtime:
            schema = schema.remove(len(schema) - 1)
        names = schema.names
        fields = [row.get_fields_by_names(names) if isinstance(row, Row) else row for row in rows]
        try:
            columns = [
                arrow_column(values, field.type) for values, field in zip(_transposed(fields), schema, strict=True)
            ]
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise self._misfit(fields, error) from error
        if self.spec.rowtime:
            columns.append(self._rowtimes(records))
        batch = pa.RecordBatch.from_arrays(columns, schema=self.spec.schema)
        if self.spec.kinds:
            kinds = [row.get_row_kind().value if isinstance(row, Row) else 0 for row in rows]
            batch = with_kinds(batch, pa.array(kinds, pa.int8()) if any(kinds) else None)
        self.context.emit([batch])

    def _rowtimes(self, records: Records) -> pa.Array:
        if records.timestamps is None:
            raise ProgramError(
                "The table takes its event time from the stream, whose records have no timestamps. Call "
                "assign_timestamps_and_watermarks() before."
            )
        kind = self.spec.schema.field(len(self.spec.schema) - 1).type
        return pa.array(records.timestamps, pa.timestamp("ms", kind.tz)).cast(kind)

    def _misfit(self, rows: list[Any], error: Exception) -> ProgramError:
        schema = self.spec.schema.remove(len(self.spec.schema) - 1) if self.spec.rowtime else self.spec.schema
        for row in rows:
            if len(row) != len(schema):
                return ProgramError(
                    f"A row of {len(row)} fields came where {len(schema)} are declared ({', '.join(schema.names)}): "
                    f"{short_repr(row, 120)}."
                )
            for value, field in zip(row, schema, strict=True):
                try:
                    arrow_column([value], field.type)
                except (pa.ArrowException, ValueError, TypeError, OverflowError):
                    return ProgramError(
                        f"Column {field.name!r} is declared as {field.type}, got {type(value).__name__} "
                        f"{short_repr(value, 80)} in row {short_repr(row, 120)}."
                    )
        return ProgramError(f"Rows do not fit the schema {schema.names}: {error}")


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    convert = for_programs(column.type)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _transposed(rows: list[Any]) -> list[Any]:
    return list(zip(*rows, strict=True))


_KINDS = tuple(RowKind)


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """The rows of a batch.

    >>> rows_of(pa.record_batch({"a": [1], "$kind": pa.array([3], pa.int8())}))[0].get_row_kind().name
    'DELETE'
    """
    data = data_of(batch)
    names = tuple(data.schema.names)
    columns = [_values(column) for column in data.columns]
    values = map(list, zip(*columns, strict=True)) if columns else ([] for _ in range(batch.num_rows))
    kinds = kinds_of(batch)
    if kinds is None:
        return [make_row(names, row) for row in values]
    return [make_row(names, row, _KINDS[kind]) for row, kind in zip(values, kinds.tolist(), strict=True)]


@handles(ColumnsToEvents)
class ColumnsToEventsOperator(StreamOperator[ColumnsToEvents]):
    def process(self, records: Records) -> None:
        for batch in records.values:
            nothing = [None] * batch.num_rows
            columns = [nothing if at is None else _values(batch.column(at)) for at in self.spec.columns]
            rowtime = self.spec.rowtime
            times = milliseconds(batch.column(rowtime)).tolist() if rowtime is not None else None
            self.context.emit(list(zip(*columns, strict=True)), times)


@handles(ColumnsToRows)
class ColumnsToRowsOperator(StreamOperator[ColumnsToRows]):
    def process(self, records: Records) -> None:
        place = self.spec.rowtime
        for batch in records.values:
            if place is None:
                self.context.emit(rows_of(batch))
                continue
            kind = batch.column(place).type
            times = batch.column(place).cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
            if self.spec.drops_rowtime:
                batch = batch.select([at for at in range(batch.num_columns) if at != place])
            self.context.emit(rows_of(batch), pc.fill_null(times, 0).to_pylist())
