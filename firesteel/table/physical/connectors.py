"""Tables of CREATE TABLE as sinks."""

from __future__ import annotations

from firesteel.runtime.columns.routing import KeyColumns
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.logical.plan import Plan
from firesteel.table.physical.changelog import inserts_only
from firesteel.table.physical.conflicts import resolution
from firesteel.table.physical.external.connector import Changes, Connector, Writing
from firesteel.table.physical.external.registry import connector_of
from firesteel.table.physical.length_checks import fitted_lengths
from firesteel.table.physical.null_checks import checked_for_nulls, drops_nulls
from firesteel.table.physical.options import TableOptions
from firesteel.table.physical.planner import Planner
from firesteel.table.physical.upserts import materialized, without_conflicts
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.sql.statements import OnConflict
from firesteel.table.table_config import TableConfig, session_zone

__all__ = ["check_sink", "sink_of"]


def check_sink(
    table: DeclaredTable, path: str, plan: Plan, config: TableConfig, on_conflict: OnConflict | None = None
) -> None:
    """Refuses the rows of a stream that a table cannot take."""
    connector, options = _connector(table, path)
    takes, inserts = connector.takes(table, options), inserts_only(plan)
    _check_changes(table, path, takes, inserts)
    resolution(table, path, plan, takes, inserts, on_conflict, config.get_configuration())


def _connector(table: DeclaredTable, path: str) -> tuple[Connector, TableOptions]:
    connector = connector_of(table, path, "write")
    return connector, connector.options_of(table, path)


def _check_changes(table: DeclaredTable, path: str, takes: Changes, inserts: bool) -> None:
    if takes is Changes.INSERT and not inserts:
        raise SqlValidationError(
            f"Table {path} takes insertions only (connector {table.options['connector']!r}), and the query changes "
            "or takes back rows that it has given out. Write into a table that takes changes, or use a query that "
            "gives each row once: a window, for example."
        )


def sink_of(
    table: DeclaredTable,
    path: str,
    plan: Plan,
    planner: Planner,
    config: TableConfig,
    on_conflict: OnConflict | None = None,
) -> None:
    """Adds the sink of a table for the rows of a plan."""
    connector, options = _connector(table, path)
    assert connector.write is not None
    takes, configuration = connector.takes(table, options), config.get_configuration()
    resolved = None
    inserts = planner.inserts_only(plan)
    _check_changes(table, path, takes, inserts)
    if not planner.final:
        resolved = resolution(table, path, plan, takes, inserts, on_conflict, configuration)
    stream = checked_for_nulls(planner.stream(plan), plan, table, path, drops_nulls(configuration))
    stream = fitted_lengths(stream, plan, table, path, configuration)
    names = [column.name for column in table.writable]
    keys = tuple(names.index(name) for name in table.primary_key)
    if resolved is OnConflict.DEDUPLICATE:
        stream = planner.identified(materialized(stream, plan, keys), plan, "materialize", path)
    elif resolved is not None:
        settled = without_conflicts(stream, plan, keys, resolved is OnConflict.ERROR, path)
        stream = planner.identified(settled, plan, "conflicts", path)
    elif takes is Changes.UPSERT and "sink.parallelism" in options:
        # The rows of a key stay in their order only if they stay together.
        stream = stream.key_by(KeyColumns(keys))
    time_zone = session_zone(config)
    connector.write(Writing(stream, table, options, time_zone, plan.types, planner.named("sink", path)))
