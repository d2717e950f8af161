"""Connectors by the name in WITH ('connector' = ...): their options, checked, and the streams they read and write."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.common.typeinfo import Types
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import Plan
from firesteel.table.physical.planner import Planner
from firesteel.table.physical.row_text import DiscardRows, RowsAsText
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names

__all__ = ["checked_options", "sink_of"]

_SINKS: dict[str, tuple[str, ...]] = {
    "print": ("print-identifier",),
    "blackhole": (),
}


def checked_options(options: Mapping[str, str], known: tuple[str, ...], path: str) -> None:
    """An error for an option that the connector does not know."""
    for key in options:
        if key not in ("connector", *known) and not any(
            each.endswith("*") and key.startswith(each[:-1]) for each in known
        ):
            raise SqlValidationError(
                f"Table {path}: connector {options['connector']!r} has no option {key!r}."
                f"{near_names(key, known)} It has {', '.join(known) or 'none'}."
            )


def sink_of(table: DeclaredTable, path: str, plan: Plan, planner: Planner, time_zone: str) -> None:
    """Adds the sink of a table for the rows of a plan."""
    connector = table.options.get("connector")
    if connector is None:
        raise SqlValidationError(f"Table {path} has no connector: WITH ('connector' = '...') is missing.")
    if connector not in _SINKS:
        raise NotSupportedError(
            f"Not supported yet: writing to connector {connector!r} (table {path}).{near_names(connector, _SINKS)}"
        )
    checked_options(table.options, _SINKS[connector], path)
    stream = planner.stream(plan)
    if connector == "print":
        identifier = table.options.get("print-identifier")
        lines = stream.transform("RowsAsText", RowsAsText(plan.types, time_zone), Types.STRING())
        lines.print(identifier).name(f"{path}: print")
    else:
        stream.add_sink(DiscardRows()).name(f"{path}: blackhole")
