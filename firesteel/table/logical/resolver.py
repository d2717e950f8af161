"""Queries: from the tree that the parser made to the relational tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from firesteel.table.functions.binding import bind, cast_to
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef
from firesteel.table.logical.grouping import AggregateResolver, has_aggregates
from firesteel.table.logical.joins import joined, with_condition
from firesteel.table.logical.plan import Aggregate, Filter, Plan, Project, RowNumber, UnionAll, Values, unique_names
from firesteel.table.logical.ranking import RowNumberResolver, number, order_columns
from firesteel.table.logical.scope import Scope, UnknownNameError
from firesteel.table.logical.windows import WINDOW_FUNCTIONS, window_table
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names
from firesteel.table.types.data_types import DataType, NullType, RowField, RowType
from firesteel.table.types.derivation import common_type

__all__ = ["QueryResolver", "TableLookup", "distinct", "fitted_branches", "renamed"]

TableLookup = Callable[[tuple[str, ...]], Plan | None]
"""What the catalog has under a name: a scan, or the plan of a view."""


class QueryResolver:
    """Resolves queries of one statement."""

    def __init__(self, tables: TableLookup, names: Callable[[], Sequence[str]], text: str | None = None) -> None:
        self._tables = tables
        self._known = names
        self._text = text
        self._ctes: list[dict[str, Plan]] = []

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
        if node.limit is not None or node.offset is not None:
            return self._limited(node, plan)
        if node.order:
            message = "A stream has no end, so it cannot be sorted: ORDER BY needs a LIMIT."
            raise self._invalid(node.order[0], message)
        return plan

    def _limited(self, node: syntax.Query, plan: Plan) -> Plan:
        """The first rows: those with the least places in the order."""
        if node.limit is None:
            raise self._invalid(node.offset or node, "OFFSET needs a LIMIT in a stream.")
        limit, offset = self._count(node.limit), self._count(node.offset) if node.offset is not None else 0
        scope = Scope.of(plan, None)
        ordered, order = order_columns(plan, node.order, ExpressionResolver(scope, self._text))
        numbered = RowNumber(ordered, (), order, "$row")
        place = InputRef(len(numbered.names) - 1, numbered.types[-1])
        bounds: list[Expression] = [bind("<=", [place, number(offset + limit)])]
        if offset:
            bounds.append(bind(">", [place, number(offset)]))
        condition = bounds[0] if len(bounds) == 1 else bind("AND", bounds)
        kept = numbered.refs()[: len(plan.names)]
        return Project(Filter(numbered, condition), tuple(kept), plan.names)

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

    # SELECT.

    def _select(self, node: syntax.Select) -> Plan:
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
            condition = ExpressionResolver(scope, self._text).condition(node.where, "WHERE")
            plan = with_condition(plan, condition)
        grouped = node.group_by is not None or node.having is not None or any(map(has_aggregates, node.items))
        plan = self._grouped(node, plan, scope) if grouped else self._projected(node, plan, scope)
        return distinct(plan) if node.distinct else plan

    def _projected(self, node: syntax.Select, plan: Plan, scope: Scope) -> Plan:
        resolver = RowNumberResolver(plan, scope, node.windows, self._text)
        expressions, names = self._items(node.items, resolver)
        return Project(resolver.plan, tuple(expressions), unique_names(names))

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
            names.append(item.alias or _derived_name(item.expression, len(names)))
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
        keys = [key for element in node.group_by or () for key in self._key_elements(element)]
        for key in keys:
            if has_aggregates(key):
                raise self._invalid(key, "GROUP BY has no aggregates.")
        resolver = AggregateResolver(plan, scope, keys, self._text)
        expressions, names = self._items(node.items, resolver)
        having = resolver.condition(node.having, "HAVING") if node.having is not None else None
        groups = resolver.plan()
        if having is None and expressions == groups.refs():
            # Nothing is left to compute.
            return replace(groups, column_names=unique_names(names))
        result: Plan = Filter(groups, having) if having is not None else groups
        return Project(result, tuple(expressions), unique_names(names))

    def _key_elements(self, node: syntax.Node) -> list[syntax.Node]:
        if isinstance(node, syntax.GroupingSets):
            raise self._unsupported(node, node.kind)
        if isinstance(node, syntax.RowConstructor):
            return list(node.items)
        return [node]

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
        if isinstance(node, syntax.TableFunction) and node.call.name.parts[-1].upper() in WINDOW_FUNCTIONS:
            windows: Plan = window_table(node.call, self._table_argument, self._text)
            windows = self._with_columns(windows, node.column_aliases, node)
            return windows, Scope.of(windows, node.alias)
        what = {
            syntax.TableFunction: "table functions and windows",
            syntax.Unnest: "UNNEST",
            syntax.MatchRecognize: "MATCH_RECOGNIZE",
        }.get(type(node), type(node).__name__)
        raise self._unsupported(node, what)

    def _table_argument(self, node: syntax.TableArgument) -> Plan:
        if node.partition or node.order:
            raise self._unsupported(node, "PARTITION BY and ORDER BY of a table argument")
        if isinstance(node.table, syntax.Query):
            return self._query(node.table)
        assert isinstance(node.table, syntax.Name)
        return self._named(node.table)

    def _join(self, node: syntax.Join) -> tuple[Plan, Scope]:
        left, left_scope = self._relation(node.left)
        right, right_scope = self._relation(node.right)
        scope = left_scope.beside(right_scope, len(left.names))
        kind = "INNER" if node.kind in ("CROSS", "COMMA") else node.kind
        condition: Expression | None = None
        if node.natural or node.using:
            raise self._unsupported(node, "NATURAL JOIN and USING")
        if node.condition is not None:
            condition = ExpressionResolver(scope, self._text).condition(node.condition, "ON")
        elif node.kind not in ("CROSS", "COMMA"):
            raise self._invalid(node, f"{node.kind} JOIN needs a condition: ON ....")
        plan = joined(left, right, kind, condition)
        return plan, scope.retyped(plan.types)

    def _table(self, node: syntax.TableName) -> tuple[Plan, Scope]:
        if node.as_of is not None:
            raise self._unsupported(node.as_of, "FOR SYSTEM_TIME AS OF")
        plan = self._named(node.name)
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
        if node.operator != "UNION":
            raise self._unsupported(node, node.operator)
        try:
            branches = fitted_branches([self._body(node.left), self._body(node.right)])
        except ValueError as error:
            raise self._invalid(node.right, f"UNION: {error}") from None
        result = UnionAll(tuple(branches))
        return result if node.all else distinct(result)


def fitted_branches(branches: Sequence[Plan]) -> list[Plan]:
    """Plans with one common type for each column, and the names of the first. ValueError if there is none."""
    first, *others = branches
    for other in others:
        if len(other.names) != len(first.names):
            raise ValueError(f"{len(first.names)} columns and {len(other.names)} columns do not go together.")
    kinds = []
    for index, name in enumerate(first.names):
        common = common_type([branch.types[index] for branch in branches])
        if common is None:
            shown = " and ".join(str(branch.types[index]) for branch in branches)
            raise ValueError(f"column {name} has no common type: {shown}. Cast one of them.")
        kinds.append(common)
    flat: list[Plan] = []
    for branch in branches:
        fitted = _fitted(branch, kinds, first.names)
        flat += fitted.branches if isinstance(fitted, UnionAll) else (fitted,)
    return flat


def _fitted(plan: Plan, kinds: Sequence[DataType], names: tuple[str, ...]) -> Plan:
    if list(plan.types) == list(kinds) and plan.names == names:
        return plan
    expressions = [
        cast_to(column, kind) if not isinstance(kind, NullType) else column
        for column, kind in zip(plan.refs(), kinds, strict=True)
    ]
    # A branch without NULLs takes the type of the whole.
    typed = [
        InputRef(each.index, kind) if isinstance(each, InputRef) else each
        for each, kind in zip(expressions, kinds, strict=True)
    ]
    return Project(plan, tuple(typed), names)


def distinct(plan: Plan) -> Plan:
    """Every row once."""
    return Aggregate(plan, tuple(range(len(plan.names))), (), plan.names)


def renamed(plan: Plan, names: Sequence[str]) -> Plan:
    """The same columns with other names."""
    return Project(plan, tuple(plan.refs()), tuple(names))


def _derived_name(node: syntax.Node, index: int) -> str:
    if isinstance(node, syntax.Name):
        return node.parts[-1]
    if isinstance(node, syntax.FieldAccess):
        return node.field_name
    return f"EXPR${index}"
