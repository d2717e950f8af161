"""Queries: from the tree that the parser made to the relational tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from firesteel.table.functions.binding import cast_to
from firesteel.table.logical.analytic_resolver import AnalyticResolver, GroupedAnalyticResolver, GroupedOverResolver
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Call, Expression, has_user_calls
from firesteel.table.logical.first_rows import first_rows
from firesteel.table.logical.group_windows import GROUP_WINDOWS, GroupWindow, group_window_table
from firesteel.table.logical.grouping import AggregateResolver, aggregate_calls, has_aggregates, has_over
from firesteel.table.logical.grouping_sets import grouping_sets
from firesteel.table.logical.over_windows import OverResolver
from firesteel.table.logical.plan import Filter, Plan, Project, Sort, SortOrder, UnionAll, Values, unique_names
from firesteel.table.logical.ranking import placed_order
from firesteel.table.logical.relation_resolver import RelationResolver, TableLookup, renamed
from firesteel.table.logical.scope import Scope, UnknownNameError
from firesteel.table.logical.set_operations import SET_OPERATIONS, distinct
from firesteel.table.logical.subqueries import expanded, filtered
from firesteel.table.logical.time_attributes import UNSORTABLE, in_order_of_time
from firesteel.table.logical.written_names import WrittenNames
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.data_types import DataType, RowType
from firesteel.table.types.derivation import common_type

__all__ = ["QueryResolver", "TableLookup", "renamed"]


WithOthers = Callable[[Sequence[syntax.Node]], Plan]
"""A SELECT with more columns behind its own."""


_PLACES = ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD")


class QueryResolver(RelationResolver):
    """Resolves queries of one statement."""

    def __init__(
        self,
        tables: TableLookup,
        names: Callable[[], Sequence[str]],
        text: str | None = None,
        streaming: bool = True,
        written: WrittenNames | None = None,
    ) -> None:
        super().__init__(tables, names, text, streaming, written)
        self._wider: tuple[Plan, WithOthers] | None = None
        """The last SELECT, and the same with more columns behind its own."""

    def query(self, node: syntax.Query) -> Plan:
        """The plan of a query."""
        try:
            return self._query(node)
        except RecursionError:
            raise SqlValidationError("The query is nested too deep.", self._text, node.span) from None

    def _query(self, node: syntax.Query) -> Plan:
        scope: dict[str, Plan] = {}
        self._ctes.append(scope)
        try:
            for cte in node.ctes:
                plan = self._query(cte.query)
                scope[cte.name] = self._with_columns(plan, cte.columns, cte)
            plan = self._body(node.body)
        finally:
            self._ctes.pop()
        if node.limit is None and node.offset is None and not node.order:
            return plan
        return self._ordered(node, plan)

    def _ordered(self, node: syntax.Query, plan: Plan) -> Plan:
        """The rows in order, or the first of them."""
        if self._streaming and node.limit is None and node.offset is not None:
            raise self._invalid(node.offset, "OFFSET needs a LIMIT in a stream.")
        limit = self._count(node.limit) if node.limit is not None else None
        offset = self._count(node.offset) if node.offset is not None else 0
        ordered: Plan = plan
        order: tuple[SortOrder, ...] = ()
        if node.order:
            ordered, order = self._order(node.order, plan)
        sort = Sort(ordered, order, offset, limit)
        if self._streaming and limit is None and not in_order_of_time(ordered, order):
            raise self._invalid(node.order[0], UNSORTABLE)
        result = first_rows(sort) if self._streaming and limit is not None else sort
        if len(result.names) == len(plan.names):
            return result
        return Project(result, tuple(result.refs()[: len(plan.names)]), plan.names)

    def _order(self, items: Sequence[syntax.OrderItem], plan: Plan) -> tuple[Plan, tuple[SortOrder, ...]]:
        """By columns of the result, by their numbers, or by what SELECT could have and has not."""
        wider = self._wider[1] if self._wider is not None and self._wider[0] is plan else None
        resolved: list[Expression | None] = []
        hidden: list[syntax.Node] = []
        for item in items:
            try:
                resolved.append(self._order_item(item.expression, plan))
            except SqlValidationError:
                if wider is None or isinstance(item.expression, syntax.Constant):
                    raise
                hidden.append(item.expression)
                resolved.append(None)
        if wider is not None and hidden:
            width = len(plan.names)
            plan = wider(hidden)
            others = iter(plan.refs()[width:])
            return placed_order(plan, items, [next(others) if each is None else each for each in resolved])
        return placed_order(plan, items, [each for each in resolved if each is not None])

    def _order_item(self, node: syntax.Node, plan: Plan) -> Expression:
        if isinstance(node, syntax.Constant) and isinstance(node.value, int):
            if not 1 <= node.value <= len(plan.names):
                raise self._invalid(node, f"There is no column {node.value}: SELECT has {len(plan.names)}.")
            return plan.refs()[node.value - 1]
        return ExpressionResolver(Scope.of(plan, None), self._text).resolve(node)

    def _count(self, node: syntax.Node) -> int:
        if isinstance(node, syntax.Constant) and isinstance(node.value, int):
            return node.value
        raise self._invalid(node, "LIMIT and OFFSET take whole numbers.")

    def _body(self, node: syntax.Node) -> Plan:
        if isinstance(node, syntax.Select):
            return self._select(node)
        if isinstance(node, syntax.Values):
            return self._values(node)
        if isinstance(node, syntax.SetOperation):
            return self._set_operation(node)
        if isinstance(node, syntax.TableName):
            return self._relation(node)[0]
        assert isinstance(node, syntax.Query)
        return self._query(node)

    # SELECT.

    def _select(self, node: syntax.Select) -> Plan:
        self._hints.begin(node.hints)
        try:
            if isinstance(node.source, syntax.Join):
                self._hints.check_state_ttl(node.source)
            return self._selected(node)
        finally:
            self._hints.end()

    def _selected(self, node: syntax.Select) -> Plan:
        if node.source is None:
            plan: Plan = Values(((),), RowType(()))
            scope = Scope([])
        else:
            plan, scope = self._relation(node.source)
        if node.where is not None:
            if has_aggregates(node.where):
                raise self._invalid(node.where, "WHERE has no aggregates: HAVING filters groups.")
            plan = filtered(plan, self._resolver(scope).condition(node.where, "WHERE"), self._text)
        for call in aggregate_calls(node.items):
            if call.name.parts[-1].upper() in _PLACES and call.user is None:
                name = call.name.parts[-1].upper()
                raise self._invalid(call, f"{name} needs the window that it is over: OVER (PARTITION BY a ORDER BY b).")
        grouped = node.group_by is not None or node.having is not None or any(map(has_aggregates, node.items))
        if not grouped:
            plan = self._projected(node, plan, scope)
        elif node.qualify is not None and has_over(node.qualify):
            raise self._unsupported(node.qualify, "functions with OVER in QUALIFY where there are groups")
        else:
            plan = self._grouped(node, plan, scope)
            plan = plan if node.qualify is None else self._qualified(node.qualify, plan)
        return distinct(plan) if node.distinct else plan

    def _projected(self, node: syntax.Select, plan: Plan, scope: Scope) -> Plan:
        kind = OverResolver if self._streaming else AnalyticResolver
        resolver = kind(plan, scope, node.windows, self._text)
        resolver.around = self._around()
        expressions, names = self._items(node.items, resolver)

        def with_others(others: Sequence[syntax.Node]) -> Plan:
            more = [resolver.resolve(other) for other in others]
            finished = [resolver.finished(each) for each in (*expressions, *more)]
            source, whole = expanded(resolver.plan(), finished, self._text)
            unique = unique_names([*names, *(f"$h{index}" for index in range(len(more)))])
            return Project(source, tuple(whole), unique)

        result = with_others(())
        if node.qualify is not None:
            return self._qualified(node.qualify, result, with_others)
        self._wider = (result, with_others)
        return result

    def _qualified(
        self, node: syntax.Node, plan: Plan, with_others: Callable[[Sequence[syntax.Node]], Plan] | None = None
    ) -> Plan:
        """QUALIFY: the rows for which a condition over functions with OVER holds, or over the columns of SELECT."""
        if with_others is None or not has_over(node):
            condition = ExpressionResolver(Scope.of(plan, None), self._text).condition(node, "QUALIFY")
            return Filter(plan, condition)
        wider = with_others([node])
        checked = Filter(wider, wider.refs()[-1])
        return Project(checked, tuple(checked.refs()[: len(plan.names)]), plan.names)

    def _items(
        self, items: Sequence[syntax.SelectItem], resolver: ExpressionResolver
    ) -> tuple[list[Expression], list[str]]:
        expressions: list[Expression] = []
        names: list[str] = []
        for item in items:
            if isinstance(item.expression, syntax.Star):
                for name, column in self._star(item.expression, resolver):
                    expressions.append(column)
                    names.append(name)
                continue
            expressions.append(resolver.resolve(item.expression))
            # As in Flink: where there are groups, a name that comes twice counts once.
            before = set(names) if isinstance(resolver, AggregateResolver) else names
            names.append(item.alias or _derived_name(item.expression, len(before)))
        return expressions, names

    def _star(self, node: syntax.Star, resolver: ExpressionResolver) -> list[tuple[str, Expression]]:
        try:
            columns = resolver.scope.star(node.qualifier)
        except UnknownNameError as error:
            raise self._invalid(node, str(error)) from None
        if not columns:
            raise self._invalid(node, "There is no FROM whose columns * could mean.")
        if self._written is not None:
            self._written.star(node, resolver.scope.written(node.qualifier, columns))
        if isinstance(resolver, AggregateResolver):
            row = node.qualifier if isinstance(columns[0][1], Call) else ()
            return [(name, resolver.resolve(syntax.Name((*row, name), span=node.span))) for name, _ in columns]
        return columns

    def _grouped(self, node: syntax.Select, plan: Plan, scope: Scope) -> Plan:
        keys, sets = grouping_sets(node.group_by or ())
        for key in keys:
            if has_aggregates(key):
                raise self._invalid(key, "GROUP BY has no aggregates.")
        windows = [key for key in keys if _is_group_window(key)]
        window: GroupWindow | None = None
        if windows:
            call = windows[0]
            assert isinstance(call, syntax.FunctionCall)
            if len(windows) > 1 or len(sets) > 1:
                raise self._invalid(call, "GROUP BY has one window, and no grouping sets beside it.")
            keys = [key for key in keys if key != call]
            sets = []
            kind = call.name.parts[-1].upper()
            inner = ExpressionResolver(scope, self._text)
            time, others = inner.resolve(call.args[0]), [inner.resolve(key) for key in keys]
            plan = group_window_table(plan, kind, time, call.args[1:], others, call, self._text, self._streaming)
            window = GroupWindow(kind, call.args)
        resolver = AggregateResolver(plan, scope, keys, self._text, self._around(), sets, window)
        resolver.windows = node.windows
        expressions, names = self._items(node.items, resolver)
        if has_over(node.items):
            return self._over_groups(node, resolver, names)
        having = resolver.condition(node.having, "HAVING") if node.having is not None else None
        self._hints.check_state_ttl(node.source)
        ttl = self._hints.state_ttl(node.source)

        def with_others(others: Sequence[syntax.Node]) -> Plan:
            more = [resolver.resolve(other) for other in others]
            groups = replace(resolver.plan(), state_ttl=ttl)
            if not others and having is None and expressions == groups.refs():
                # Nothing is left to compute.
                return replace(groups, column_names=unique_names(names))
            result: Plan = filtered(groups, having, self._text) if having is not None else groups
            result, whole = expanded(result, [*expressions, *more], self._text)
            unique = unique_names([*names, *(f"$h{index}" for index in range(len(more)))])
            return Project(result, tuple(whole), unique)

        result = with_others(())
        self._wider = (result, with_others)
        return result

    def _over_groups(self, node: syntax.Select, resolver: AggregateResolver, names: list[str]) -> Plan:
        """Functions with OVER whose rows are groups."""
        having = resolver.condition(node.having, "HAVING") if node.having is not None else None
        groups: Plan = resolver.plan()
        if having is not None:
            groups = filtered(groups, having, self._text)
        kind = GroupedOverResolver if self._streaming else GroupedAnalyticResolver
        over = kind(groups, resolver, node.windows, self._text)
        expressions = [over.resolve(item.expression) for item in node.items]
        finished = [over.finished(each) for each in expressions]
        source, whole = expanded(over.plan(), finished, self._text)
        return Project(source, tuple(whole), unique_names(names))

    # VALUES and set operations.

    def _values(self, node: syntax.Values) -> Plan:
        resolver = ExpressionResolver(Scope([]), self._text)
        rows = [[resolver.resolve(item) for item in row.items] for row in node.rows]
        width = len(rows[0])
        for row, written in zip(rows, node.rows, strict=True):
            if len(row) != width:
                raise self._invalid(written, f"The row has {len(row)} values, the first one has {width}.")
        kinds = [self._common(node, [row[index].type for row in rows], index) for index in range(width)]
        fitted = tuple(tuple(cast_to(item, kind) for item, kind in zip(row, kinds, strict=True)) for row in rows)
        names = tuple(f"EXPR${i}" for i in range(width))
        if any(has_user_calls(item) for row in fitted for item in row):
            # Users' functions are called by an operator, which opens and closes them.
            calculated = tuple(Project(Values(((),), RowType(())), row, names) for row in fitted)
            return UnionAll(calculated) if len(calculated) > 1 else calculated[0]
        return Values(fitted, RowType.of(list(names), kinds))

    def _common(self, node: syntax.Node, kinds: list[DataType], index: int) -> DataType:
        common = common_type(kinds)
        if common is None:
            shown = ", ".join(dict.fromkeys(map(str, kinds)))
            raise self._invalid(node, f"Column {index + 1} has no common type: {shown}. Cast the values to one.")
        return common

    def _set_operation(self, node: syntax.SetOperation) -> Plan:
        left, right = self._body(node.left), self._body(node.right)
        try:
            return SET_OPERATIONS[node.operator](left, right, node.all)
        except ValueError as error:
            raise self._invalid(node.right, f"{node.operator}: {error}") from None


def _is_group_window(node: syntax.Node) -> bool:
    return isinstance(node, syntax.FunctionCall) and node.name.parts[-1].upper() in GROUP_WINDOWS and bool(node.args)


def _derived_name(node: syntax.Node, index: int) -> str:
    if isinstance(node, syntax.Name):
        return node.parts[-1]
    if isinstance(node, syntax.FieldAccess):
        return str(node.field_name)
    return f"EXPR${index}"
