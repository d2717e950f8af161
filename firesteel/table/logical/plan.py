"""The relational tree: what a query does, with every name resolved and every type known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.table.logical.expressions import AggregateCall, Expression, InputRef
from firesteel.table.types.data_types import BigIntType, DataType, RowField, RowType, TimestampType

__all__ = [
    "Aggregate",
    "Filter",
    "Join",
    "Plan",
    "Project",
    "RowNumber",
    "Scan",
    "SortOrder",
    "UnionAll",
    "Values",
    "WindowTable",
    "unique_names",
]


@dataclass(frozen=True)
class Plan:
    """The root of all relations."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        raise NotImplementedError

    @property
    def types(self) -> tuple[DataType, ...]:
        """The columns' types."""
        raise NotImplementedError

    @property
    def row_type(self) -> RowType:
        """Names and types together."""
        pairs = zip(self.names, self.types, strict=True)
        return RowType(tuple(RowField(name, kind) for name, kind in pairs), is_nullable=False)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """What it reads from."""
        return ()

    def refs(self) -> list[InputRef]:
        """All columns, as expressions over this relation."""
        return [InputRef(index, kind) for index, kind in enumerate(self.types)]


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
class Project(Plan):
    """Expressions over the columns of the input."""

    input: Plan
    expressions: tuple[Expression, ...]
    column_names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.column_names

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(expression.type for expression in self.expressions)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Filter(Plan):
    """Rows for which a condition is TRUE."""

    input: Plan
    condition: Expression

    @property
    def names(self) -> tuple[str, ...]:
        return self.input.names

    @property
    def types(self) -> tuple[DataType, ...]:
        return self.input.types

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Aggregate(Plan):
    """Groups: the columns of the key, then one for each aggregate. Without a key all rows are one group."""

    input: Plan
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    column_names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.column_names

    @property
    def types(self) -> tuple[DataType, ...]:
        return (*(self.input.types[key] for key in self.keys), *(call.type for call in self.calls))

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Join(Plan):
    """Pairs of rows with equal keys for which a condition over the columns of both holds. ``kind`` is INNER, LEFT,
    RIGHT, FULL, SEMI or ANTI; of the last two only the left columns stay."""

    left: Plan
    right: Plan
    kind: str
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    condition: Expression | None
    column_names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.column_names

    @property
    def types(self) -> tuple[DataType, ...]:
        left = [kind.nullable() if self.kind in ("RIGHT", "FULL") else kind for kind in self.left.types]
        if self.kind in ("SEMI", "ANTI"):
            return tuple(left)
        return (*left, *(kind.nullable() if self.kind in ("LEFT", "FULL") else kind for kind in self.right.types))

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class SortOrder:
    """A column that rows are ordered by."""

    column: int
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class RowNumber(Plan):
    """The columns of the input, and the place of each row among those of its partition."""

    input: Plan
    partition: tuple[int, ...]
    order: tuple[SortOrder, ...]
    number_name: str

    @property
    def names(self) -> tuple[str, ...]:
        return unique_names([*self.input.names, self.number_name])

    @property
    def types(self) -> tuple[DataType, ...]:
        return (*self.input.types, BigIntType(is_nullable=False))

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)


@dataclass(frozen=True)
class WindowTable(Plan):
    """The columns of the input, and those of the windows that a row is in: window_start, window_end, window_time."""

    input: Plan
    time: int
    kind: str
    size: int
    slide: int
    offset: int

    @property
    def names(self) -> tuple[str, ...]:
        return unique_names([*self.input.names, "window_start", "window_end", "window_time"])

    @property
    def types(self) -> tuple[DataType, ...]:
        moment = TimestampType(3, is_nullable=False)
        return (*self.input.types, moment, moment, moment)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)


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


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names that come twice get a number, as in Flink.

    >>> unique_names(["a", "b", "a", "a"])
    ('a', 'b', 'a0', 'a1')
    """
    taken: set[str] = set()
    found = []
    for name in names:
        unique, number = name, 0
        while unique in taken:
            unique, number = f"{name}{number}", number + 1
        taken.add(unique)
        found.append(unique)
    return tuple(found)
