"""Tables between ``group_by``, ``window`` or ``over_window`` and the ``select`` that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.errors import ProgramError
from firesteel.table.expression import NOWHERE, Expression, RowInterval
from firesteel.table.logical.analytic_resolver import AnalyticResolver
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression as Typed
from firesteel.table.logical.group_windows import GroupWindow as LogicalWindow
from firesteel.table.logical.group_windows import group_window_table
from firesteel.table.logical.grouping import AggregateResolver, aggregate_calls
from firesteel.table.logical.over_windows import OverResolver
from firesteel.table.logical.plan import Project
from firesteel.table.logical.row_windows import rows_in_windows
from firesteel.table.logical.scope import Scope
from firesteel.table.row_operations import aggregated, flat_aggregated, with_names, wrapped_call
from firesteel.table.select_fields import FieldExpansion, checked_names, name_of, named_node
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError
from firesteel.table.sql.syntax import FunctionCall, Name, Node, SelectItem
from firesteel.table.window import GroupWindow, OverWindow

if TYPE_CHECKING:
    from firesteel.table.table import Table

__all__ = [
    "AggregatedTable",
    "FlatAggregateTable",
    "GroupWindowedTable",
    "GroupedTable",
    "OverWindowedTable",
    "WindowAggregatedTable",
    "WindowGroupedTable",
]

_PARTS = ("WINDOW_START", "WINDOW_END", "WINDOW_ROWTIME", "WINDOW_PROCTIME")


class GroupedTable:
    """A table with the columns that its rows are grouped by."""

    def __init__(self, table: Table, keys: Sequence[Node]) -> None:
        self._table = table
        self._keys = list(keys)

    def select(self, *fields: Expression) -> Table:
        """Keys and aggregates."""
        plan = self._table._plan
        inner_keys = [named_node(key) for key in self._keys]
        resolver = AggregateResolver(plan, Scope.of(plan, None), [key for key, _ in inner_keys], None)
        nodes = [self._table._found(field) for field in fields]
        return self._table._with(_grouped(resolver, inner_keys, nodes))

    def aggregate(self, func: Any) -> AggregatedTable:
        """What an aggregate function gives for each group. A ``select`` follows."""
        table = self._table
        return AggregatedTable(table._with(aggregated(table._plan, self._keys, func, table._written)))

    def flat_aggregate(self, func: Any) -> FlatAggregateTable:
        """The rows that a table aggregate function gives for each group. A ``select`` follows."""
        table = self._table
        return FlatAggregateTable(table._with(flat_aggregated(table._plan, self._keys, func, table._written)))


class GroupWindowedTable:
    """A table with a window that its rows are to be grouped by."""

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table = table
        self._window = window

    def group_by(self, *fields: Expression) -> WindowGroupedTable:
        """Groups of rows with the same values in the same window: ``col("w")`` is among the fields."""
        nodes = self._table._fields(fields)
        keys = [node for node in nodes if name_of(node) != self._window.name]
        if len(keys) != len(nodes) - 1:
            raise ProgramError(f"group_by() takes the window once: col({self._window.name!r}).")
        return WindowGroupedTable(self._table, self._window, keys)


class WindowGroupedTable:
    """A table with a window and other columns that its rows are grouped by."""

    def __init__(self, table: Table, window: GroupWindow, keys: Sequence[Node]) -> None:
        self._table = table
        self._window = window
        self._keys = list(keys)

    def select(self, *fields: Expression) -> Table:
        """Keys, aggregates, and parts of the window: ``col("w").start``, ``end``, ``rowtime``, ``proctime``."""
        plan, window = self._table._plan, self._window
        inner_keys = [named_node(key) for key in self._keys]
        scope = Scope.of(plan, None)
        resolver = ExpressionResolver(scope)
        time, keys = resolver.resolve(window.time), [resolver.resolve(key) for key, _ in inner_keys]
        streaming = self._table._env._streaming
        if isinstance(window.spans[0], RowInterval):
            return self._select_of_rows(time, inner_keys, fields)
        windows = group_window_table(plan, window.kind, time, window.spans, keys, window.time, None, streaming)
        part = LogicalWindow("WINDOW", (Name((window.name,), span=NOWHERE),))
        groups = AggregateResolver(windows, scope, [key for key, _ in inner_keys], None, window=part)
        nodes = [self._table._found(field) for field in fields]
        return self._table._with(_grouped(groups, inner_keys, nodes))

    def _select_of_rows(
        self, time: Typed, keys: Sequence[tuple[Node, str | None]], fields: Sequence[Expression]
    ) -> Table:
        """Where windows are of a number of rows."""
        plan, window = self._table._plan, self._window
        nodes = [self._table._found(field) for field in fields]
        if any(call.args == (Name((window.name,), span=NOWHERE),) for call in aggregate_calls(tuple(nodes), _PARTS)):
            raise SqlValidationError("A window of a number of rows has no start and no end, as in Flink.")
        groups = AggregateResolver(plan, Scope.of(plan, None), [key for key, _ in keys], None)
        chosen = _grouped(groups, keys, nodes)
        first, last = window.spans[0], window.spans[-1]
        assert isinstance(first, RowInterval)
        assert isinstance(last, RowInterval)
        windows = rows_in_windows(groups.plan(), plan, time, last.rows, first.rows, self._table._env._streaming)
        return self._table._with(replace(chosen, input=windows))

    def aggregate(self, func: Any) -> WindowAggregatedTable:
        """What an aggregate function gives for each group and window. A ``select`` follows."""
        call = wrapped_call(func, self._table._written)
        return WindowAggregatedTable(self, call)

    def flat_aggregate(self, func: Any) -> Table:
        """Refused, as in Flink: table aggregate functions in Python know no windows."""
        raise NotSupportedError("Not supported: flat_aggregate() of windows. Flink runs no Python functions there.")


class WindowAggregatedTable:
    """The keys of groups, their window, and what an aggregate function gives for them."""

    def __init__(self, groups: WindowGroupedTable, call: dict[str, Node]) -> None:
        self._groups = groups
        self._call = call

    def select(self, *fields: Expression) -> Table:
        """Expressions over keys, results, and parts of the window."""
        written = [self._groups._table._found(field) for field in fields]
        named = [
            SelectItem(node, node.parts[-1], span=node.span)
            if isinstance(node, Name) and node.parts[-1] in self._call
            else node
            for node in written
        ]
        return self._groups.select(*(Expression(with_names(node, self._call)) for node in named))


class OverWindowedTable:
    """A table with windows around each row."""

    def __init__(self, table: Table, windows: Sequence[OverWindow]) -> None:
        self._table = table
        self._windows = tuple((window.name, window.node) for window in windows)

    def select(self, *fields: Expression) -> Table:
        """Columns, and aggregates over windows: ``col("a").sum.over(col("w"))``."""
        plan = self._table._plan
        kind = OverResolver if self._table._env._streaming else AnalyticResolver
        resolver = kind(plan, Scope.of(plan, None), self._windows, None)
        expressions: list[Typed] = []
        names: list[str] = []
        for field in self._table._fields(fields):
            node, alias = named_node(field)
            expressions.append(resolver.resolve(node))
            names.append(alias or name_of(node) or f"_c{len(names)}")
        return self._table._with(
            Project(resolver.plan(), tuple(map(resolver.finished, expressions)), checked_names(names))
        )


class AggregatedTable:
    """The keys of groups and what an aggregate function gives for them."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def select(self, *fields: Expression) -> Table:
        """Expressions over keys and results."""
        return self._table.select(*fields)


