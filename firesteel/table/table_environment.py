"""Where tables are made, named and run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.common.configuration import Configuration
from firesteel.common.types import Row
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.errors import ProgramError, short_repr
from firesteel.table.catalog.manager import CatalogManager
from firesteel.table.catalog.tables import DeclaredTable, InlineTable, View
from firesteel.table.declarations import table_plan
from firesteel.table.environment_settings import EnvironmentSettings
from firesteel.table.logical.plan import Plan, Scan
from firesteel.table.logical.resolver import QueryResolver
from firesteel.table.physical.explain import explained
from firesteel.table.physical.planner import Planner
from firesteel.table.physical.sinks import write_to
from firesteel.table.sql.cursor import Cursor
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names
from firesteel.table.sql.parser import parse
from firesteel.table.sql.statements import QueryStatement
from firesteel.table.sql.syntax import Query
from firesteel.table.statement_execution import StatementExecutor
from firesteel.table.statement_set import StatementSet
from firesteel.table.table import Table
from firesteel.table.table_config import TableConfig
from firesteel.table.table_result import TableResult
from firesteel.table.types.arrow import arrow_schema, logical_type
from firesteel.table.types.conversion import column_of, inferred_type
from firesteel.table.types.data_types import BigIntType, DataType, RowField, RowType
from firesteel.table.types.derivation import common_type

if TYPE_CHECKING:
    import pandas as pd

    from firesteel.common.job_client import JobClient

__all__ = ["TableEnvironment"]


class TableEnvironment:
    """Makes tables, gives them names, and runs SQL.

    >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> env.create_temporary_view("t", env.from_elements([(1, "a"), (2, "b")], ["id", "name"]))
    >>> env.sql_query("SELECT UPPER(name) AS name FROM t WHERE id > 1").print_schema()
    (
      `name` STRING
    )
    """

    def __init__(self, settings: EnvironmentSettings) -> None:
        if not settings.is_streaming_mode():
            raise NotSupportedError("Not supported yet: batch mode. Use EnvironmentSettings.in_streaming_mode().")
        self._config = TableConfig(Configuration(settings.get_configuration()))
        self._catalogs = CatalogManager(settings.get_built_in_catalog_name(), settings.get_built_in_database_name())
        self._anonymous = 0

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """An environment with these settings."""
        if isinstance(environment_settings, Configuration):
            builder = EnvironmentSettings.new_instance().with_configuration(environment_settings)
            if environment_settings.get_string("execution.runtime-mode", "STREAMING").upper() == "BATCH":
                builder.in_batch_mode()
            environment_settings = builder.build()
        return TableEnvironment(environment_settings)

    def get_config(self) -> TableConfig:
        """Settings, which may be changed between statements."""
        return self._config

    # Making tables.

    def from_elements(
        self, elements: Iterable[Any], schema: DataType | Sequence[str] | None = None, verify_schema: bool = True
    ) -> Table:
        """A table of these rows. ``schema`` is a ROW type, or the columns' names.

        >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> env.from_elements([(1, 2.5)]).print_schema()
        (
          `_1` BIGINT,
          `_2` DOUBLE
        )
        """
        rows = [_fields(element) for element in elements]
        row_type = schema if isinstance(schema, RowType) else self._inferred(rows, schema)
        for row in rows:
            if len(row) != len(row_type):
                raise ProgramError(
                    f"from_elements(): {short_repr(row, 80)} has {len(row)} fields, the schema {len(row_type)}."
                )
        columns = [
            column_of([row[index] for row in rows], field.data_type, field.name)
            for index, field in enumerate(row_type.fields)
        ]
        return self._inline(columns, row_type)

    def _inferred(self, rows: list[Sequence[Any]], schema: Any) -> RowType:
        if isinstance(schema, DataType):
            return RowType((RowField("f0", schema),))
        if not rows:
            raise ProgramError("from_elements() without rows needs a schema: DataTypes.ROW([...]).")
        names = list(schema) if schema is not None else [f"_{index + 1}" for index in range(len(rows[0]))]
        kinds = []
        for index, name in enumerate(names):
            kind = common_type([inferred_type(row[index]) for row in rows if index < len(row)])
            if kind is None:
                raise ProgramError(f"from_elements(): column {name!r} has values of different types. Give a schema.")
            kinds.append(kind)
        return RowType.of(names, kinds)

    def _inline(self, columns: list[pa.Array], row_type: RowType) -> Table:
        schema = arrow_schema(row_type.field_names(), row_type.field_types())
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        self._anonymous += 1
        path = (f"*anonymous_python-input-format${self._anonymous}*",)
        return Table(Scan(path, row_type, InlineTable(row_type, (batch,))), self)

    def from_pandas(
        self, pdf: pd.DataFrame, schema: RowType | Sequence[str] | None = None, splits_num: int = 1
    ) -> Table:
        """A table of a data frame's rows."""
        table = pa.Table.from_pandas(pdf, preserve_index=False)
        if isinstance(schema, RowType):
            row_type = schema
        else:
            names = list(schema) if schema is not None else table.column_names
            row_type = RowType.of(names, [logical_type(kind) for kind in table.schema.types])
        wanted = arrow_schema(row_type.field_names(), row_type.field_types())
        columns = [column.combine_chunks().cast(kind) for column, kind in zip(table.columns, wanted.types, strict=True)]
        return self._inline([_whole(column) for column in columns], row_type)

    def from_path(self, path: str) -> Table:
        """A table or view by its name."""
        parts = _path(path)
        plan = self._lookup(parts)
        if plan is None:
            raise SqlValidationError(f"There is no table {path}.{near_names(parts[-1], self._catalogs.names())}")
        return Table(plan, self)

    def sql_query(self, query: str) -> Table:
        """A table that SQL describes."""
        statement = parse(query)
        if not isinstance(statement, QueryStatement):
            raise ProgramError("sql_query() takes a query: SELECT, VALUES or WITH. execute_sql() takes all statements.")
        return Table(self._resolve(statement.query, query), self)

    def _resolve(self, query: Query, text: str) -> Plan:
        return QueryResolver(self._lookup, self._catalogs.names, text).query(query)

    def _lookup(self, parts: tuple[str, ...]) -> Plan | None:
        found = self._catalogs.find(parts)
        if found is None:
            return None
        if isinstance(found, View):
            return found.plan
        path = self._catalogs.qualified(parts)
        return table_plan(found, path) if isinstance(found, DeclaredTable) else Scan(path, found.row_type, found)

    # Names.

    def create_temporary_view(self, view_path: str, table: Table) -> None:
        """Gives a table a name."""
        if not isinstance(table, Table):
            raise ProgramError(f"create_temporary_view() takes a Table, got {short_repr(table, 60)}.")
        self._catalogs.create(_path(view_path), View(table._plan), temporary=True)

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> None:
        """Gives a table a name in the catalog."""
        self._catalogs.create(_path(view_path), View(table._plan), temporary=False, if_not_exists=ignore_if_exists)

    def drop_temporary_view(self, view_path: str) -> bool:
        """Forgets a temporary view; False if there is none."""
        return self._catalogs.drop(_path(view_path), view=True, temporary=True, if_exists=True)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Forgets a temporary table; False if there is none."""
        return self._catalogs.drop(_path(table_path), view=False, temporary=True, if_exists=True)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Forgets a view of the catalog."""
        return self._catalogs.drop(_path(view_path), view=True, temporary=None, if_exists=ignore_if_not_exists)

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Forgets a table of the catalog."""
        return self._catalogs.drop(_path(table_path), view=False, temporary=None, if_exists=ignore_if_not_exists)

    def list_tables(self) -> list[str]:
        """Tables and views of the current database."""
        return self._catalogs.names()

    def list_views(self) -> list[str]:
        """Views of the current database."""
        return sorted(name for name, each in self._catalogs.entries() if isinstance(each, View))

    def list_temporary_views(self) -> list[str]:
        """Temporary views."""
        return sorted(path[2] for path, each in self._catalogs.temporary.items() if isinstance(each, View))

    def list_temporary_tables(self) -> list[str]:
        """Temporary tables and views."""
        return sorted(path[2] for path in self._catalogs.temporary)

    def list_catalogs(self) -> list[str]:
        """All catalogs."""
        return sorted(self._catalogs.catalogs)

    def list_databases(self) -> list[str]:
        """Databases of the current catalog."""
        return sorted(self._catalogs.catalogs[self._catalogs.current_catalog])

    def get_current_catalog(self) -> str:
        """The catalog that names belong to."""
        return self._catalogs.current_catalog

    def get_current_database(self) -> str:
        """The database that names belong to."""
        return self._catalogs.current_database

    def use_catalog(self, catalog_name: str) -> None:
        """Makes a catalog current."""
        self._catalogs.use_catalog(catalog_name)

    def use_database(self, database_name: str) -> None:
        """Makes a database current."""
        self._catalogs.use_database((database_name,))

    # Running.

    def execute_sql(self, stmt: str) -> TableResult:
        """Runs one statement. A query gives its rows; INSERT starts a job; all others are done at once."""
        return StatementExecutor(self, stmt).execute(parse(stmt))

    def explain_sql(self, stmt: str, *extra_details: Any) -> str:
        """The plan of a query or INSERT as text."""
        return StatementExecutor(self, stmt).explain(parse(stmt))

    def create_statement_set(self) -> StatementSet:
        """Several INSERTs as one job."""
        return StatementSet(self)

    def _insertion(self, stmt: str) -> tuple[str, Plan, bool]:
        return StatementExecutor(self, stmt).insertion(parse(stmt))

    def _planner(self) -> tuple[StreamExecutionEnvironment, Planner]:
        configuration = Configuration(self._config.get_configuration())
        env = StreamExecutionEnvironment(configuration)
        mini_batch = configuration.get_boolean("table.exec.mini-batch.enabled", False)
        return env, Planner(env, self._config.get_local_timezone(), mini_batch)

    def _job_name(self, default: str) -> str:
        return self._config.get("pipeline.name", default)

    def _run_query(self, plan: Plan) -> TableResult:
        _, planner = self._planner()
        batches = planner.stream(plan).execute_and_collect(self._job_name("collect"))
        return TableResult(plan.row_type, batches=batches, time_zone=self._config.get_local_timezone())

    def _insert(self, inserts: Sequence[tuple[str, Plan, bool]]) -> TableResult:
        env, planner = self._planner()
        targets = []
        for path, plan, overwrite in inserts:
            parts = _path(path)
            table = self._catalogs.find(parts)
            if table is None:
                raise SqlValidationError(f"There is no table {path}.{near_names(parts[-1], self._catalogs.names())}")
            full = ".".join(self._catalogs.qualified(parts))
            write_to(table, full, plan, planner, overwrite, self._config.get_local_timezone())
            targets.append(full)
        client: JobClient = env.execute_async(self._job_name(f"insert-into_{','.join(targets)}"))
        row_type = RowType.of(targets, [BigIntType(is_nullable=False)] * len(targets))
        return TableResult(row_type, rows=[Row(*[-1] * len(targets))], client=lambda: client, plain="-1")

    def _explain(self, plans: Sequence[Plan]) -> str:
        return explained(plans)

    def _to_pandas(self, plan: Plan) -> pd.DataFrame:
        from firesteel.table.to_pandas import final_frame

        return final_frame(self._run_query(plan))


def _fields(element: Any) -> Sequence[Any]:
    if isinstance(element, Row):
        return list(element)
    if isinstance(element, dict):
        return list(element.values())
    return element if isinstance(element, tuple | list) else (element,)


def _path(path: str) -> tuple[str, ...]:
    return Cursor(path).name().parts


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
