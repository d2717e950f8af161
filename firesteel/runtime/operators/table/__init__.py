"""Operators on tables: they take and give Arrow batches with a kind for each row (:mod:`firesteel.runtime.columns`).

Specs are applied with ``DataStream.transform(name, spec, ColumnsType(schema))``. A stream of batches is keyed with
``key_by(KeyColumns(indices))``.
"""

from firesteel.runtime.columns.routing import KeyColumns
from firesteel.runtime.columns.rowtime import rowtime_strategy
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table.calc import (
    CalcOperator,
    ColumnsToEventsOperator,
    ColumnsToRowsOperator,
    ReplicateOperator,
    RowsToColumnsOperator,
    rows_of,
)
from firesteel.runtime.operators.table.changelogs import FromChangelogOperator, ToChangelogOperator
from firesteel.runtime.operators.table.correlate import CorrelateOperator
from firesteel.runtime.operators.table.first_row import FirstRowOperator
from firesteel.runtime.operators.table.group_aggregate import GroupAggregateOperator
from firesteel.runtime.operators.table.interval_join import IntervalJoinOperator
from firesteel.runtime.operators.table.join import JoinOperator
from firesteel.runtime.operators.table.key_conflicts import KeyConflictsOperator
from firesteel.runtime.operators.table.lookup_join import LookupJoinOperator
from firesteel.runtime.operators.table.normalize import ChangelogNormalizeOperator
from firesteel.runtime.operators.table.over import OverAggregateOperator
from firesteel.runtime.operators.table.rank import RankOperator
from firesteel.runtime.operators.table.sorted_over import SortedOverOperator
from firesteel.runtime.operators.table.specs import (
    AggregateCall,
    Calc,
    ChangelogNormalize,
    ColumnExpression,
    ColumnsToEvents,
    ColumnsToRows,
    Correlate,
    FirstRow,
    FromChangelog,
    GroupAggregate,
    IntervalJoin,
    Join,
    KeyConflicts,
    LookupJoin,
    Order,
    Rank,
    Replicate,
    RowsToColumns,
    TableAggregate,
    TemporalJoin,
    ToChangelog,
    Window,
    WindowAggregate,
)
from firesteel.runtime.operators.table.table_aggregate import TableAggregateOperator
from firesteel.runtime.operators.table.temporal_join import TemporalJoinOperator
from firesteel.runtime.operators.table.time_sort import TimeSortOperator
from firesteel.runtime.operators.table.window_aggregate import WindowAggregateOperator
from firesteel.runtime.operators.table.window_join import WindowJoinOperator, WindowRankOperator
from firesteel.runtime.operators.table.window_specs import (
    Expand,
    OverAggregate,
    SortedOver,
    TimeSort,
    UnpackRows,
    WindowJoin,
    WindowRank,
    WindowTable,
)
from firesteel.runtime.operators.table.window_table import ExpandOperator, UnpackRowsOperator, WindowTableOperator

__all__ = [
    "AggregateCall",
    "Calc",
    "CalcOperator",
    "ChangelogNormalize",
    "ChangelogNormalizeOperator",
    "ColumnExpression",
    "ColumnsToEvents",
    "ColumnsToEventsOperator",
    "ColumnsToRows",
    "ColumnsToRowsOperator",
    "ColumnsType",
    "Correlate",
    "CorrelateOperator",
    "Expand",
    "ExpandOperator",
    "FirstRow",
    "FirstRowOperator",
    "FromChangelog",
    "FromChangelogOperator",
    "GroupAggregate",
    "GroupAggregateOperator",
    "IntervalJoin",
    "IntervalJoinOperator",
    "Join",
    "JoinOperator",
    "KeyColumns",
    "KeyConflicts",
    "KeyConflictsOperator",
    "LookupJoin",
    "LookupJoinOperator",
    "Order",
    "OverAggregate",
    "OverAggregateOperator",
    "Rank",
    "RankOperator",
    "Replicate",
    "ReplicateOperator",
    "RowsToColumns",
    "RowsToColumnsOperator",
    "SortedOver",
    "SortedOverOperator",
    "TableAggregate",
    "TableAggregateOperator",
    "TemporalJoin",
    "TemporalJoinOperator",
    "TimeSort",
    "TimeSortOperator",
    "ToChangelog",
    "ToChangelogOperator",
    "UnpackRows",
    "UnpackRowsOperator",
    "Window",
    "WindowAggregate",
    "WindowAggregateOperator",
    "WindowJoin",
    "WindowJoinOperator",
    "WindowRank",
    "WindowRankOperator",
    "WindowTable",
    "WindowTableOperator",
    "rows_of",
    "rowtime_strategy",
]