class FlatAggregateTable(AggregatedTable):
    """The keys of groups and the rows that a table aggregate function gives for them."""


def _grouped(resolver: AggregateResolver, keys: Sequence[tuple[Node, str | None]], fields: Sequence[Node]) -> Project:
    """Keys and aggregates of groups. ``*`` stands for the keys."""
    if not fields:
        raise ProgramError("select() takes one key or aggregate at least, got none.")
    columns = {alias or name_of(key) or f"_c{index}": key for index, (key, alias) in enumerate(keys)}
    expansion = FieldExpansion(
        {name: key if name_of(key) == name else SelectItem(key, name, span=NOWHERE) for name, key in columns.items()},
        lambda node: resolver.resolve(node).type,
    )
    aliases = {alias: key for key, alias in keys if alias is not None}
    expressions: list[Typed] = []
    names: list[str] = []
    # As in Flink, all aggregates and parts of windows are numbered, each once, also those inside of expressions.
    numbered: list[FunctionCall] = []
    for field in expansion.fields(fields):
        inner, alias = named_node(field)
        if isinstance(inner, Name) and inner.parts[-1] in aliases:
            alias, inner = alias or inner.parts[-1], aliases[inner.parts[-1]]
        expressions.append(resolver.resolve(inner))
        numbered += [call for call in dict.fromkeys(aggregate_calls(inner, _PARTS)) if call not in numbered]
        derived = f"EXPR${numbered.index(inner)}" if inner in numbered else f"_c{len(names)}"
        names.append(alias or name_of(inner) or derived)
    return Project(resolver.plan(), tuple(expressions), checked_names(names))
