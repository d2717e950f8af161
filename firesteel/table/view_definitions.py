"""Views that SQL makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from firesteel.table.catalog.tables import View
from firesteel.table.logical.plan import Plan
from firesteel.table.logical.relation_resolver import renamed
from firesteel.table.sql.syntax import Query

if TYPE_CHECKING:
    from firesteel.table.table_environment import TableEnvironment

__all__ = ["view_of"]


def view_of(
    env: TableEnvironment,
    plan: Plan,
    query: Query,
    statement: str,
    columns: Sequence[str],
    text: str,
    comment: str | None,
) -> View:
    """The view of a query that has this plan in the environment's mode. In the other mode, in which the same words mean
    other operators, it is resolved again, among the names of the database in which it was made."""
    catalogs, streaming = env._catalogs, env._streaming
    place = catalogs.current_catalog, catalogs.current_database

    def in_mode() -> Plan:
        if env._streaming == streaming:
            return plan
        now = catalogs.current_catalog, catalogs.current_database
        catalogs.current_catalog, catalogs.current_database = place
        try:
            again = env._resolve(query, statement)
        finally:
            catalogs.current_catalog, catalogs.current_database = now
        return renamed(again, columns) if columns else again

    return View(plan, text, comment, in_mode)
