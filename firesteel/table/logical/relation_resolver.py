"""FROM: tables, queries and joins, with the columns that names can mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from firesteel.table.functions.binding import FunctionError, bind
from firesteel.table.logical.changelog_tables import CHANGELOG_FUNCTIONS, changelog_table
from firesteel.table.logical.correlation import check_lateral, lateral, lateral_join, makes_rows
from firesteel.table.logical.decorrelation import is_correlated
from firesteel.table.logical.expression_resolver import Around, ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef, Subquery, parts_of, rewrite
from firesteel.table.logical.hints import Hints, with_options, with_state_ttl
from firesteel.table.logical.joins import all_of, joined
from firesteel.table.logical.patterns import match_recognized
from firesteel.table.logical.plan import Plan, Project, Values, unique_names
from firesteel.table.logical.scope import Scope, UnknownNameError
from firesteel.table.logical.subqueries import expanded, has_query, joined_to_each
from firesteel.table.logical.temporal_joins import TemporalJoinError, joined_as_of
from firesteel.table.logical.windows import WINDOW_FUNCTIONS, window_table
from firesteel.table.logical.written_names import WrittenNames
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names
from firesteel.table.types.data_types import RowType

__all__ = ["RelationResolver", "TableLookup", "renamed"]

TableLookup = Callable[[tuple[str, ...]], Plan | None]
"""What the catalog has under a name: a scan, or the plan of a view."""


class RelationResolver(ABC):
    """Resolves what stands in FROM."""

    def __init__(
        self,
        tables: TableLookup,
        names: Callable[[], Sequence[str]],
        text: str | None,
        streaming: bool,
        written: WrittenNames | None = None,
    ) -> None:
        """``written`` gathers what makes a view of the query."""
        self._tables = tables
        self._streaming = streaming
        self._known = names
        self._text = text
        self._written = written
        self._ctes: list[dict[str, Plan]] = []
        self._hints = Hints(text)
        self._outer: Scope | None = None
        """The columns of the query around the one at hand, if it stands in an expression, or is LATERAL."""

    @abstractmethod
    def _query(self, node: syntax.Query) -> Plan:
        """The plan of a query inside this one."""

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

    # FROM.

    def _relation(self, node: syntax.Node) -> tuple[Plan, Scope]:
        if isinstance(node, syntax.TableName):
            return self._table(node)
        if isinstance(node, syntax.DerivedTable):
            # Without a limit the order of a table inside a query means nothing.
            unordered = node.query.limit is None and node.query.offset is None
            plan = self._query(replace(node.query, order=()) if unordered else node.query)
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
            windows: Plan = window_table(node.call, self._table_argument, self._text, self._streaming)
            windows = self._with_columns(windows, node.column_aliases, node)
            return windows, Scope.of(windows, node.alias)
        if isinstance(node, syntax.TableFunction) and node.call.name.parts[-1].upper() in CHANGELOG_FUNCTIONS:
            changes = changelog_table(node.call, self._table_argument, self._text, self._streaming)
            changes = self._with_columns(changes, node.column_aliases, node)
            return changes, Scope.of(changes, node.alias)
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
        if isinstance(node.right, syntax.DerivedTable) and node.right.lateral:
            return self._join_each(node, node.right, left, left_scope)
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

    def _join_each(
        self, node: syntax.Join, right: syntax.DerivedTable, left: Plan, left_scope: Scope
    ) -> tuple[Plan, Scope]:
        """JOIN LATERAL (SELECT ...): a query that refers to the columns before it."""
        kind = check_lateral(node, self._text)
        query = self._with_columns(self._inner_query(right.query, left_scope), right.column_aliases, right)
        scope = left_scope.beside(Scope.of(query, right.alias), len(left.names))
        condition: Expression | None = None
        if node.condition is not None:
            condition = ExpressionResolver(scope, self._text).condition(node.condition, "ON")
        elif node.kind not in ("CROSS", "COMMA"):
            raise self._invalid(node, f"{node.kind} JOIN needs a condition: ON ....")
        plan = joined_to_each(left, query, kind, condition, right, self._text)
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
        if self._written is not None:
            self._written.named(name)
        return found

    def _with_columns(self, plan: Plan, columns: tuple[str, ...], node: syntax.Node) -> Plan:
        if not columns:
            return plan
        if len(columns) != len(plan.names):
            raise self._invalid(node, f"{len(columns)} names for {len(plan.names)} columns.")
        return renamed(plan, columns)


def renamed(plan: Plan, names: Sequence[str]) -> Plan:
    """The same columns with other names."""
    return Project(plan, tuple(plan.refs()), tuple(names))
