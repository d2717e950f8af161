"""Between kinds of rows and columns that tell them."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.logical.plan.base import OneInput
from firesteel.table.types.data_types import MAX_LENGTH, DataType, VarCharType

__all__ = ["FromChangelog", "ToChangelog"]


@dataclass(frozen=True)
class ToChangelog(OneInput):
    """Each change as an inserted row, with its kind as the first column. Changes without a code are left out."""

    column: str
    codes: tuple[str | None, ...]
    """By kind: +I, -U, +U, -D."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column, *self.input.names)

    @property
    def types(self) -> tuple[DataType, ...]:
        return (VarCharType(MAX_LENGTH), *self.input.types)


@dataclass(frozen=True)
class FromChangelog(OneInput):
    """Inserted rows as the changes that a column tells of, without that column."""

    place: int
    kinds: tuple[tuple[str, int], ...]
    """What the column says, and the kind of the change."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for index, name in enumerate(self.input.names) if index != self.place)

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(kind for index, kind in enumerate(self.input.types) if index != self.place)
