"""Columns of a table that are NOT NULL: a row with NULL in one of them fails the job, or is dropped."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.configuration import Configuration
from firesteel.datastream.data_stream import DataStream
from firesteel.errors import ConfigurationError, InputError
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import Calc
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import Plan
from firesteel.table.types.arrow import arrow_schema

__all__ = ["checked_for_nulls", "drops_nulls", "may_have_nulls"]

ENFORCER = "table.exec.sink.not-null-enforcer"


def drops_nulls(configuration: Configuration) -> bool:
    """Whether rows with NULL where it must not be are dropped, instead of failing the job."""
    chosen = configuration.get_string(ENFORCER, "ERROR")
    if chosen.upper() not in ("ERROR", "DROP"):
        raise ConfigurationError(f"{ENFORCER} is ERROR (a row fails the job) or DROP (it is left out), got {chosen!r}.")
    return chosen.upper() == "DROP"


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
                f"(WHERE {self.name} IS NOT NULL, or for all sinks {ENFORCER} = DROP), or declare the column as "
                "nullable."
            )
        return column


@dataclass(frozen=True)
class _NoNulls:
    """Which rows of a batch have no NULL in these columns."""

    indices: tuple[int, ...]

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        """A boolean for each row."""
        first, *others = (pc.is_valid(batch.column(index)) for index in self.indices)
        for other in others:
            first = pc.and_(first, other)
        return first


def _checked_columns(plan: Plan, table: DeclaredTable) -> dict[int, str]:
    """Columns that may be NULL in the query and may not in the table: their places and names."""
    pairs = enumerate(zip(table.writable, plan.types, strict=True))
    return {index: column.name for index, (column, kind) in pairs if kind.is_nullable and not column.type.is_nullable}


def may_have_nulls(plan: Plan, table: DeclaredTable) -> bool:
    """Whether rows of the plan have to be looked at before they go into the table."""
    return bool(_checked_columns(plan, table))


def checked_for_nulls(stream: DataStream, plan: Plan, table: DeclaredTable, path: str, drop: bool) -> DataStream:
    """The stream, with a check where a column that may be NULL goes into one that may not."""
    checked = _checked_columns(plan, table)
    if not checked:
        return stream
    schema = arrow_schema(plan.names, plan.types)
    names = {} if drop else checked
    projections = tuple(_Column(index, names.get(index), path) for index in range(len(plan.names)))
    condition = _NoNulls(tuple(checked)) if drop else None
    return stream.transform("ConstraintEnforcer", Calc(projections, schema, condition), ColumnsType(schema))
