"""Tables: queries that are built step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firesteel.errors import ProgramError, short_repr
from firesteel.table.expression import NOWHERE, Expression, node_of
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression as Typed
from firesteel.table.logical.grouping import AggregateResolver, has_aggregates
from firesteel.table.logical.joins import joined, with_condition
from firesteel.table.logical.plan import Plan, Project, UnionAll, unique_names
from firesteel.table.logical.resolver import distinct, fitted_branches, renamed
from firesteel.table.logical.scope import Scope
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError
from firesteel.table.sql.syntax import FunctionCall, Name, Node, SelectItem, Star
from firesteel.table.table_result import TableResult
from firesteel.table.types.data_types import RowType

if TYPE_CHECKING:
    import pandas as pd

    from firesteel.table.table_environment import TableEnvironment

__all__ = ["GroupedTable", "Table"]


class Table:
    """A query. Nothing runs before ``execute``.

    >>> from firesteel.table import EnvironmentSettings, TableEnvironment
    >>> from firesteel.table.expressions import col
    >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> env.from_elements([(1, "a"), (2, "b")], ["id", "name"]).where(col("id") > 1).select(col("name")).print_schema()
    (
      `name` STRING
    )
    """

    def __init__(self, plan: Plan, env: TableEnvironment) -> None:
        self._plan = plan
        self._env = env

    def __getattr__(self, name: str) -> Expression:
        """A column, as ``table.name``."""
        if name.startswith("_") or name not in self._plan.names:
            raise AttributeError(f"{type(self).__name__} has neither a method nor a column {name!r}.")
        return Expression(Name((name,), span=NOWHERE))

    def _with(self, plan: Plan) -> Table:
        return Table(plan, self._env)

    def _scope(self) -> Scope:
        return Scope.of(self._plan, None)

    # Columns.

    def select(self, *fields: Expression) -> Table:
        """Expressions over the columns."""
        nodes = [_field(field) for field in fields]
        if any(map(has_aggregates, nodes)):
            return GroupedTable(self, ()).select(*fields)
        expressions: list[Typed] = []
        names: list[str] = []
        resolver = ExpressionResolver(self._scope())
        for node in nodes:
            if isinstance(node, Star):
                for name, column in resolver.scope.star(()):
                    expressions.append(column)
                    names.append(name)
                continue
            inner, alias = _named(node)
            expressions.append(resolver.resolve(inner))
            names.append(alias or _name_of(inner) or f"_c{len(names)}")
        return self._with(Project(self._plan, tuple(expressions), _checked(names)))

    def alias(self, field: str, *fields: str) -> Table:
        """Other names for the columns, from the first one on."""
        names = [field, *fields]
        if len(names) > len(self._plan.names):
            raise ProgramError(f"{len(names)} names for {len(self._plan.names)} columns.")
        return self._with(renamed(self._plan, _checked([*names, *self._plan.names[len(names) :]])))

    def add_columns(self, *fields: Expression) -> Table:
        """More columns behind those there are."""
        return self.select(*map(_column, self._plan.names), *fields)

    def add_or_replace_columns(self, *fields: Expression) -> Table:
        """More columns; one with a name that is there takes its place."""
        named = {_named(_field(field))[1]: field for field in fields}
        kept = [named.pop(name, _column(name)) for name in self._plan.names]
        return self.select(*kept, *named.values())

    def rename_columns(self, *fields: Expression) -> Table:
        """Other names for some columns: ``col("a").alias("b")``."""
        changes: dict[str, str] = {}
        for field in fields:
            inner, alias = _named(_field(field))
            if alias is None or not isinstance(inner, Name):
                raise ProgramError("rename_columns() takes col('old').alias('new').")
            self._scope().find(inner.parts)
            changes[inner.parts[-1]] = alias
        return self._with(renamed(self._plan, _checked([changes.get(name, name) for name in self._plan.names])))

    def drop_columns(self, *fields: Expression) -> Table:
        """Without some columns."""
        resolver = ExpressionResolver(self._scope())
        dropped = []
        for field in fields:
            node = _field(field)
            resolver.resolve(node)
            dropped.append(_name_of(node))
        kept = [name for name in self._plan.names if name not in dropped]
        if not kept:
            raise ProgramError("drop_columns() would leave no column.")
        return self.select(*map(_column, kept))

    # Rows.

    def filter(self, predicate: Expression) -> Table:
        """Rows for which a condition holds."""
        condition = ExpressionResolver(self._scope()).condition(node_of(predicate), "where()")
        return self._with(with_condition(self._plan, condition))

    def where(self, predicate: Expression) -> Table:
        """Rows for which a condition holds."""
        return self.filter(predicate)

    def distinct(self) -> Table:
        """Every row once."""
        return self._with(distinct(self._plan))

    def group_by(self, *fields: Expression) -> GroupedTable:
        """Groups of rows with the same values."""
        return GroupedTable(self, tuple(_field(field) for field in fields))

    def union_all(self, right: Table) -> Table:
        """The rows of two tables."""
        try:
            return self._with(UnionAll(tuple(fitted_branches([self._plan, right._plan]))))
        except ValueError as error:
            raise SqlValidationError(f"union_all(): {error}") from None

    def union(self, right: Table) -> Table:
        """The rows of two tables, every row once."""
        return self.union_all(right).distinct()

    def join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """Pairs of rows of two tables, whose columns have different names."""
        return self._joined(right, "INNER", join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """Pairs of rows of two tables, and rows of the first without a partner."""
        return self._joined(right, "LEFT", join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        """Pairs of rows of two tables, and rows of the second without a partner."""
        return self._joined(right, "RIGHT", join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        """Pairs of rows of two tables, and rows of both without a partner."""
        return self._joined(right, "FULL", join_predicate)

    def _joined(self, right: Table, kind: str, predicate: Expression | None) -> Table:
        both = [name for name in self._plan.names if name in right._plan.names]
        if both:
            raise SqlValidationError(f"Both tables have a column {both[0]}: give one another name with alias().")
        condition = None
        if predicate is not None:
            scope = self._scope().beside(Scope.of(right._plan, None), len(self._plan.names))
            condition = ExpressionResolver(scope).condition(node_of(predicate), "join()")
        return self._with(joined(self._plan, right._plan, kind, condition))

    # What cannot be run yet.

    def _later(self, what: str) -> NotSupportedError:
        return NotSupportedError(f"Not supported yet: {what}.")

    def order_by(self, *fields: Expression) -> Table:
        """Rows in order."""
        raise self._later("order_by()")

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Some rows."""
        raise self._later("limit()")

    def fetch(self, fetch: int) -> Table:
        """The first rows."""
        raise self._later("fetch()")

    def offset(self, offset: int) -> Table:
        """Without the first rows."""
        raise self._later("offset()")

    def window(self, window: Any) -> Table:
        """Windows of time."""
        raise self._later("windows")

    def over_window(self, *over_windows: Any) -> Table:
        """Windows around each row."""
        raise self._later("over windows")

    # Results.

    def get_schema(self) -> RowType:
        """Names and types of the columns."""
        return self._plan.row_type

    def get_resolved_schema(self) -> RowType:
        """Names and types of the columns."""
        return self._plan.row_type

    def print_schema(self) -> None:
        """Prints names and types of the columns."""
        lines = ",\n".join(f"  {field}" for field in self._plan.row_type.fields)
        print(f"(\n{lines}\n)")

    def execute(self) -> TableResult:
        """Runs the query and gives its rows."""
        return self._env._run_query(self._plan)

    def execute_insert(self, table_path: str, overwrite: bool = False) -> TableResult:
        """Writes the rows into a table."""
        return self._env._insert([(table_path, self._plan, overwrite)])

    def explain(self, *extra_details: Any) -> str:
        """The plan as text."""
        return self._env._explain([self._plan])

    def print_explain(self, *extra_details: Any) -> None:
        """Prints the plan."""
        print(self.explain(*extra_details))

    def to_pandas(self) -> pd.DataFrame:
        """The final rows of a bounded query, as a data frame."""
        return self._env._to_pandas(self._plan)

    def __str__(self) -> str:
        return f"Table({', '.join(map(str, self._plan.row_type.fields))})"


