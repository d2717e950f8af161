"""The specs of operators for OVER windows and for windows as columns of a table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from firesteel.runtime.operators.table.specs import AggregateCall, ColumnExpression, Order, Window

__all__ = ["Expand", "OverAggregate", "SortedOver", "TimeSort", "UnpackRows", "WindowJoin", "WindowRank", "WindowTable"]


@dataclass(frozen=True)
class OverAggregate:
    """Aggregates over the rows before each row of its partition, in the order of time: the row, and a column for each
    call behind it. With event time a row is given out when the watermark has come to it.

    Runs on a stream of insertions that is keyed by ``keys``.
    """

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""
    time: int | None = None
    """The column with the event time; None: rows are taken at once, in the order in which they come."""
    rows: bool = False
    """Whether the frame counts rows (ROWS). With RANGE it is a span of time, and rows of the same time are in it
    together."""
    preceding: int | None = None
    """How many rows, or milliseconds, before a row its frame begins; None: with the first row."""
    state_ttl: int | None = None
    """Milliseconds of processing time after which a frame that begins with the first row is forgotten if its key did
    not come; it then begins anew."""


@dataclass(frozen=True)
class SortedOver:
    """Aggregates over the rows before each row of its partition, in any order. A row that comes or goes changes those
    of the rows behind it, so the result is a changelog.

    Runs on a stream that is keyed by ``keys``, and keeps all its rows.
    """

    keys: tuple[int, ...]
    order: tuple[Order, ...]
    calls: tuple[AggregateCall, ...]
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""
    rows: bool = False
    """Whether rows of equal order count one by one (ROWS); with RANGE they are in each other's frame."""


@dataclass(frozen=True)
class TimeSort:
    """The rows in the order of time, those of the same time in another order. A row is given out when the watermark has
    come to it.

    Runs alone on a stream of insertions that is keyed by nothing.
    """

    time: int | None
    """The column with the event time; None: rows that come together are put in order."""
    order: tuple[Order, ...]
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""


@dataclass(frozen=True)
class WindowTable:
    """Each row once for each of its windows, with the window's columns behind it."""

    window: Window
    rowtime: int | None
    """The column with the event time; None: processing time."""
    input: pa.Schema
    schema: pa.Schema
    """Of the result: the input's columns, start, end and time of the window."""


@dataclass(frozen=True)
class WindowJoin:
    """Rows of two streams of insertions that are in the same window and have equal keys, when the window has ended.

    Runs on two streams that are keyed by their keys, which the begin of the window is one of.
    """

    kind: str
    """INNER, LEFT, RIGHT, FULL, SEMI or ANTI."""
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    left_end: int
    right_end: int
    """The columns with the end of the window."""
    left: pa.Schema
    right: pa.Schema
    schema: pa.Schema
    """Of the result."""
    condition: ColumnExpression | None = None
    """Over the columns of both."""
    time_zone: str | None = None
    """Where the ends of windows are local times: the time zone."""


@dataclass(frozen=True)
class WindowRank:
    """The first rows of each partition and window, when the window has ended: insertions only.

    Runs on a stream of insertions that is keyed by ``keys``, which the window's begin and end are among.
    """

    keys: tuple[int, ...]
    order: tuple[Order, ...]
    window_end: int
    """The column with the end of the window."""
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""
    last: int
    first: int = 1
    with_rank: bool = False
    time_zone: str | None = None
    last_wins: bool = False
    """Whether of rows with equal order the one that came last is first."""


@dataclass(frozen=True)
class Expand:
    """Each row several times, each time with other columns: what GROUPING SETS are made of. Kinds pass unchanged."""

    projections: tuple[tuple[ColumnExpression, ...], ...]
    schema: pa.Schema
    """Of the result: a column for each expression of a projection."""


@dataclass(frozen=True)
class UnpackRows:
    """Lists of rows as rows: what a session has collected."""

    rows: int
    """The column with the lists. Columns behind it are repeated for each row, those before it are left out."""
    schema: pa.Schema
    """Of the result: the fields of the rows, and the columns behind."""
