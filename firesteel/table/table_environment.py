"""Where tables are made, named and run."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.common.configuration import Configuration
from firesteel.common.types import Row
from firesteel.datastream.closeable_iterator import CloseableIterator
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.errors import ProgramError, short_repr
from firesteel.table.catalog.functions import FunctionCatalog
from firesteel.table.catalog.manager import CatalogManager
from firesteel.table.catalog.tables import CatalogObject, DeclaredTable, InlineTable, View
from firesteel.table.catalog_names import CatalogNames, path_parts
from firesteel.table.declarations import table_plan
from firesteel.table.elements import rows_of_elements
from firesteel.table.environment_settings import MODE, EnvironmentSettings, is_streaming
from firesteel.table.explaining import explanation
from firesteel.table.function_names import FunctionNames
from firesteel.table.function_settings import apply_function_settings
from firesteel.table.insertions import Insertion
from firesteel.table.logical.hints import OPTIONS_ENABLED, has_options
from firesteel.table.logical.plan import Plan, Scan
from firesteel.table.logical.resolver import QueryResolver
from firesteel.table.logical.written_names import WrittenNames
from firesteel.table.overwriting import Overwrite, Overwritten, checked_overwrite
from firesteel.table.physical.planner import Planner
from firesteel.table.physical.sinks import fitted_for, write_to
from firesteel.table.resolved_schema import resolved_schema
from firesteel.table.schema import Schema
from firesteel.table.sql.errors import SqlValidationError, near_names
from firesteel.table.sql.statements import QueryStatement
from firesteel.table.sql.syntax import Query
from firesteel.table.statement_execution import StatementExecutor
from firesteel.table.statement_set import StatementSet
from firesteel.table.table import Table
from firesteel.table.table_config import TableConfig, session_zone
from firesteel.table.table_descriptor import TableDescriptor
from firesteel.table.table_drafts import drafted
from firesteel.table.table_result import TableResult
from firesteel.table.table_settings import check_dialect, warn_of_settings
from firesteel.table.tableau import DISPLAY_WIDTH, WIDEST
from firesteel.table.types.arrow import arrow_schema, logical_type
from firesteel.table.types.conversion import column_of
from firesteel.table.types.data_types import BigIntType, DataType, RowType
from firesteel.table.view_plans import NamedPlans

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from firesteel.common.job_client import JobClient
    from firesteel.table.batch.execution import BatchExecutor

__all__ = ["TableEnvironment"]


class TableEnvironment(CatalogNames, FunctionNames):
    """Makes tables, gives them names, and runs SQL.

    >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> env.create_temporary_view("t", env.from_elements([(1, "a"), (2, "b")], ["id", "name"]))
    >>> env.sql_query("SELECT UPPER(name) AS name FROM t WHERE id > 1").print_schema()
    (
      `name` STRING
    )
    """

    def __init__(self, settings: EnvironmentSettings) -> None:
        self._streaming = self._prints_kinds = settings.is_streaming_mode()
        self._config = TableConfig(Configuration(settings._configuration))
        self._catalogs = CatalogManager(settings.get_built_in_catalog_name(), settings.get_built_in_database_name())
        self._functions = FunctionCatalog(self._catalogs)
        self._needed = StreamExecutionEnvironment(Configuration())
        self._anonymous = 0
        self._unnamed = 0
        self._first_mode = self._streaming, self._config.get(MODE, "")
        self._in_session = False
        self._reported: set[str] = set()
        """Settings whose missing effect was reported."""

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """An environment with these settings."""
        if isinstance(environment_settings, Configuration):
            environment_settings = EnvironmentSettings.new_instance().with_configuration(environment_settings).build()
        return TableEnvironment(environment_settings)

    def get_config(self) -> TableConfig:
        """Settings, which may be changed between statements."""
        return self._config

    def _of_session(self) -> TableEnvironment:
        """From now on ``execution.runtime-mode`` changes the mode, as at a prompt. In a program it is an error."""
        self._in_session = True
        return self

    def _check_settings(self) -> None:
        """Looks at the settings before something runs."""
        warn_of_settings(self._config.get_configuration(), self._reported)
        self._take_mode()

    def _take_mode(self) -> None:
        streaming, first = self._first_mode
        given = self._config.get(MODE, first)
        if given != first:
            streaming = is_streaming(given)
        if streaming == self._streaming:
            return
        if not self._in_session:
            raise ProgramError(
                f"{MODE} is {given!r} now, and the environment was made for {'streams' if self._streaming else 'batch'}"
                f" mode. Its mode does not change: make another one, with EnvironmentSettings."
                f"{'in_streaming_mode' if streaming else 'in_batch_mode'}()."
            )
        self._streaming = self._prints_kinds = streaming

    # Making tables.

    def from_elements(
        self, elements: Iterable[Any], schema: DataType | Sequence[str] | None = None, verify_schema: bool = True
    ) -> Table:
        """A table of these rows: tuples, lists, Rows, dicts, or objects. ``schema`` is a ROW type, or the columns'
        names; dicts, objects with attributes and named tuples have names themselves.

        >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> env.from_elements([(1, 2.5)]).print_schema()
        (
          `_1` BIGINT,
          `_2` DOUBLE
        )
        """
        rows, row_type = rows_of_elements(elements, schema)
        columns = [
            column_of([row[index] for row in rows], field.data_type, field.name)
            for index, field in enumerate(row_type.fields)
        ]
        return self._inline(columns, row_type)

    def _inline(self, columns: list[pa.Array], row_type: RowType) -> Table:
        schema = arrow_schema(row_type.field_names(), row_type.field_types())
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        self._anonymous += 1
        path = (f"*anonymous_python-input-format${self._anonymous}*",)
        return Table(Scan(path, row_type, InlineTable(row_type, (batch,))), self)

    def from_pandas(
        self, pdf: pd.DataFrame, schema: RowType | Sequence[str | DataType] | None = None, splits_num: int = 1
    ) -> Table:
        """A table of a data frame's rows; ``schema`` has names for its columns, or types, or both as a ROW."""
        table = pa.Table.from_pandas(pdf, preserve_index=False)
        if isinstance(schema, RowType):
            row_type = schema
        else:
            given = list(schema) if schema is not None else table.column_names
            if len(given) != table.num_columns:
                raise ProgramError(f"The schema has {len(given)} columns, the data frame {table.num_columns}.")
            types = [each for each in given if isinstance(each, DataType)]
            names = table.column_names if types else [str(each) for each in given]
            row_type = RowType.of(names, types or [logical_type(kind) for kind in table.schema.types])
        wanted = arrow_schema(row_type.field_names(), row_type.field_types())
        columns = [column.combine_chunks().cast(kind) for column, kind in zip(table.columns, wanted.types, strict=True)]
        return self._inline([_whole(column) for column in columns], row_type)

    def from_spark(self, dataframe: DataFrame, schema: Sequence[str] | None = None) -> Table:
        """A table of a Spark DataFrame, which may be of any session; ``schema`` has other names for its columns. In
        batch mode it is a part of the query; in streaming mode its rows are read when the job starts."""
        # Here, not at the top: who has a DataFrame has Spark.
        from firesteel.table.batch.bridge import spark_table

        table = spark_table(dataframe, schema)
        self._anonymous += 1
        return Table(Scan((f"*anonymous_spark_dataframe${self._anonymous}*",), table.columns, table), self)

    def from_path(self, path: str) -> Table:
        """A table or view by its name."""
        parts = path_parts(path)
        plan = NamedPlans(self)(parts)
        if plan is None:
            raise SqlValidationError(f"There is no table {path}.{near_names(parts[-1], self._catalogs.names())}")
        found = self._catalogs.find(parts)
        return Table(plan, self, resolved_schema(found) if isinstance(found, DeclaredTable) else None)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """A table that a descriptor describes, without a name."""
        table, path = self._described(descriptor), (self._anonymous_name(descriptor),)
        return Table(table_plan(table, path), self, resolved_schema(table))

    def _described(self, descriptor: TableDescriptor, columns: RowType | None = None) -> DeclaredTable:
        """The table of a descriptor. Without a schema it has the columns that are written into it."""
        if not isinstance(descriptor, TableDescriptor):
            raise ProgramError(f"Expected a TableDescriptor, got {short_repr(descriptor, 60)}.")
        schema = descriptor.get_schema()
        if schema is None:
            if columns is None:
                raise ProgramError("The descriptor has no schema: schema(Schema.new_builder()...build()).")
            schema = Schema.new_builder().from_row_data_type(columns).build()
        draft = replace(
            schema._draft,
            options=descriptor.get_options(),
            partitioned_by=tuple(descriptor.get_partition_keys()),
            comment=descriptor.get_comment(),
        )
        return drafted(draft, "", "the table")

    def _anonymous_name(self, descriptor: TableDescriptor) -> str:
        self._anonymous += 1
        return f"*anonymous_{descriptor.get_options().get('connector', '')}${self._anonymous}*"

    def sql_query(self, query: str) -> Table:
        """A table that SQL describes."""
        statement = self._parsed(query)
        if not isinstance(statement, QueryStatement):
            raise ProgramError("sql_query() takes a query: SELECT, VALUES or WITH. execute_sql() takes all statements.")
        return Table(self._resolve(statement.query, query), self)

    def _resolve(self, query: Query, text: str) -> Plan:
        check_dialect(self._config.get_configuration())
        plan = self._resolver(text).query(query)
        if not self._config.get_configuration().get_boolean(OPTIONS_ENABLED, True) and has_options(plan):
            raise SqlValidationError(f"The hint OPTIONS is refused where {OPTIONS_ENABLED} is false.", text)
        return plan

    def _resolver(
        self, text: str, plans: NamedPlans | None = None, written: WrittenNames | None = None
    ) -> QueryResolver:
        lookup = NamedPlans(self) if plans is None else plans
        return QueryResolver(lookup, self._catalogs.names, text, self._streaming, written)

    # Names.

    def create_temporary_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool = False,
    ) -> None:
        """A table of a descriptor, for as long as the environment is there.

        >>> from firesteel.table import Schema, TableDescriptor
        >>> env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> schema = Schema.new_builder().column("n", "BIGINT").build()
        >>> env.create_temporary_table("numbers", TableDescriptor.for_connector("datagen").schema(schema).build())
        >>> env.list_temporary_tables()
        ['numbers']
        """
        self._catalogs.create(path_parts(path), self._described(descriptor), True, ignoreIfExists)

    def create_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool = False,
    ) -> bool:
        """A table of a descriptor in the catalog. False if there is one already, which may stay."""
        there = self._catalogs.find(path_parts(path)) is not None
        self._catalogs.create(path_parts(path), self._described(descriptor), False, ignoreIfExists)
        return not there

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataFrame, *fields_or_schema: Any
    ) -> None:
        """Gives a table or a DataFrame of Spark a name; one over a stream environment takes streams, too."""
        table = table_or_data_stream
        if type(table).__module__.startswith("pyspark.sql."):
            table = self.from_spark(table)
        if not isinstance(table, Table) or fields_or_schema:
            raise ProgramError(f"create_temporary_view() takes a Table, got {short_repr(table, 60)}.")
        self._catalogs.create(path_parts(view_path), View(table._plan), temporary=True)

    def _named(self, table: Table) -> str:
        """A name for a table that has none."""
        self._unnamed += 1
        name = f"UnnamedTable${self._unnamed - 1}"
        self.create_temporary_view(name, table)
        return name

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> None:
        """Gives a table a name in the catalog."""
        self._catalogs.create(path_parts(view_path), View(table._plan), temporary=False, if_not_exists=ignore_if_exists)

    # Running.

    def execute_sql(self, stmt: str) -> TableResult:
        """Runs one statement. A query gives its rows; INSERT starts a job; all others are done at once."""
        return StatementExecutor(self, stmt).execute(self._parsed(stmt))

    def explain_sql(self, stmt: str, *extra_details: Any) -> str:
        """The plan of a query or INSERT as text."""
        return StatementExecutor(self, stmt).explain(self._parsed(stmt), extra_details)

    def create_statement_set(self) -> StatementSet:
        """Several INSERTs as one job."""
        return StatementSet(self)

    def _insertion(self, stmt: str) -> Insertion:
        return StatementExecutor(self, stmt).insertion(self._parsed(stmt))

    def _planner(self) -> tuple[StreamExecutionEnvironment, Planner]:
        configuration = Configuration(self._config.get_configuration())
        env = StreamExecutionEnvironment(configuration)
        env.dependencies = self._needed.dependencies
        mini_batch = configuration.get_boolean("table.exec.mini-batch.enabled", False)
        parallelism = self._parallelism()
        if parallelism is not None:
            env.set_parallelism(parallelism)
        return env, self._adjusted(Planner(env, session_zone(self._config), mini_batch, self._state_ttl()))

    def _adjusted(self, planner: Planner) -> Planner:
        configuration = self._config.get_configuration()
        planner.bundle_size = self._bundle_size()
        planner.idle_timeout = configuration.get_duration_ms("table.exec.source.idle-timeout", 0) or None
        planner.repeated_changes = configuration.get_boolean("table.exec.source.cdc-events-duplicate", False)
        return planner

    def _parallelism(self) -> int | None:
        """That of statements, where it is another one than that of all programs."""
        given = self._config.get_configuration().get_integer("table.exec.resource.default-parallelism", -1)
        return given if given > 0 else None

    def _bundle_size(self) -> int:
        return self._config.get_configuration().get_integer("python.fn-execution.bundle.size", 1000)

    def _state_ttl(self) -> int | None:
        return self._config.get_configuration().get_duration_ms("table.exec.state.ttl", 0) or None

    def _job_name(self, default: str) -> str:
        return self._config.get("pipeline.name", default)

    def _batch(self) -> BatchExecutor:
        # Here, not at the top: it loads the engine, and Spark where that is needed.
        from firesteel.table.batch.execution import executor_of

        configuration = Configuration(self._config.get_configuration())
        return executor_of(configuration, session_zone(self._config), self._needed.dependencies)

    def _run_query(self, plan: Plan) -> TableResult:
        self._check_settings()
        apply_function_settings(plan, self._config.get_configuration())
        if not self._streaming:
            rows = self._batch().rows(plan, self._job_name("collect"))
            batches = CloseableIterator(iter(rows), _nothing)
            return TableResult(plan.row_type, batches=batches, changes=self._prints_kinds, **self._shown())
        _, planner = self._planner()
        planner.asks_only([plan])
        batches, client = planner.stream(plan).collect_with_client(self._job_name("collect"))
        return TableResult(plan.row_type, batches=batches, client=client, **self._shown())

    def _shown(self) -> dict[str, Any]:
        """How a result shows its values."""
        widest = self._config.get_configuration().get_integer(DISPLAY_WIDTH, WIDEST)
        return {"time_zone": session_zone(self._config), "widest": widest}

    def _insert(self, inserts: Sequence[Insertion]) -> TableResult:
        self._check_settings()
        env, planner = self._planner()
        planner.asks_only([insert.plan for insert in inserts])
        batch = None if self._streaming else self._batch()
        pending = 0
        targets = []
        replaced = []
        for insert in inserts:
            plan, overwrite = insert.plan, insert.overwrite
            apply_function_settings(plan, self._config.get_configuration())
            full, table = self._target(insert.target, plan)
            targets.append(full)
            if overwrite:
                declared = checked_overwrite(table, full, self._streaming)
                replaced.append(Overwritten(declared, overwrite if isinstance(overwrite, Overwrite) else Overwrite()))
            if batch is not None:
                declared, fitted = fitted_for(table, full, plan)
                if batch.written(declared, fitted):
                    continue
                if not pending:
                    # One for all: it numbers the sinks of a table.
                    planner = batch.planner(env)
            write_to(table, full, plan, planner, self._config, insert.on_conflict)
            pending += 1
        if not pending:
            return self._inserted(targets, None)
        client: JobClient = env.execute_async(self._job_name(f"insert-into_{','.join(targets)}"))
        if not self._in_session and self._config.get_configuration().get_boolean("table.dml-sync", False):
            # A session shows the job first, and then waits.
            client.get_job_execution_result().result()
        if replaced:
            # The files that were there go when the job has ended well, and not before.
            client.get_job_execution_result().result()
            for each in replaced:
                each.replace()
        return self._inserted(targets, client)

    def _attach(self, inserts: Sequence[Insertion]) -> None:
        raise ProgramError("attach_as_datastream() needs a stream program around the tables: StreamTableEnvironment.")

    def _target(self, path: str | TableDescriptor, plan: Plan) -> tuple[str, CatalogObject]:
        """The name of a table that rows go to, and what it is."""
        if isinstance(path, TableDescriptor):
            return self._anonymous_name(path), self._described(path, plan.row_type)
        parts = path_parts(path)
        table = self._catalogs.find(parts)
        if table is None:
            raise SqlValidationError(f"There is no table {path}.{near_names(parts[-1], self._catalogs.names())}")
        return ".".join(self._catalogs.qualified(parts)), table

    def _inserted(self, targets: list[str], client: JobClient | None) -> TableResult:
        row_type = RowType.of(targets, [BigIntType(is_nullable=False)] * len(targets))
        none = [-1] * len(targets)
        return TableResult(row_type, rows=[Row(*none)], client=client, plain=", ".join(map(str, none)))

    def _explain(self, plans: Sequence[Plan], details: Sequence[Any] = (), inserts: Sequence[Insertion] = ()) -> str:
        self._check_settings()
        return explanation(self, plans, details, inserts)

    def _to_spark(self, plan: Plan) -> DataFrame:
        self._check_settings()
        if self._streaming:
            raise ProgramError("to_spark() is for batch mode: EnvironmentSettings.in_batch_mode().")
        from firesteel.table.batch.bridge import frame_of_plan

        configuration = Configuration(self._config.get_configuration())
        apply_function_settings(plan, configuration)
        return frame_of_plan(plan, configuration, session_zone(self._config), self._needed.dependencies)

    def _to_pandas(self, plan: Plan) -> pd.DataFrame:
        from firesteel.table.to_pandas import final_frame

        return final_frame(self._run_query(plan), plan.row_type, session_zone(self._config))


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _nothing() -> None:
    """There is no job to end."""


def __getattr__(name: str) -> Any:
    # PyFlink has both in this module; the other one is built upon this.
    if name == "StreamTableEnvironment":
        return getattr(importlib.import_module("firesteel.table.stream_table_environment"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
