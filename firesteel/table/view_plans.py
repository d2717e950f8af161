"""Views of SQL: what they keep, and the plan that they stand for in a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firesteel.table.catalog.tables import DeclaredTable, View
from firesteel.table.declarations import table_plan
from firesteel.table.functions.binding import cast_to
from firesteel.table.logical.plan import Plan, Project, Scan
from firesteel.table.logical.written_names import WrittenNames
from firesteel.table.sql.errors import SqlError, SqlValidationError
from firesteel.table.sql.parser import parse_query
from firesteel.table.sql.syntax import FunctionCall, Query
from firesteel.table.sql.syntax.base import nodes_of
from firesteel.table.types.data_types import RowType

if TYPE_CHECKING:
    from firesteel.table.table_environment import TableEnvironment

__all__ = ["NamedPlans", "view_of"]


def view_of(env: TableEnvironment, query: Query, statement: str, comment: str | None) -> View:
    """The view that a query in a statement makes."""
    written = WrittenNames(env._catalogs.qualified)
    plan = env._resolver(statement, written=written).query(query)
    for node in nodes_of(query):
        if isinstance(node, FunctionCall) and node.user is not None and not env._functions.is_system(node.name.parts):
            written.named(node.name)
    return View(plan, written.text(query, statement), comment)


class NamedPlans:
    """What names of the catalog stand for while one statement is resolved. A view of SQL is resolved where it is used,
    so that it is of the tables that are there then; in one statement once, so that parts of it are shared."""

    def __init__(self, env: TableEnvironment) -> None:
        self._env = env
        self._views: dict[tuple[str, ...], Plan] = {}
        self._within: list[tuple[str, ...]] = []

    def __call__(self, parts: tuple[str, ...]) -> Plan | None:
        found = self._env._catalogs.find(parts)
        if found is None:
            return None
        path = self._env._catalogs.qualified(parts)
        if isinstance(found, View):
            return self._view(found, path)
        return table_plan(found, path) if isinstance(found, DeclaredTable) else Scan(path, found.row_type, found)

    def _view(self, view: View, path: tuple[str, ...]) -> Plan:
        if view.text is None:
            return view.plan
        if path not in self._views:
            self._views[path] = self._resolved(view, path)
        return self._views[path]

    def _resolved(self, view: View, path: tuple[str, ...]) -> Plan:
        assert view.text is not None
        name = ".".join(path)
        if path in self._within:
            chain = " reads ".join(".".join(each) for each in (*self._within[self._within.index(path) :], path))
            raise SqlValidationError(f"A view cannot read itself: {chain}.")
        self._within.append(path)
        try:
            query = self._env._with_functions(parse_query(view.text))
            return _as_declared(self._env._resolver(view.text, plans=self).query(query), view.row_type)
        except SqlError as error:
            # The text is that of the view, so that the place is in what SHOW CREATE VIEW shows.
            raise type(error)(f"In the view {name}: {error.message}", error.text, error.span) from None
        finally:
            self._within.pop()


def _as_declared(plan: Plan, declared: RowType) -> Plan:
    """With the names and types that the view had when it was made, as in Flink, whatever its tables are now."""
    names = tuple(declared.field_names())
    if len(plan.names) != len(names):
        raise SqlValidationError(f"The query has {len(plan.names)} columns now, when it was made it had {len(names)}.")
    kinds = [
        now if now.nullable() == then.nullable() else then.with_nullability(now.is_nullable)
        for now, then in zip(plan.types, declared.field_types(), strict=True)
    ]
    if plan.names == names and list(plan.types) == kinds:
        return plan
    return Project(plan, tuple(cast_to(ref, kind) for ref, kind in zip(plan.refs(), kinds, strict=True)), names)
