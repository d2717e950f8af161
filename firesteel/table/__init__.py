"""Tables and SQL, with PyFlink's names.

What is imported from here is loaded when it is asked for: operators need types and functions of this package in every
worker, and nothing of what builds programs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firesteel.common.types import Row, RowKind
    from firesteel.table.environment_settings import EnvironmentSettings
    from firesteel.table.expression import Expression
    from firesteel.table.result_kind import ResultKind
    from firesteel.table.statement_set import StatementSet
    from firesteel.table.stream_table_environment import StreamTableEnvironment
    from firesteel.table.table import GroupedTable, Table
    from firesteel.table.table_config import TableConfig
    from firesteel.table.table_environment import TableEnvironment
    from firesteel.table.table_result import TableResult
    from firesteel.table.types.factory import DataTypes

__all__ = [
    "DataTypes",
    "EnvironmentSettings",
    "Expression",
    "GroupedTable",
    "ResultKind",
    "Row",
    "RowKind",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableConfig",
    "TableEnvironment",
    "TableResult",
]

_PLACES = {
    "DataTypes": "firesteel.table.types.factory",
    "EnvironmentSettings": "firesteel.table.environment_settings",
    "Expression": "firesteel.table.expression",
    "GroupedTable": "firesteel.table.table",
    "ResultKind": "firesteel.table.result_kind",
    "Row": "firesteel.common.types",
    "RowKind": "firesteel.common.types",
    "StatementSet": "firesteel.table.statement_set",
    "StreamTableEnvironment": "firesteel.table.stream_table_environment",
    "Table": "firesteel.table.table",
    "TableConfig": "firesteel.table.table_config",
    "TableEnvironment": "firesteel.table.table_environment",
    "TableResult": "firesteel.table.table_result",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(place), name)


def __dir__() -> list[str]:
    return sorted(__all__)
