"""What all relations have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from firesteel.table.logical.expressions import InputRef
from firesteel.table.types.data_types import DataType, RowField, RowType

__all__ = [
    "OneInput",
    "Plan",
    "unique_names",
]


@dataclass(frozen=True)
class Plan(ABC):
    """The root of all relations."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The columns' names."""

    @property
    @abstractmethod
    def types(self) -> tuple[DataType, ...]:
        """The columns' types."""

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
class OneInput(Plan):
    """A relation over another one, with its columns unless it says otherwise."""

    input: Plan

    @property
    def names(self) -> tuple[str, ...]:
        return self.input.names

    @property
    def types(self) -> tuple[DataType, ...]:
        return self.input.types

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)


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
