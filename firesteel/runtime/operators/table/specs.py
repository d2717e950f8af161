"""Specs of the table operators: plain data that travels to the workers.

Columns are named by their place in the input. A schema never has the column of kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.connectors.table.lookup import LookupCache, LookupTable

__all__ = [
    "AggregateCall",
    "Calc",
    "ChangelogNormalize",
    "ColumnExpression",
    "ColumnsToEvents",
    "ColumnsToRows",
    "Correlate",
    "FirstRow",
    "FromChangelog",
    "GroupAggregate",
    "IntervalJoin",
    "Join",
    "KeyConflicts",
    "LookupJoin",
    "Order",
    "Rank",
    "Replicate",
    "RowsExpression",
    "RowsToColumns",
    "TableAggregate",
    "TemporalJoin",
    "ToChangelog",
    "Window",
    "WindowAggregate",
]


class ColumnExpression(Protocol):
    """An expression that is worked out for all rows of a batch at once. It is pickled with the spec."""

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        """One value for each row. The batch may have the column of kinds behind those of the rows. ``now`` is the
        processing time, in milliseconds: that of the micro-batch, so that a repeated one gives the same."""


@dataclass(frozen=True)
class Calc:
    """Rows for which a condition is true, projected. Kinds pass unchanged."""

    projections: tuple[ColumnExpression, ...]
    schema: pa.Schema
    """Of the result: a column for each projection."""
    condition: ColumnExpression | None = None
    """A boolean; rows for which it is NULL are left out."""


class RowsExpression(Protocol):
    """Makes any number of rows of each row of a batch. It is pickled with the spec."""

    def rows(self, batch: pa.RecordBatch, now: int) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
        """For each row that is made the place of the row that it is made of, in order; and the columns."""


@dataclass(frozen=True)
class Correlate:
    """Some columns of each row, beside the rows that are made of it. Kinds pass unchanged."""

    made: RowsExpression
    kept: tuple[int, ...]
    """The columns of the input that stay."""
    schema: pa.Schema
    """Of the result: the columns that stay, then those that are made."""
    outer: bool = False
    """Whether a row of which nothing is made stays, with NULLs."""


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a group."""

    function: str
    """COUNT, SUM, AVG, MIN, MAX or another one of
    :func:`~firesteel.runtime.operators.table.aggregate_functions.accumulator_of`."""
    argument: int | None
    """The column that it is applied to; None for COUNT(*)."""
    type: pa.DataType
    """Of the result."""
    distinct: bool = False
    filter: int | None = None
    """A boolean column: rows for which it is not true are left out."""
    user: Any = None
    """A user's function: :class:`~firesteel.runtime.operators.table.user_accumulators.UserAggregate`."""
    arguments: tuple[int, ...] = ()
    """The columns that the user's function is applied to."""
    options: tuple[Any, ...] = ()
    """Constants: what stands between values (LISTAGG), how many rows back and what if there is none (LAG)."""


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
class TableAggregate:
    """A user's table aggregate function of groups, as a changelog of what each micro-batch changed.

    Runs on a stream that is keyed by ``keys``. The result has the keys' columns, then those of the function.
    """

    keys: tuple[int, ...]
    call: AggregateCall
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""
    retracts: bool = True


@dataclass(frozen=True)
class Window:
    """Windows of event time, in milliseconds."""

    kind: str
    """TUMBLE, HOP, CUMULATE or SESSION; or ENDS: each row has the end of its window."""
    size: int
    """Of a SESSION the gap: rows that are no further apart are in one."""
    slide: int = 0
    """How far apart the windows of HOP begin, or those of CUMULATE end."""
    offset: int = 0
    time_zone: str | None = None
    """Where windows are of local time: that of which time zone."""


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
    rowtime: int | None
    """The column with the event time; None: windows are of processing time, and end with it."""
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""
    properties: tuple[str, ...] = ("start", "end", "time")
    """start, end (exclusive), and time: the last millisecond, which is the event time of the result."""
    retracts: bool = False


@dataclass(frozen=True)
class _JoinedInputs:
    """The fields that the specs of all joins begin with."""

    kind: str
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    left: pa.Schema
    right: pa.Schema
    schema: pa.Schema
    """Of the result."""


@dataclass(frozen=True)
class Join(_JoinedInputs):
    """Rows of two streams whose keys are equal, and for which a condition is true. Both may change; the result is a
    changelog. A key that is NULL equals no other.

    Runs on two streams that are keyed by their keys. The result has the columns of both, or with SEMI and ANTI those of
    the left one. The kind is INNER, LEFT, RIGHT, FULL, SEMI or ANTI.
    """

    condition: ColumnExpression | None = None
    """Over the columns of both."""
    state_ttl: tuple[int | None, int | None] = (None, None)
    """For each side: milliseconds of processing time after which a row that did not change is forgotten."""
    null_equal: tuple[bool, ...] = ()
    """For each key whether NULL equals NULL (IS NOT DISTINCT FROM); nowhere if there are none."""


