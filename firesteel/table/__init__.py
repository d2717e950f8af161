"""Tables and SQL, with PyFlink's names.

What is imported from here is loaded when it is asked for: operators need types and functions of this package in every
worker, and nothing of what builds programs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firesteel.common.types import Row, RowKind
    from firesteel.table.changelog_mode import ChangelogMode
    from firesteel.table.data_view import DataView, ListView, MapView
    from firesteel.table.environment_settings import EnvironmentSettings
    from firesteel.table.explain_detail import ExplainDetail
    from firesteel.table.expression import Expression
    from firesteel.table.resolved_schema import ResolvedSchema
    from firesteel.table.result_kind import ResultKind
    from firesteel.table.schema import Schema
    from firesteel.table.sql_dialect import SqlDialect
    from firesteel.table.statement_set import StatementSet
    from firesteel.table.stream_table_environment import StreamTableEnvironment
    from firesteel.table.table import GroupedTable, GroupWindowedTable, OverWindowedTable, Table, WindowGroupedTable
    from firesteel.table.table_config import TableConfig
    from firesteel.table.table_descriptor import FormatDescriptor, TableDescriptor
    from firesteel.table.table_environment import TableEnvironment
    from firesteel.table.table_pipeline import TablePipeline
    from firesteel.table.table_result import TableResult
    from firesteel.table.table_schema import TableSchema
    from firesteel.table.types.factory import DataTypes
    from firesteel.table.udf import (
        AggregateFunction,
        AsyncScalarFunction,
        FunctionContext,
        ScalarFunction,
        TableAggregateFunction,
        TableFunction,
    )
    from firesteel.table.window import GroupWindow, Over, OverWindow, Session, Slide, Tumble

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "ChangelogMode",
    "DataTypes",
    "DataView",
    "EnvironmentSettings",
    "ExplainDetail",
    "Expression",
    "FormatDescriptor",
    "FunctionContext",
    "GroupWindow",
    "GroupWindowedTable",
    "GroupedTable",
    "ListView",
    "MapView",
    "Over",
    "OverWindow",
    "OverWindowedTable",
    "ResolvedSchema",
    "ResultKind",
    "Row",
    "RowKind",
    "ScalarFunction",
    "Schema",
    "Session",
    "Slide",
    "SqlDialect",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableAggregateFunction",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableFunction",
    "TablePipeline",
    "TableResult",
    "TableSchema",
    "Tumble",
    "WindowGroupedTable",
]

_PLACES = {
    "AggregateFunction": "firesteel.table.udf",
    "AsyncScalarFunction": "firesteel.table.udf",
    "TablePipeline": "firesteel.table.table_pipeline",
    "SqlDialect": "firesteel.table.sql_dialect",
    "ResolvedSchema": "firesteel.table.resolved_schema",
    "ExplainDetail": "firesteel.table.explain_detail",
    "ChangelogMode": "firesteel.table.changelog_mode",
    "WindowGroupedTable": "firesteel.table.table",
    "Tumble": "firesteel.table.window",
    "Slide": "firesteel.table.window",
    "Session": "firesteel.table.window",
    "OverWindowedTable": "firesteel.table.table",
    "OverWindow": "firesteel.table.window",
    "Over": "firesteel.table.window",
    "GroupWindowedTable": "firesteel.table.table",
    "GroupWindow": "firesteel.table.window",
    "DataTypes": "firesteel.table.types.factory",
    "DataView": "firesteel.table.data_view",
    "EnvironmentSettings": "firesteel.table.environment_settings",
    "Expression": "firesteel.table.expression",
    "FormatDescriptor": "firesteel.table.table_descriptor",
    "FunctionContext": "firesteel.table.udf",
    "GroupedTable": "firesteel.table.table",
    "ListView": "firesteel.table.data_view",
    "MapView": "firesteel.table.data_view",
    "ResultKind": "firesteel.table.result_kind",
    "Row": "firesteel.common.types",
    "RowKind": "firesteel.common.types",
    "ScalarFunction": "firesteel.table.udf",
    "Schema": "firesteel.table.schema",
    "StatementSet": "firesteel.table.statement_set",
    "StreamTableEnvironment": "firesteel.table.stream_table_environment",
    "Table": "firesteel.table.table",
    "TableAggregateFunction": "firesteel.table.udf",
    "TableConfig": "firesteel.table.table_config",
    "TableDescriptor": "firesteel.table.table_descriptor",
    "TableEnvironment": "firesteel.table.table_environment",
    "TableFunction": "firesteel.table.udf",
    "TableSchema": "firesteel.table.table_schema",
    "TableResult": "firesteel.table.table_result",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(place), name)


def __dir__() -> list[str]:
    return sorted(__all__)
