"""What the operators on tables are told: plain data that travels to the workers.

Columns are named by their place in the input. A schema never has the column of kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

__all__ = [
    "AggregateCall",
    "Calc",
    "ColumnExpression",
    "ColumnsToRows",
    "GroupAggregate",
    "Join",
    "Order",
    "Rank",
    "RowsToColumns",
    "Window",
    "WindowAggregate",
]


class ColumnExpression(Protocol):
    """An expression that is worked out for all rows of a batch at once. It is pickled with the spec."""

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """One value for each row. The batch may have the column of kinds behind those of the rows."""


@dataclass(frozen=True)
class Calc:
    """Rows for which a condition is true, projected. Kinds pass unchanged."""

    projections: tuple[ColumnExpression, ...]
    schema: pa.Schema
    """Of the result: a column for each projection."""
    condition: ColumnExpression | None = None
    """A boolean; rows for which it is NULL are left out."""


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a group."""

    function: str
    """COUNT, SUM, AVG, MIN or MAX."""
    argument: int | None
    """The column that it is applied to; None for COUNT(*)."""
    type: pa.DataType
    """Of the result."""
    distinct: bool = False
    filter: int | None = None
    """A boolean column: rows for which it is not true are left out."""


@dataclass(frozen=True)
class GroupAggregate:
    """Aggregates of groups, as a changelog: for each row what it changed, or with ``mini_batch`` for each group what
    the rows of a micro-batch changed together.

    Runs on a stream that is keyed by ``keys`` (:class:`~firesteel.runtime.columns.routing.KeyColumns`), also without
    any: then all rows are one group. The result has the keys' columns, then one for each call.
    """

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""
    retracts: bool = True
    """Whether the input may have anything but insertions. Without, MIN and MAX need no list of values."""
    update_before: bool = True
    """Whether -U rows are wanted: not if they go to an upsert sink."""
    mini_batch: bool = False
    state_ttl: int | None = None
    """Milliseconds of processing time after which a group that did not change is forgotten and emits nothing. As in
    Flink, rows that leave a group's results as they are then emit them again."""


@dataclass(frozen=True)
class Window:
    """Windows of event time, in milliseconds."""

    kind: str
    """TUMBLE, HOP, CUMULATE or SESSION."""
    size: int
    """Of a SESSION the gap: rows that are no further apart are in one."""
    slide: int = 0
    """How far apart the windows of HOP begin, or those of CUMULATE end."""
    offset: int = 0


@dataclass(frozen=True)
class WindowAggregate:
    """Aggregates of groups in windows of event time: one row for each group and window, when the watermark is at its
    end. Rows that come for a window that was given out are dropped.

    Runs on a stream that is keyed by ``keys``. The result has the keys' columns, one for each call, and one for each of
    the ``properties`` of the window.
    """

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: Window
    rowtime: int
    """The column with the event time."""
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""
    properties: tuple[str, ...] = ("start", "end", "time")
    """start, end (exclusive), and time: the last millisecond, which is the event time of the result."""
    retracts: bool = False


@dataclass(frozen=True)
class Join:
    """Rows of two streams whose keys are equal, and for which a condition is true. Both may change; the result is a
    changelog. A key that is NULL equals no other.

    Runs on two streams that are keyed by their keys. The result has the columns of both, or with SEMI and ANTI those of
    the left one.
    """

    kind: str
    """INNER, LEFT, RIGHT, FULL, SEMI or ANTI."""
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    left: pa.Schema
    right: pa.Schema
    schema: pa.Schema
    """Of the result."""
    condition: ColumnExpression | None = None
    """Over the columns of both."""
    state_ttl: tuple[int | None, int | None] = (None, None)
    """For each side: milliseconds of processing time after which a row that did not change is forgotten."""


@dataclass(frozen=True)
class Order:
    """One column that rows are ordered by."""

    column: int
    ascending: bool = True
    nulls_first: bool = True
    """Where NULLs come: by default first in ascending order; last in descending order is up to who plans."""


@dataclass(frozen=True)
class Rank:
    """The rows of each partition from place ``start`` to ``end`` in an order (ROW_NUMBER), as a changelog. With an end
    of 1 it is deduplication: the first row by ascending, the last one by descending order of time.

    Runs on a stream that is keyed by ``keys``. The result has the columns of the input, and the place behind them if it
    is wanted.
    """

    keys: tuple[int, ...]
    order: tuple[Order, ...]
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""
    end: int
    start: int = 1
    with_rank: bool = False
    retracts: bool = False
    """Whether the input may have anything but insertions. Then all rows are kept."""
    update_before: bool = True
    last_wins: bool = False
    """Whether of rows with equal order the one that came last is first."""
    state_ttl: int | None = None
    """Milliseconds of processing time after which a partition that did not change is forgotten."""


@dataclass(frozen=True)
class RowsToColumns:
    """Rows (:class:`~firesteel.common.Row`, tuples or lists) as batches."""

    schema: pa.Schema
    kinds: bool = False
    """Whether rows say of which kind they are; else all are insertions."""


@dataclass(frozen=True)
class ColumnsToRows:
    """Batches as rows: :class:`~firesteel.common.Row` with names and kinds."""

    schema: pa.Schema