@dataclass(frozen=True)
class IntervalJoin(_JoinedInputs):
    """Rows of two streams of insertions whose keys are equal and whose times are near: the left row's time minus the
    right one's, in milliseconds, is from ``lower`` to ``upper``. Rows are forgotten when time has passed them by; on a
    side that counts without a match (LEFT, RIGHT, FULL) they then come with NULLs, if they never had one.

    Runs on two streams that are keyed by their keys. The result has the columns of both. The kind is INNER, LEFT, RIGHT
    or FULL.
    """

    times: tuple[int, int]
    """The columns with the event time of both sides."""
    lower: int
    upper: int
    condition: ColumnExpression | None = None
    """Over the columns of both."""
    processing_time: bool = False
    """Whether the time of a row is the clock's when it comes."""


@dataclass(frozen=True)
class TemporalJoin(_JoinedInputs):
    """Rows of the left stream, each with the version of the right table that was valid at its time: the latest one
    with the same key that is not later. A left row waits until the watermark is at its time.

    The right stream is a changelog by key: insertions and +U are versions, -D ends the one before, -U says nothing
    new. Versions that no row can ask for any more are forgotten. Runs on two streams that are keyed by their keys; the
    result has the columns of both, with the kinds of the left rows. The join's own kind is INNER or LEFT.
    """

    times: tuple[int, int]
    """The columns with the event time of both sides."""
    condition: ColumnExpression | None = None
    """Over the columns of both."""


@dataclass(frozen=True)
class LookupJoin(_JoinedInputs):
    """Rows of a stream, each with those that a table of a connector has for its keys when it comes. Kinds of rows pass.

    The result has the columns of both. The join's own kind is INNER or LEFT.
    """

    table: LookupTable
    condition: ColumnExpression | None = None
    """Over the columns of both."""
    cache: LookupCache | None = None
    """None: every batch asks."""
    attempts: int = 1
    """How often a key without a row is asked for."""
    delay: int = 0
    """Milliseconds between two attempts."""


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
class FirstRow:
    """The first row of each partition in an order, of an input of insertions only, as a changelog: what :class:`Rank`
    gives from place 1 to 1. Columns are neither collections nor rows.

    Runs on a stream that is keyed by ``keys``.
    """

    keys: tuple[int, ...]
    order: tuple[Order, ...]
    input: pa.Schema
    schema: pa.Schema
    """Of the result."""
    with_rank: bool = False
    update_before: bool = True
    last_wins: bool = False
    """Whether of rows with equal order the one that came last is first."""
    state_ttl: int | None = None
    """Milliseconds of processing time after which a partition that did not change is forgotten."""


@dataclass(frozen=True)
class Replicate:
    """Each row as often as its last column says, without that column. Kinds pass unchanged."""

    schema: pa.Schema
    """Of the result."""


@dataclass(frozen=True)
class ToChangelog:
    """Each change as an insertion, with a code for its kind in front. Kinds without a code are left out."""

    codes: tuple[str | None, ...]
    """By kind."""
    schema: pa.Schema
    """Of the result."""


@dataclass(frozen=True)
class FromChangelog:
    """Insertions as the changes that a column tells of, without that column."""

    place: int
    kinds: tuple[tuple[str, int], ...]
    """Codes and the kinds that they mean. Another code ends the job."""
    schema: pa.Schema
    """Of the result."""


@dataclass(frozen=True)
class ChangelogNormalize:
    """Rows by key, each of which replaces the one before it, and -D of keys: as a full changelog, with -U of what was
    before. A row that changes nothing emits nothing, as in Flink; the deletion of a key that is not there neither.

    Runs on a stream that is keyed by ``keys``.
    """

    keys: tuple[int, ...]
    schema: pa.Schema
    """Of input and result."""
    update_before: bool = True
    state_ttl: int | None = None


@dataclass(frozen=True)
class KeyConflicts:
    """Changes of rows that may have the same key, so that one row of each key is left. At each watermark the changes
    since the last one are put together: the row that stands stays as long as it is not taken back, and then the first
    of the others has its place. Rows that cannot stay are forgotten.

    Runs on a stream that is keyed by ``keys``. The result has +I, +U and -D.
    """

    keys: tuple[int, ...]
    schema: pa.Schema
    """Of input and result."""
    fails: bool
    """Whether a second row is an error, also one that is equal to the first."""
    target: str
    """What the error calls the table."""


@dataclass(frozen=True)
class RowsToColumns:
    """Rows (:class:`~firesteel.common.Row`, tuples or lists) as batches."""

    schema: pa.Schema
    kinds: bool = False
    """Whether rows say of which kind they are; else all are insertions."""
    rowtime: bool = False
    """Whether the last column is not in the rows, but the timestamp that the stream has for each."""


@dataclass(frozen=True)
class ColumnsToEvents:
    """Batches of insertions as tuples of some columns, with their event time as the timestamps of records."""

    columns: tuple[int | None, ...]
    """None: the place stays empty."""
    rowtime: int | None
    """The column with the event time; None: records have no timestamps."""


@dataclass(frozen=True)
class ColumnsToRows:
    """Batches as rows: :class:`~firesteel.common.Row` with names and kinds."""

    schema: pa.Schema
    rowtime: int | None = None
    """A column that becomes the timestamp of each row in the stream."""
    drops_rowtime: bool = False
    """Whether that column is left out of the rows."""
