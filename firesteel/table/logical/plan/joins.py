"""Two relations that become one."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.table.logical.expressions import Expression
from firesteel.table.logical.plan.base import Plan, unique_names
from firesteel.table.logical.plan.relations import Scan
from firesteel.table.types.data_types import DataType

__all__ = [
    "Join",
    "LookupJoin",
    "TemporalJoin",
]


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
    null_equal: tuple[bool, ...] = ()
    """For each key whether NULL equals NULL; nowhere if there are none."""
    state_ttl: tuple[int | None, int | None] = field(default=(None, None), repr=False)
    """For each side milliseconds after which a row is forgotten, where the query says so."""

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
class _EachLeftRow(Plan):
    """A join that gives each left row the right ones of a moment. ``kind`` is INNER or LEFT."""

    left: Plan
    right: Plan
    kind: str
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    condition: Expression | None

    @property
    def names(self) -> tuple[str, ...]:
        return unique_names([*self.left.names, *self.right.names])

    @property
    def types(self) -> tuple[DataType, ...]:
        return (*self.left.types, *(kind.nullable() if self.kind == "LEFT" else kind for kind in self.right.types))


@dataclass(frozen=True)
class TemporalJoin(_EachLeftRow):
    """Rows of the left side, each with the version of the right one that was valid at its time: columns of both.
    ``times`` are the columns with the event time."""

    times: tuple[int, int]

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class LookupJoin(_EachLeftRow):
    """Rows of the left side, each with what a table of a connector has for it when it comes. ``right`` is the scan,
    what is computed and checked of its columns lies above; ``keys`` are expressions over the left columns."""

    right: Scan
    options: tuple[tuple[str, str], ...] = ()
    """Of the hint LOOKUP."""

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.left,)
