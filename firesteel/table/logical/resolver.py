"""Queries: from the tree that the parser made to the relational tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from firesteel.table.functions.binding import FunctionError, bind, cast_to
from firesteel.table.logical.analytic_resolver import AnalyticResolver, GroupedAnalyticResolver
from firesteel.table.logical.correlation import lateral, lateral_join, makes_rows
from firesteel.table.logical.decorrelation import is_correlated
from firesteel.table.logical.expression_resolver import Around, ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef, Subquery, parts_of, rewrite
from firesteel.table.logical.group_windows import GROUP_WINDOWS, GroupWindow, group_window_table
from firesteel.table.logical.grouping import AggregateResolver, has_aggregates, has_over
from firesteel.table.logical.grouping_sets import grouping_sets
from firesteel.table.logical.hints import Hints, with_options, with_state_ttl
from firesteel.table.logical.joins import all_of, joined
from firesteel.table.logical.over_windows import OverResolver
from firesteel.table.logical.patterns import match_recognized
from firesteel.table.logical.plan import Plan, Project, Sort, SortOrder, Values, unique_names
from firesteel.table.logical.ranking import first_rows, placed_order
from firesteel.table.logical.scope import Scope, UnknownNameError
from firesteel.table.logical.set_operations import SET_OPERATIONS, distinct
from firesteel.table.logical.subqueries import expanded, filtered, has_query
from firesteel.table.logical.temporal_joins import TemporalJoinError, joined_as_of
from firesteel.table.logical.windows import WINDOW_FUNCTIONS, window_table
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names
from firesteel.table.types.data_types import DataType, RowField, RowType
from firesteel.table.types.derivation import common_type

__all__ = ["QueryResolver", "TableLookup", "renamed"]

TableLookup = Callable[[tuple[str, ...]], Plan | None]
"""What the catalog has under a name: a scan, or the plan of a view."""


class QueryResolver:
    """Resolves queries of one statement."""

    def __init__(
        self,
        tables: TableLookup,
        names: Callable[[], Sequence[str]],
        text: str | None = None,
        streaming: bool = True,
    ) -> None:
        self._tables = tables
        self._known = names
        self._text = text
        self._streaming = streaming
        self._ctes: list[dict[str, Plan]] = []
        self._hints = Hints(text)
        self._outer: Scope | None = None
        """The columns of the query around the one at hand, if it stands in an expression."""
        self._wider: tuple[Plan, Callable[[Sequence[syntax.Node]], Plan]] | None = None
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
        if self._streaming and node.limit is None:
            if node.order:
                message = "A stream has no end, so it cannot be sorted: ORDER BY needs a LIMIT."
                raise self._invalid(node.order[0], message)
            raise self._invalid(node.offset or node, "OFFSET needs a LIMIT in a stream.")
        limit = self._count(node.limit) if node.limit is not None else None
        offset = self._count(node.offset) if node.offset is not None else 0
        ordered: Plan = plan
        order: tuple[SortOrder, ...] = ()
        if node.order:
            ordered, order = self._order(node.order, plan)
        sort = Sort(ordered, order, offset, limit)
        result = first_rows(sort) if self._streaming else sort
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

    def _invalid(self, node: syntax.Node, message: str) -> SqlValidationError:
        return SqlValidationError(message, self._text, node.span)

    def _unsupported(self, node: syntax.Node, what: str) -> NotSupportedError:
        return NotSupportedError(f"Not supported yet: {what}.", self._text, node.span)

    # Queries in expressions.

    def _around(self) -> Around:
        return Around(self._inner_query, self._outer)

    def _inner_query(self, node: syntax.Query, scope: Scope) -> Plan:
        """The plan of a query in an expression over the columns of a scope."""
        outer, self._outer = self._outer, scope
        try:
            return self._query(node)
        finally:
            self._outer = outer

    def _query_of_on(self, node: syntax.Query, scope: Scope) -> Plan:
        plan = self._inner_query(node, scope)
        if is_correlated(plan):
            raise self._unsupported(node, "a query inside ON that refers to the tables that are joined")
        return plan

    def _resolver(self, scope: Scope) -> ExpressionResolver:
        resolver = ExpressionResolver(scope, self._text)
        resolver.around = self._around()
        return resolver

    # SELECT.

    def _select(self, node: syntax.Select) -> Plan:
        self._hints.begin(node.hints)
        try:
            return self._selected(node)
        finally:
            self._hints.end()

    def _selected(self, node: syntax.Select) -> Plan:
        if node.qualify is not None:
            raise self._unsupported(node.qualify, "QUALIFY")
        if node.source is None:
            plan: Plan = Values(((),), RowType(()))
            scope = Scope([])
        else:
            plan, scope = self._relation(node.source)
        if node.where is not None:
            if has_aggregates(node.where):
                raise self._invalid(node.where, "WHERE has no aggregates: HAVING filters groups.")
            plan = filtered(plan, self._resolver(scope).condition(node.where, "WHERE"), self._text)
        grouped = node.group_by is not None or node.having is not None or any(map(has_aggregates, node.items))
        plan = self._grouped(node, plan, scope) if grouped else self._projected(node, plan, scope)
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
        self._wider = (result, with_others)
        return result

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
        if isinstance(resolver, AggregateResolver):
            return [(name, resolver.resolve(syntax.Name((name,), span=node.span))) for name, _ in columns]
        return [(name, column) for name, column in columns]

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
            plan = group_window_table(plan, kind, time, call.args[1:], others, call, self._text)
            window = GroupWindow(kind, call.args)
        resolver = AggregateResolver(plan, scope, keys, self._text, self._around(), sets, window)
        resolver.windows = None if self._streaming else node.windows
        expressions, names = self._items(node.items, resolver)
        if has_over(node.items):
            return self._over_groups(node, resolver, names)
        having = resolver.condition(node.having, "HAVING") if node.having is not None else None
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
        over = GroupedAnalyticResolver(groups, resolver, node.windows, self._text)
        expressions = [over.resolve(item.expression) for item in node.items]
        finished = [over.finished(each) for each in expressions]
        source, whole = expanded(over.plan(), finished, self._text)
        return Project(source, tuple(whole), unique_names(names))

    # FROM.

    def _relation(self, node: syntax.Node) -> tuple[Plan, Scope]:
        if isinstance(node, syntax.TableName):
            return self._table(node)
        if isinstance(node, syntax.DerivedTable):
            plan = self._query(node.query)
            plan = self._with_columns(plan, node.column_aliases, node)
            return plan, Scope.of(plan, node.alias)
        if isinstance(node, syntax.Join):
            return self._join(node)
        if isinstance(node, syntax.MatchRecognize):
            input, scope = self._relation(node.input)
            found: Plan = match_recognized(node, input, scope, self._text)
            found = self._with_columns(found, node.column_aliases, node)
            return found, Scope.of(found, node.alias)
        if isinstance(node, syntax.TableFunction) and node.call.name.parts[-1].upper() in WINDOW_FUNCTIONS:
            windows: Plan = window_table(node.call, self._table_argument, self._text)
            windows = self._with_columns(windows, node.column_aliases, node)
            return windows, Scope.of(windows, node.alias)
        if makes_rows(node):
            return lateral(node, Values(((),), RowType(())), Scope([]), "INNER", self._text)
        what: dict[type, str] = {syntax.TableFunction: "table functions and windows"}
        raise self._unsupported(node, what.get(type(node), type(node).__name__))

    def _table_argument(self, node: syntax.TableArgument) -> Plan:
        if node.order:
            raise self._unsupported(node, "ORDER BY of a table argument")
        if isinstance(node.table, syntax.Query):
            return self._query(node.table)
        assert isinstance(node.table, syntax.Name)
        return self._named(node.table)

    def _join(self, node: syntax.Join) -> tuple[Plan, Scope]:
        left, left_scope = self._relation(node.left)
        if isinstance(node.right, syntax.TableName) and node.right.as_of is not None:
            return self._join_as_of(node, node.right, left, left_scope)
        if makes_rows(node.right):
            return lateral_join(node, left, left_scope, self._text)
        right, right_scope = self._relation(node.right)
        scope = left_scope.beside(right_scope, len(left.names))
        kind = "INNER" if node.kind in ("CROSS", "COMMA") else node.kind
        condition: Expression | None = None
        if node.natural or node.using:
            return self._using(node, kind, (left, left_scope), (right, right_scope))
        if node.condition is not None:
            resolver = ExpressionResolver(scope, self._text)
            resolver.around = Around(self._query_of_on, self._outer)
            condition = resolver.condition(node.condition, "ON")
        elif node.kind not in ("CROSS", "COMMA"):
            raise self._invalid(node, f"{node.kind} JOIN needs a condition: ON ....")
        plan = self._joined_on(left, right, kind, condition, node)
        plan = with_state_ttl(plan, [self._hints.state_ttl(side) for side in (node.left, node.right)])
        return plan, scope.retyped(plan.types)

    def _joined_on(self, left: Plan, right: Plan, kind: str, condition: Expression | None, node: syntax.Join) -> Plan:
        """A query inside the condition stands for a value that is the same for all rows: it is a column of the left
        side, until they are joined."""
        width = len(left.names)
        if condition is None or not has_query(condition):
            return joined(left, right, kind, condition)
        queries = [part for part in parts_of(condition) if isinstance(part, Subquery)]
        if any(query.kind == "IN" for query in queries):
            raise self._unsupported(node, "IN with a query inside ON")
        wider, values = expanded(left, queries, self._text)
        added = len(wider.names) - width

        def moved(part: Expression) -> Expression | None:
            if isinstance(part, Subquery):
                return values[queries.index(part)]
            if isinstance(part, InputRef) and part.index >= width:
                return InputRef(part.index + added, part.type)
            return None

        whole = joined(wider, right, kind, rewrite(condition, moved))
        refs = whole.refs()
        kept = (*refs[:width], *refs[width + added :])
        return Project(whole, kept, unique_names([*left.names, *right.names]))

    def _join_as_of(
        self, node: syntax.Join, table: syntax.TableName, left: Plan, left_scope: Scope
    ) -> tuple[Plan, Scope]:
        """JOIN t FOR SYSTEM_TIME AS OF left.time ON ..."""
        assert table.as_of is not None
        right, right_scope = self._table(replace(table, as_of=None))
        scope = left_scope.beside(right_scope, len(left.names))
        if node.condition is None:
            raise self._invalid(node, "A join with FOR SYSTEM_TIME AS OF needs a condition: ON ....")
        condition = ExpressionResolver(scope, self._text).condition(node.condition, "ON")
        time = ExpressionResolver(left_scope, self._text).resolve(table.as_of)
        try:
            plan = joined_as_of(left, right, node.kind, condition, time, self._hints.lookup(table))
        except TemporalJoinError as error:
            raise self._invalid(table.as_of, str(error)) from None
        return plan, scope.retyped(plan.types)

    def _using(
        self, node: syntax.Join, kind: str, one: tuple[Plan, Scope], other: tuple[Plan, Scope]
    ) -> tuple[Plan, Scope]:
        """NATURAL JOIN and USING: equal columns are one column of the result, and the first one."""
        (left, left_scope), (right, right_scope) = one, other
        common = node.using or tuple(dict.fromkeys(n for n in left_scope.visible if n in right_scope.visible))
        width = len(left.names)
        pairs = []
        for name in common:
            try:
                first, second = left_scope.find((name,)), right_scope.find((name,))
                assert isinstance(first, InputRef)
                assert isinstance(second, InputRef)
                moved = InputRef(second.index + width, second.type)
                pairs.append((first, moved, bind("=", [first, moved])))
            except (UnknownNameError, FunctionError) as error:
                raise self._invalid(node, f"{name} is not a column that both sides have. {error}") from None
        whole = joined(left, right, kind, all_of([equal for *_, equal in pairs]))
        refs = whole.refs()
        merged: list[Expression] = []
        for first, second, _ in pairs:
            one_ref, other_ref = refs[first.index], refs[second.index]
            if kind == "FULL":
                merged.append(self._resolver(Scope([])).call(node, "COALESCE", [one_ref, other_ref]))
            else:
                merged.append(other_ref if kind == "RIGHT" else one_ref)
        plan = Project(whole, (*merged, *refs), unique_names([*common, *whole.names]))
        place = {index: index + len(common) for index in range(len(refs))}
        return plan, left_scope.beside(right_scope, width).merged(common, place, plan.types)

    def _table(self, node: syntax.TableName) -> tuple[Plan, Scope]:
        if node.as_of is not None:
            message = "FOR SYSTEM_TIME AS OF has a place on the right side of a join: JOIN t FOR SYSTEM_TIME AS OF ...."
            raise self._invalid(node.as_of, message)
        plan = with_options(self._named(node.name), node.hints, self._text)
        plan = self._with_columns(plan, node.column_aliases, node)
        return plan, Scope.of(plan, node.alias or node.name.parts[-1])

    def _named(self, name: syntax.Name) -> Plan:
        if len(name.parts) == 1:
            for scope in reversed(self._ctes):
                if name.parts[0] in scope:
                    return scope[name.parts[0]]
        found = self._tables(name.parts)
        if found is None:
            known = [*self._known(), *(each for scope in self._ctes for each in scope)]
            listed = f" There are {', '.join(known[:20])}." if known else " There is no table at all yet."
            raise self._invalid(name, f"There is no table {name}.{near_names(name.parts[-1], known)}{listed}")
        return found

    def _with_columns(self, plan: Plan, columns: tuple[str, ...], node: syntax.Node) -> Plan:
        if not columns:
            return plan
        if len(columns) != len(plan.names):
            raise self._invalid(node, f"{len(columns)} names for {len(plan.names)} columns.")
        return renamed(plan, columns)

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
        return Values(fitted, RowType(tuple(RowField(f"EXPR${i}", kind) for i, kind in enumerate(kinds))))

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


def renamed(plan: Plan, names: Sequence[str]) -> Plan:
    """The same columns with other names."""
    return Project(plan, tuple(plan.refs()), tuple(names))


def _is_group_window(node: syntax.Node) -> bool:
    return isinstance(node, syntax.FunctionCall) and node.name.parts[-1].upper() in GROUP_WINDOWS and bool(node.args)


def _derived_name(node: syntax.Node, index: int) -> str:
    if isinstance(node, syntax.Name):
        return node.parts[-1]
    if isinstance(node, syntax.FieldAccess):
        return node.field_name
    return f"EXPR${index}"