class GroupedTable:
    """A table with the columns that its rows are grouped by."""

    def __init__(self, table: Table, keys: Sequence[Node]) -> None:
        self._table = table
        self._keys = list(keys)

    def select(self, *fields: Expression) -> Table:
        """Keys and aggregates."""
        plan = self._table._plan
        inner_keys = [_named(key) for key in self._keys]
        resolver = AggregateResolver(plan, Scope.of(plan, None), [key for key, _ in inner_keys], None)
        aliases = {alias: key for key, alias in inner_keys if alias is not None}
        expressions: list[Typed] = []
        names: list[str] = []
        aggregates = 0
        for field in fields:
            inner, alias = _named(_field(field))
            if isinstance(inner, Name) and inner.parts[-1] in aliases:
                alias, inner = alias or inner.parts[-1], aliases[inner.parts[-1]]
            expressions.append(resolver.resolve(inner))
            is_aggregate = isinstance(inner, FunctionCall) and has_aggregates(inner)
            derived = f"EXPR${aggregates}" if is_aggregate else f"_c{len(names)}"
            aggregates += is_aggregate
            names.append(alias or _name_of(inner) or derived)
        return self._table._with(Project(resolver.plan(), tuple(expressions), _checked(names)))


def _column(name: str) -> Expression:
    return Expression(Name((name,), span=NOWHERE))


def _field(field: Any) -> Node:
    if isinstance(field, Expression):
        return node_of(field)
    raise ProgramError(f"Columns are expressions such as col('a'), got {short_repr(field, 60)}.")


def _named(node: Node) -> tuple[Node, str | None]:
    return (node.expression, node.alias) if isinstance(node, SelectItem) else (node, None)


def _name_of(node: Node) -> str | None:
    return node.parts[-1] if isinstance(node, Name) else None


def _checked(names: Sequence[str]) -> tuple[str, ...]:
    doubled = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
    if doubled:
        raise SqlValidationError(f"Two columns are called {doubled[0]}: give one of them another name with alias().")
    return unique_names(names)
