"""Tables of CREATE TABLE as sinks."""

from __future__ import annotations

from firesteel.common.typeinfo import Types
from firesteel.connectors.table.blackhole import BlackholeSink
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import Plan
from firesteel.table.physical.options import TableOptions
from firesteel.table.physical.planner import Planner
from firesteel.table.physical.row_text import RowsAsText
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names

__all__ = ["sink_of"]

_SINKS: dict[str, tuple[str, ...]] = {"print": ("print-identifier",), "blackhole": ()}


def sink_of(table: DeclaredTable, path: str, plan: Plan, planner: Planner, time_zone: str) -> None:
    """Adds the sink of a table for the rows of a plan."""
    connector = table.options.get("connector")
    if connector is None:
        raise SqlValidationError(f"Table {path} has no connector: WITH ('connector' = '...') is missing.")
    if connector not in _SINKS:
        near = near_names(connector, _SINKS)
        raise NotSupportedError(f"Not supported yet: writing to connector {connector!r} (table {path}).{near}")
    options = TableOptions(table.options, path, _SINKS[connector])
    stream = planner.stream(plan)
    if connector == "print":
        lines = stream.transform("RowsAsText", RowsAsText(plan.types, time_zone), Types.STRING())
        lines.print(options.text("print-identifier")).name(f"{path}: print")
    else:
        stream.sink_to(BlackholeSink()).name(f"{path}: blackhole")
