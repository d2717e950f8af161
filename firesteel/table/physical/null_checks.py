"""Columns of a table that are NOT NULL: a row with NULL in one of them fails the job."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from firesteel.datastream.data_stream import DataStream
from firesteel.errors import InputError
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import Calc
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import Plan
from firesteel.table.types.arrow import arrow_schema

__all__ = ["checked_for_nulls"]


@dataclass(frozen=True)
class _Column:
    """A column of a batch, which must not have NULLs if it has a name."""

    index: int
    name: str | None
    path: str

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        """The column for all rows."""
        column = batch.column(self.index)
        if self.name is not None and column.null_count:
            raise InputError(
                f"Column {self.name} of {self.path} is NOT NULL, and a row has NULL in it. Leave such rows out "
                f"(WHERE {self.name} IS NOT NULL), or declare the column as nullable."
            )
        return column


def checked_for_nulls(stream: DataStream, plan: Plan, table: DeclaredTable, path: str) -> DataStream:
    """The stream, with a check where a column that may be NULL goes into one that may not."""
    pairs = list(zip(table.writable, plan.types, strict=True))
    if not any(kind.is_nullable and not column.type.is_nullable for column, kind in pairs):
        return stream
    schema = arrow_schema(plan.names, plan.types)
    projections = tuple(
        _Column(index, column.name if kind.is_nullable and not column.type.is_nullable else None, path)
        for index, (column, kind) in enumerate(pairs)
    )
    return stream.transform("ConstraintEnforcer", Calc(projections, schema), ColumnsType(schema))
