"""Tables, and what is done row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.logical.plan.base import OneInput, Plan
from firesteel.table.types.data_types import DataType, RowType

__all__ = [
    "Correlate",
    "Filter",
    "Project",
    "Replicate",
    "Scan",
    "Sort",
    "SortOrder",
    "UnionAll",
    "Values",
]


@dataclass(frozen=True)
class Scan(Plan):
    """Reads a table. ``table`` is what the catalog has under the path."""

    path: tuple[str, ...]
    columns: RowType
    table: Any = field(compare=False, repr=False)
    rowtimes: tuple[str, ...] = ()
    """Columns that the table has watermarks for. One of them may be computed above the scan."""
    watermark: Expression | None = None
    """Over the columns of the scan."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the connector that the query has changed."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns.field_names())

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(self.columns.field_types())


@dataclass(frozen=True)
class Values(Plan):
    """Rows that stand in the query: expressions without any column."""

    rows: tuple[tuple[Expression, ...], ...]
    columns: RowType

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns.field_names())

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(self.columns.field_types())


@dataclass(frozen=True)
class Project(OneInput):
    """Expressions over the columns of the input."""

    expressions: tuple[Expression, ...]
    column_names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.column_names

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(expression.type for expression in self.expressions)


@dataclass(frozen=True)
class Filter(OneInput):
    """Rows for which a condition is TRUE."""

    condition: Expression


@dataclass(frozen=True)
class SortOrder:
    """A column that rows are ordered by."""

    column: int
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class Sort(OneInput):
    """The rows in an order, without the first ``offset``, and at most ``limit`` of them. Without an order any of them.
    Only batch mode has all of it: a stream can give the first rows, and takes them back when others come."""

    order: tuple[SortOrder, ...]
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class UnionAll(Plan):
    """The rows of several inputs with the same types."""

    branches: tuple[Plan, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.branches[0].names

    @property
    def types(self) -> tuple[DataType, ...]:
        return self.branches[0].types

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return self.branches


@dataclass(frozen=True)
class Replicate(OneInput):
    """Each row as often as its last column says, without that column."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.input.names[:-1]

    @property
    def types(self) -> tuple[DataType, ...]:
        return self.input.types[:-1]


@dataclass(frozen=True)
class Correlate(OneInput):
    """Each row with the rows that a table function or UNNEST makes of it; ``kind`` LEFT keeps those of which nothing is
    made. The columns are some of the input, then those that are made: the fields of the call's type, which is a ROW."""

    call: Call
    kind: str
    kept: tuple[int, ...]
    column_names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.column_names

    @property
    def types(self) -> tuple[DataType, ...]:
        made = self.call.type
        assert isinstance(made, RowType)
        fields = (kind.nullable() if self.kind == "LEFT" else kind for kind in made.field_types())
        return (*(self.input.types[index] for index in self.kept), *fields)
