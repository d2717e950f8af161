"""Rows among their neighbours: windows, OVER, places."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.logical.expressions import AggregateCall
from firesteel.table.logical.plan.base import OneInput, unique_names
from firesteel.table.logical.plan.relations import SortOrder
from firesteel.table.types.data_types import BigIntType, DataType, LocalZonedTimestampType, TimestampType

__all__ = [
    "OverWindow",
    "RowNumber",
    "SortedWindow",
    "WindowTable",
    "WithCalls",
]


@dataclass(frozen=True)
class WindowTable(OneInput):
    """The columns of the input, and those of the windows that a row is in: window_start, window_end, window_time."""

    time: int
    kind: str
    size: int
    slide: int
    offset: int
    partition: tuple[int, ...] = ()
    """Of SESSION: the columns whose values have sessions of their own."""

    @property
    def names(self) -> tuple[str, ...]:
        return unique_names([*self.input.names, "window_start", "window_end", "window_time"])

    @property
    def types(self) -> tuple[DataType, ...]:
        moment = TimestampType(3, is_nullable=False)
        zoned = isinstance(self.input.types[self.time], LocalZonedTimestampType)
        time = LocalZonedTimestampType(3, is_nullable=False) if zoned else moment
        return (*self.input.types, moment, moment, time)


class WithCalls(OneInput):
    """The columns of the input, and one for each call."""

    calls: tuple[AggregateCall, ...]
    """A field of each kind, at its own place."""

    @property
    def names(self) -> tuple[str, ...]:
        return unique_names([*self.input.names, *(f"w{index}$o{index}" for index in range(len(self.calls)))])

    @property
    def types(self) -> tuple[DataType, ...]:
        return (*self.input.types, *(call.type for call in self.calls))


@dataclass(frozen=True)
class OverWindow(WithCalls):
    """The columns of the input, and aggregates of the rows before each row of its partition, in the order of time."""

    partition: tuple[int, ...]
    time: int
    rows: bool
    """Whether the frame counts rows; else it is a span of time."""
    preceding: int | None
    """Rows or milliseconds before the current row; None: all rows."""
    calls: tuple[AggregateCall, ...]


@dataclass(frozen=True)
class SortedWindow(WithCalls):
    """The columns of the input, and aggregates of the rows before each row of its partition, in any order."""

    partition: tuple[int, ...]
    order: tuple[SortOrder, ...]
    rows: bool
    """Whether rows of equal order count one by one."""
    calls: tuple[AggregateCall, ...]


@dataclass(frozen=True)
class RowNumber(OneInput):
    """The columns of the input, and the place of each row among those of its partition."""

    partition: tuple[int, ...]
    order: tuple[SortOrder, ...]
    number_name: str

    @property
    def names(self) -> tuple[str, ...]:
        return unique_names([*self.input.names, self.number_name])

    @property
    def types(self) -> tuple[DataType, ...]:
        return (*self.input.types, BigIntType(is_nullable=False))
