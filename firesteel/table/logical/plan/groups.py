"""Groups of rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.table.logical.expressions import AggregateCall
from firesteel.table.logical.plan.base import OneInput, unique_names
from firesteel.table.types.data_types import BigIntType, DataType, RowType

__all__ = [
    "Aggregate",
    "Expand",
    "TableAggregate",
]


@dataclass(frozen=True)
class Aggregate(OneInput):
    """Groups: the columns of the key, then one for each aggregate. Without a key all rows are one group."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    column_names: tuple[str, ...]
    state_ttl: int | None = field(default=None, repr=False)
    """Milliseconds after which a group is forgotten, where the query says so."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.column_names

    @property
    def types(self) -> tuple[DataType, ...]:
        return (*(self.input.types[key] for key in self.keys), *(call.type for call in self.calls))


@dataclass(frozen=True)
class TableAggregate(OneInput):
    """Groups and the rows that a user's table aggregate function gives for each: key and the function's columns."""

    keys: tuple[int, ...]
    call: AggregateCall
    column_names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.column_names

    @property
    def types(self) -> tuple[DataType, ...]:
        assert isinstance(self.call.type, RowType)
        return (*(self.input.types[key] for key in self.keys), *self.call.type.field_types())


@dataclass(frozen=True)
class Expand(OneInput):
    """Each row once for each grouping set: columns that the set does not have are NULL, and its number is behind."""

    sets: tuple[tuple[int, ...], ...]
    """Of each grouping set: the columns that stay."""
    cleared: tuple[int, ...]
    """The columns that are keys of some set."""

    @property
    def names(self) -> tuple[str, ...]:
        return unique_names([*self.input.names, "$e"])

    @property
    def types(self) -> tuple[DataType, ...]:
        everywhere = set(self.cleared).intersection(*map(set, self.sets))
        kinds = [
            kind.nullable() if index in self.cleared and index not in everywhere else kind
            for index, kind in enumerate(self.input.types)
        ]
        return (*kinds, BigIntType(is_nullable=False))
