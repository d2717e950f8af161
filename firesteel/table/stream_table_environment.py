"""Tables and streams in one program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import as_map
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.errors import ProgramError, short_repr
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import ColumnsToRows, RowsToColumns
from firesteel.table.bridges import row_type_of_stream, stream_type
from firesteel.table.catalog.tables import StreamTable
from firesteel.table.environment_settings import EnvironmentSettings
from firesteel.table.expression import Expression
from firesteel.table.logical.plan import Plan, Scan
from firesteel.table.logical.resolver import renamed
from firesteel.table.physical.changelog import inserts_only
from firesteel.table.physical.planner import Planner, schema_of
from firesteel.table.sql.syntax import Name
from firesteel.table.table import Table
from firesteel.table.table_environment import TableEnvironment
from firesteel.table.types.arrow import arrow_schema

__all__ = ["StreamTableEnvironment"]


class StreamTableEnvironment(TableEnvironment):
    """A table environment over a stream environment: streams become tables, and tables streams.

    >>> from firesteel.common.typeinfo import Types
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> tables = StreamTableEnvironment.create(env)
    >>> pairs = env.from_collection([("a", 1)], Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()]))
    >>> tables.from_data_stream(pairs).print_schema()
    (
      `name` STRING,
      `n` INT
    )
    """

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        super().__init__(settings)
        self._stream_env = env
        self._config.add_configuration(env._configuration)

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """An environment over a stream environment; over one of its own, if none is given."""
        env = stream_execution_environment or StreamExecutionEnvironment.get_execution_environment()
        return StreamTableEnvironment(env, environment_settings or EnvironmentSettings.in_streaming_mode())

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """A table of a stream's records, all of them insertions. Columns may get other names: ``col("a")`` for each."""
        return self._from_stream(data_stream, fields_or_schema, insert_only=True)

    def from_changelog_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """A table of a stream of rows, each of which says what it does to the table."""
        return self._from_stream(data_stream, fields_or_schema, insert_only=False)

    def _from_stream(self, stream: DataStream, fields: tuple[Any, ...], insert_only: bool) -> Table:
        if not isinstance(stream, DataStream):
            raise ProgramError(f"from_data_stream() takes a DataStream, got {short_repr(stream, 60)}.")
        row_type, several = row_type_of_stream(stream.get_type())
        schema = arrow_schema(row_type.field_names(), row_type.field_types())
        rows = stream if several else stream.map(as_map(_single))
        batches = rows.transform("RowsToColumns", RowsToColumns(schema, not insert_only), ColumnsType(schema))
        self._anonymous += 1
        path = (f"*anonymous_datastream_source${self._anonymous}*",)
        plan: Plan = Scan(path, row_type, StreamTable(row_type, batches, insert_only))
        names = [_name(field) for field in fields]
        if names:
            if len(names) != len(row_type):
                raise ProgramError(f"{len(names)} names for {len(row_type)} columns.")
            plan = renamed(plan, names)
        return Table(plan, self)

    def create_temporary_view(self, view_path: str, table: Table | DataStream, *fields_or_schema: Any) -> None:
        """Gives a table, or a stream, a name."""
        if isinstance(table, DataStream):
            table = self.from_data_stream(table, *fields_or_schema)
        super().create_temporary_view(view_path, table)

    def to_data_stream(self, table: Table) -> DataStream:
        """A stream of the table's rows. Only of a table that never takes a row back."""
        if not inserts_only(table._plan):
            raise ProgramError(
                "to_data_stream(): the table takes rows back when it changes. Use to_changelog_stream()."
            )
        return self.to_changelog_stream(table)

    def to_changelog_stream(self, table: Table) -> DataStream:
        """A stream of rows, each of which says what it does to the table."""
        plan = table._plan
        batches = self._planner()[1].stream(plan)
        return batches.transform("ColumnsToRows", ColumnsToRows(schema_of(plan)), stream_type(plan.row_type))

    def _planner(self) -> tuple[StreamExecutionEnvironment, Planner]:
        mini_batch = self._config.get_configuration().get_boolean("table.exec.mini-batch.enabled", False)
        return self._stream_env, Planner(self._stream_env, self._config.get_local_timezone(), mini_batch)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Sinks of the stream program wait for its own execute()."""
        program = self._stream_env._program
        waiting = program.set_sinks_aside()
        try:
            yield
        finally:
            program.put_back(waiting)

    def _run_query(self, plan: Plan) -> Any:
        with self._alone():
            return super()._run_query(plan)

    def _insert(self, inserts: Any) -> Any:
        with self._alone():
            return super()._insert(inserts)


def _single(value: Any) -> tuple[Any]:
    return (value,)


def _name(field: Any) -> str:
    if isinstance(field, str):
        return field
    if isinstance(field, Expression) and isinstance(field._node, Name):
        return field._node.parts[-1]
    raise ProgramError(f"Not supported yet: {short_repr(field, 60)} in from_data_stream(); names of columns are.")
