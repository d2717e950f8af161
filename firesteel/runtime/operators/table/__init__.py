"""Operators on tables: they take and give Arrow batches with a kind for each row (:mod:`firesteel.runtime.columns`).

Specs are applied with ``DataStream.transform(name, spec, ColumnsType(schema))``. A stream of batches is keyed with
``key_by(KeyColumns(indices))``.
"""

from firesteel.runtime.columns.routing import KeyColumns
from firesteel.runtime.columns.rowtime import rowtime_strategy
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table.calc import CalcOperator, ColumnsToRowsOperator, RowsToColumnsOperator, rows_of
from firesteel.runtime.operators.table.group_aggregate import GroupAggregateOperator
from firesteel.runtime.operators.table.join import JoinOperator
from firesteel.runtime.operators.table.rank import RankOperator
from firesteel.runtime.operators.table.specs import (
    AggregateCall,
    Calc,
    ColumnExpression,
    ColumnsToRows,
    GroupAggregate,
    Join,
    Order,
    Rank,
    RowsToColumns,
    Window,
    WindowAggregate,
)
from firesteel.runtime.operators.table.window_aggregate import WindowAggregateOperator

__all__ = [
    "AggregateCall",
    "Calc",
    "CalcOperator",
    "ColumnExpression",
    "ColumnsToRows",
    "ColumnsToRowsOperator",
    "ColumnsType",
    "GroupAggregate",
    "GroupAggregateOperator",
    "Join",
    "JoinOperator",
    "KeyColumns",
    "Order",
    "Rank",
    "RankOperator",
    "RowsToColumns",
    "RowsToColumnsOperator",
    "Window",
    "WindowAggregate",
    "WindowAggregateOperator",
    "rows_of",
    "rowtime_strategy",
]
