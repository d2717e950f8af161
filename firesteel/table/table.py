"""Tables: queries that are built step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.errors import ProgramError, short_repr
from firesteel.table.expression import NOWHERE, Expression
from firesteel.table.grouped_tables import (
    AggregatedTable,
    FlatAggregateTable,
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    WindowGroupedTable,
)
from firesteel.table.insertions import Insertion
from firesteel.table.logical.expression_resolver import Around, ExpressionResolver
from firesteel.table.logical.expressions import Expression as Typed
from firesteel.table.logical.grouping import has_aggregates
from firesteel.table.logical.joins import joined
from firesteel.table.logical.plan import Plan, Project, Sort
from firesteel.table.logical.ranking import limited, order_columns
from firesteel.table.logical.relation_resolver import renamed
from firesteel.table.logical.scope import Scope
from firesteel.table.logical.set_operations import SET_OPERATIONS, distinct
from firesteel.table.logical.subqueries import expanded, filtered
from firesteel.table.logical.time_attributes import PROCTIME, time_attribute
from firesteel.table.resolved_schema import ResolvedSchema
from firesteel.table.row_operations import (
    flat_mapped,
    joined_laterally,
    mapped,
)
from firesteel.table.select_fields import (
    FieldExpansion,
    checked_names,
    chosen_columns,
    field_node,
    name_of,
    named_node,
)
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.sql.syntax import Name, Node, OrderItem, PlannedQuery, Query
from firesteel.table.table_pipeline import TablePipeline
from firesteel.table.table_result import TableResult
from firesteel.table.table_schema import TableSchema
from firesteel.table.window import GroupWindow, OverWindow

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from firesteel.table.table_descriptor import TableDescriptor
    from firesteel.table.table_environment import TableEnvironment

__all__ = [
    "AggregatedTable",
    "FlatAggregateTable",
    "GroupWindowedTable",
    "GroupedTable",
    "OverWindowedTable",
    "Table",
    "WindowGroupedTable",
]


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

    def __init__(self, plan: Plan, env: TableEnvironment, declared: ResolvedSchema | None = None) -> None:
        """``declared``: of a table that is read as it is, where its columns and watermarks come from."""
        self._plan = plan
        self._env = env
        self._declared = declared
        self._name: str | None = None

    def __getattr__(self, name: str) -> Expression:
        """A column, as ``table.name``."""
        if name.startswith("_") or name not in self._plan.names:
            columns = "" if name.startswith("_") else f" The columns are {', '.join(self._plan.names)}."
            raise AttributeError(f"{type(self).__name__} has neither a method nor a column {name!r}.{columns}")
        return Expression(Name((name,), span=NOWHERE))

    def _with(self, plan: Plan) -> Table:
        return Table(plan, self._env)

    def _found(self, field: Any) -> Node:
        """What an expression holds; functions that it calls by name are found."""
        found: Node = self._env._with_functions(field_node(field))
        return found

    def _expansion(self) -> FieldExpansion:
        columns = {name: Name((name,), span=NOWHERE) for name in self._plan.names}
        return FieldExpansion(columns, lambda node: self._resolver().resolve(node).type)

    def _written(self, field: Any) -> Node:
        """The same, with columns in the place of ``*`` and its like among arguments."""
        return self._expansion().inside(self._found(field))

    def _fields(self, fields: Sequence[Any]) -> list[Node]:
        """Several of them, among which ``*`` and its like stand for columns, too."""
        return self._expansion().fields([self._found(field) for field in fields])

    def _scope(self) -> Scope:
        return Scope.of(self._plan, None)

    def _resolver(self) -> ExpressionResolver:
        resolver = ExpressionResolver(self._scope())
        resolver.around = Around(_planned)
        return resolver

    # Columns.

    def select(self, *fields: Expression) -> Table:
        """Expressions over the columns."""
        if not fields:
            raise ProgramError("select() takes one column at least, got none: select(col('*')) takes all of them.")
        if any(has_aggregates(self._found(field)) for field in fields):
            return GroupedTable(self, ()).select(*fields)
        expressions: list[Typed] = []
        names: list[str] = []
        resolver = self._resolver()
        for node in self._fields(fields):
            inner, alias = named_node(node)
            expressions.append(resolver.resolve(inner))
            names.append(alias or name_of(inner) or f"_c{len(names)}")
        plan, expressions = expanded(self._plan, expressions, None)
        return self._with(Project(plan, tuple(expressions), checked_names(names)))

    def alias(self, field: str, *fields: str) -> Table:
        """Other names for the columns, from the first one on."""
        names = [field, *fields]
        if len(names) > len(self._plan.names):
            raise ProgramError(f"{len(names)} names for {len(self._plan.names)} columns.")
        return self._with(renamed(self._plan, checked_names([*names, *self._plan.names[len(names) :]])))

    def add_columns(self, *fields: Expression) -> Table:
        """More columns behind those there are."""
        return self.select(*map(_column, self._plan.names), *fields)

    def add_or_replace_columns(self, *fields: Expression) -> Table:
        """More columns; one with a name that is there takes its place."""
        named = {named_node(field_node(field))[1]: field for field in fields}
        kept = [named.pop(name, _column(name)) for name in self._plan.names]
        return self.select(*kept, *named.values())

    def rename_columns(self, *fields: Expression) -> Table:
        """Other names for some columns: ``col("a").alias("b")``."""
        changes: dict[str, str] = {}
        for field in fields:
            inner, alias = named_node(field_node(field))
            if alias is None or not isinstance(inner, Name):
                raise ProgramError("rename_columns() takes col('old').alias('new').")
            self._scope().find(inner.parts)
            changes[inner.parts[-1]] = alias
        return self._with(renamed(self._plan, checked_names([changes.get(name, name) for name in self._plan.names])))

    def drop_columns(self, *fields: Expression) -> Table:
        """Without some columns."""
        resolver = ExpressionResolver(self._scope())
        dropped: list[str | None] = []
        for field in fields:
            node = field_node(field)
            chosen = chosen_columns(node, self._plan.names)
            if chosen is None:
                resolver.resolve(node)
            dropped += [name_of(node)] if chosen is None else chosen
        kept = [name for name in self._plan.names if name not in dropped]
        if not kept:
            raise ProgramError("drop_columns() would leave no column.")
        return self.select(*map(_column, kept))

    # Rows.

    def filter(self, predicate: Expression) -> Table:
        """Rows for which a condition holds."""
        condition = self._resolver().condition(self._written(predicate), "where()")
        return self._with(filtered(self._plan, condition, None))

    def where(self, predicate: Expression) -> Table:
        """Rows for which a condition holds."""
        return self.filter(predicate)

    def distinct(self) -> Table:
        """Every row once."""
        return self._with(distinct(self._plan))

    def group_by(self, *fields: Expression) -> GroupedTable:
        """Groups of rows with the same values."""
        return GroupedTable(self, tuple(self._fields(fields)))

    def union_all(self, right: Table) -> Table:
        """The rows of two tables."""
        return self._combined("UNION", right, True, "union_all")

    def union(self, right: Table) -> Table:
        """The rows of two tables, every row once."""
        return self._combined("UNION", right, False, "union")

    def intersect(self, right: Table) -> Table:
        """Rows that both tables have, every row once.

        >>> from firesteel.table import EnvironmentSettings, TableEnvironment
        >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> one, other = env.from_elements([(1,), (2,)], ["a"]), env.from_elements([(2,), (3,)], ["b"])
        >>> one.intersect(other).to_pandas()["a"].to_list()
        [2]
        """
        return self._combined("INTERSECT", right, False, "intersect")

    def intersect_all(self, right: Table) -> Table:
        """Rows that both tables have, as often as the one that has fewer of them."""
        return self._combined("INTERSECT", right, True, "intersect_all")

    def minus(self, right: Table) -> Table:
        """Rows of this table that the other one does not have, every row once."""
        return self._combined("EXCEPT", right, False, "minus")

    def minus_all(self, right: Table) -> Table:
        """Rows of this table, as often as it has more of them than the other one."""
        return self._combined("EXCEPT", right, True, "minus_all")

    def _combined(self, operation: str, right: Table, all: bool, method: str) -> Table:
        try:
            return self._with(SET_OPERATIONS[operation](self._plan, right._plan, all))
        except ValueError as error:
            raise SqlValidationError(f"{method}(): {error}") from None

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
            condition = ExpressionResolver(scope).condition(self._written(predicate), "join()")
        return self._with(joined(self._plan, right._plan, kind, condition))

    def order_by(self, *fields: Expression) -> Table:
        """Rows in order: ``col("a").desc``. A stream can be ordered only with a limit. NULL counts as larger than all
        values, as in PyFlink; in SQL's ORDER BY it counts as smaller.

        >>> from firesteel.common import Configuration
        >>> from firesteel.table import EnvironmentSettings, TableEnvironment
        >>> from firesteel.table.expressions import col
        >>> settings = EnvironmentSettings.new_instance().in_batch_mode()
        >>> memory = Configuration.from_dict({"firesteel.master": "memory"})
        >>> env = TableEnvironment.create(settings.with_configuration(memory).build())
        >>> list(env.from_elements([(1,), (3,), (2,)], ["n"]).order_by(col("n").desc).execute().collect())
        [<Row(3)>, <Row(2)>, <Row(1)>]
        """
        items = [_api_order(node) for node in self._fields(fields)]
        ordered, order = order_columns(self._plan, items, ExpressionResolver(self._scope()))
        sort = Sort(ordered, order)
        if ordered is self._plan:
            return self._with(sort)
        return self._with(Project(sort, tuple(sort.refs()[: len(self._plan.names)]), self._plan.names))

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """So many rows, after the first ``offset``: of an ordered table the first ones, otherwise any."""
        return self._with(limited(self._plan, _count(offset, "offset"), _count(fetch, "fetch")))

    def fetch(self, fetch: int) -> Table:
        """So many rows: of an ordered table the first ones, otherwise any."""
        return self._with(limited(self._plan, 0, _count(fetch, "fetch")))

    def offset(self, offset: int) -> Table:
        """Without the first rows."""
        return self._with(limited(self._plan, _count(offset, "offset"), None))

    # Users' functions.

    def map(self, func: Any) -> Table:
        """The fields of the row that a function gives for each row: ``t.map(f(col("a")))``, or ``t.map(f)`` for a
        function of whole rows."""
        return self._with(mapped(self._plan, func, self._written))

    def flat_map(self, func: Any) -> Table:
        """The rows that a table function gives for each row."""
        return self._with(flat_mapped(self._plan, func, self._written))

    def join_lateral(self, table_function_call: Any, join_predicate: Expression | None = None) -> Table:
        """Each row with the rows that a table function makes of it: ``t.join_lateral(f(col("a")).alias("b", "c"))``."""
        return self._lateral(table_function_call, "INNER", join_predicate)

    def left_outer_join_lateral(self, table_function_call: Any, join_predicate: Expression | None = None) -> Table:
        """The same, and with NULLs each row of which nothing is made."""
        return self._lateral(table_function_call, "LEFT", join_predicate)

    def _lateral(self, function: Any, kind: str, predicate: Expression | None) -> Table:
        condition = self._written(predicate) if predicate is not None else None
        return self._with(joined_laterally(self._plan, function, self._written, kind, condition))

    def aggregate(self, func: Any) -> AggregatedTable:
        """What an aggregate function gives for all rows. A ``select`` follows."""
        return GroupedTable(self, ()).aggregate(func)

    def flat_aggregate(self, func: Any) -> FlatAggregateTable:
        """The rows that a table aggregate function gives for all rows. A ``select`` follows."""
        return GroupedTable(self, ()).flat_aggregate(func)

    # Windows.

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Windows of time that rows are grouped by."""
        if not isinstance(window, GroupWindow):
            raise ProgramError(f"window() takes Tumble, Slide or Session with an alias, got {short_repr(window, 60)}.")
        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Windows around each row."""
        for window in over_windows:
            if not isinstance(window, OverWindow):
                raise ProgramError(f"over_window() takes Over with an alias, got {short_repr(window, 60)}.")
        return OverWindowedTable(self, over_windows)

    # Results.

    def get_schema(self) -> TableSchema:
        """Names and types of the columns."""
        return TableSchema(self._plan.names, self._plan.types)

    def get_resolved_schema(self) -> ResolvedSchema:
        """Names and types of the columns, which of them are time attributes, and what the table was declared with."""
        schema = self._declared or ResolvedSchema.physical(self._plan.names, self._plan.types)
        times = [time_attribute(self._plan, at) for at in range(len(self._plan.names))]
        # Batch mode has no event time, as in Flink.
        known = times if self._env._streaming else [time if time == PROCTIME else None for time in times]
        return schema.with_times([time and time.upper() for time in known])

    def print_schema(self) -> None:
        """Prints the columns with their types, and what else is known of them."""
        print(self.get_resolved_schema())

    def execute(self) -> TableResult:
        """Runs the query and gives its rows."""
        return self._env._run_query(self._plan)

    def execute_insert(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TableResult:
        """Writes the rows into a table of the catalog, or into one that a descriptor describes."""
        return self._env._insert([Insertion(table_path_or_descriptor, self._plan, overwrite)])

    def insert_into(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TablePipeline:
        """The table and where its rows go, to be run later or with others."""
        return TablePipeline(table_path_or_descriptor, self, overwrite)

    def explain(self, *extra_details: Any) -> str:
        """The plan as text."""
        return self._env._explain([self._plan], extra_details)

    def print_explain(self, *extra_details: Any) -> None:
        """Prints the plan."""
        print(self.explain(*extra_details))

    def to_pandas(self) -> pd.DataFrame:
        """The final rows of a bounded query, as a data frame."""
        return self._env._to_pandas(self._plan)

    def to_spark(self) -> DataFrame:
        """The rows as a DataFrame of the program's Spark session. Only in batch mode. Nothing runs before Spark is
        asked for rows."""
        return self._env._to_spark(self._plan)

    def __str__(self) -> str:
        """A name for ``env.sql_query(f"SELECT * FROM {table}")``, which the table gets when it is asked for it."""
        if self._name is None:
            self._name = self._env._named(self)
        return self._name

    def __repr__(self) -> str:
        return f"Table({', '.join(map(str, self._plan.row_type.fields))})"


def _api_order(node: Node) -> OrderItem:
    item = node if isinstance(node, OrderItem) else OrderItem(node, False, None, span=NOWHERE)
    return item if item.nulls_last is not None else replace(item, nulls_last=not item.descending)


def _count(rows: Any, what: str) -> int:
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0:
        raise ProgramError(f"{what} is a number of rows, 0 or more, got {short_repr(rows, 60)}.")
    return rows


def _planned(query: Query, scope: Scope) -> Plan:
    """The plan of a table inside an expression: ``col("a").in_(table)``."""
    assert isinstance(query.body, PlannedQuery)
    plan: Plan = query.body.plan
    return plan


def _column(name: str) -> Expression:
    return Expression(Name((name,), span=NOWHERE))
