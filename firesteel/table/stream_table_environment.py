"""Tables and streams in one program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.configuration import Configuration
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types
from firesteel.common.types import RowKind
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import as_filter, as_map
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.errors import ProgramError, short_repr
from firesteel.runtime.columns.routing import KeyColumns
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import (
    Calc,
    ChangelogNormalize,
    ColumnsToRows,
    RowsToColumns,
    rowtime_strategy,
)
from firesteel.table.bridges import row_type_of_stream, stream_type
from firesteel.table.catalog.tables import StreamTable
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.declarations import table_plan
from firesteel.table.environment_settings import MODE, EnvironmentSettings, is_streaming
from firesteel.table.function_settings import apply_function_settings
from firesteel.table.functions.binding import bind
from firesteel.table.insertions import Insertion
from firesteel.table.logical.expressions import Expression as Typed
from firesteel.table.logical.plan import Plan, Project, Scan
from firesteel.table.physical.changelog import inserts_only
from firesteel.table.physical.columns import columns
from firesteel.table.physical.planner import Planner, schema_of
from firesteel.table.physical.sinks import fitted_columns, write_to
from firesteel.table.physical.state_tables import described
from firesteel.table.resolved_schema import resolved_schema
from firesteel.table.schema import Schema
from firesteel.table.stream_fields import PROCTIME, ROWTIME, stream_fields
from firesteel.table.stream_schemas import ROWTIME_COLUMN, CastColumn, fitted_to, stream_declaration
from firesteel.table.table import Table
from firesteel.table.table_config import TableConfig, session_zone
from firesteel.table.table_environment import TableEnvironment
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import RowField, RowType, TimestampType

if TYPE_CHECKING:
    from firesteel.table.batch.streams import StreamsExecutor

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
        self._stream_env = self._needed = env
        self._stream_planners: dict[Any, Planner] = {}
        """Of the stream program, by what they are made with: parts that two of its tables share are built once."""
        self._stream_names: dict[str, int] = {}
        self._tables_of_streams: dict[str, int] = {}
        """How many tables were made of each stream, by its uid."""
        self._given = Configuration(env.get_configuration())
        """Settings of the stream environment; those of the tables win over them."""
        self._config = TableConfig(Configuration(self._given).add_all(settings._configuration))
        self._first_mode = self._streaming, self._config.get(MODE, "")
        self._mode_of_streams = env.get_runtime_mode()

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """An environment over a stream environment; over one of its own, if none is given. Without settings it is in
        batch mode if the stream environment is."""
        env = stream_execution_environment or StreamExecutionEnvironment.get_execution_environment()
        if environment_settings is not None:
            return StreamTableEnvironment(env, environment_settings)
        streaming = is_streaming(env.get_runtime_mode().name)
        settings = EnvironmentSettings.in_streaming_mode() if streaming else EnvironmentSettings.in_batch_mode()
        made = StreamTableEnvironment(env, settings)
        # As in Flink, which prints by the settings and runs in the mode of the streams.
        made._prints_kinds = True
        return made

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """A table of a stream's records, all of them insertions. Columns may get other names (``col("a")`` for each) or
        be chosen by name (``col("f1").alias("a")``); ``col("at").rowtime`` is the stream's event time, and
        ``col("now").proctime`` the clock. A schema may add columns, and say what the event time is::

            Schema.new_builder()
                .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")   # the timestamps of the stream
                .watermark("rowtime", "SOURCE_WATERMARK()")          # and its watermarks
                .build()
        """
        if len(fields_or_schema) == 1 and isinstance(fields_or_schema[0], Schema):
            return self._from_schema(data_stream, fields_or_schema[0], ChangelogMode.insert_only())
        return self._from_stream(data_stream, fields_or_schema, insert_only=True)

    def from_changelog_stream(
        self, data_stream: DataStream, schema: Any = None, changelog_mode: ChangelogMode | None = None
    ) -> Table:
        """A table of a stream of rows, each of which says what it does to the table. With ``ChangelogMode.upsert()`` a
        row replaces the one with its primary key, which the schema has."""
        mode = changelog_mode or ChangelogMode.all()
        if schema is None and mode == ChangelogMode.upsert():
            raise ProgramError("ChangelogMode.upsert() needs a schema with a primary key.")
        if schema is None:
            return self._from_stream(data_stream, (), insert_only=mode == ChangelogMode.insert_only())
        if not isinstance(schema, Schema):
            return self._from_stream(data_stream, (schema,), insert_only=False)
        return self._from_schema(data_stream, schema, mode)

    def _from_schema(self, stream: DataStream, schema: Schema, mode: ChangelogMode) -> Table:
        declared = stream_declaration(stream, schema)
        path = self._path_of(stream)
        table = declared.table
        layout = arrow_schema(table.readable.field_names(), table.readable.field_types())
        rows = stream if declared.several else _singles(stream)
        spec = RowsToColumns(declared.schema, mode != ChangelogMode.insert_only(), declared.rowtime)
        batches = rows.transform("RowsToColumns", spec, ColumnsType(declared.schema))
        if declared.schema != layout:
            batches = batches.transform(
                "Columns", Calc(tuple(map(CastColumn, declared.places, layout.types)), layout), ColumnsType(layout)
            )
        if mode == ChangelogMode.upsert():
            if not table.primary_key:
                raise ProgramError("ChangelogMode.upsert() needs a schema with a primary key.")
            keys = tuple(layout.names.index(name) for name in table.primary_key)
            keyed = batches.key_by(KeyColumns(keys))
            batches = keyed.transform("ChangelogNormalize", ChangelogNormalize(keys, layout), ColumnsType(layout))
            batches = described(batches, Scan(path, table.readable, None)).uid(f"{path[0]} by key")
        insert_only = mode == ChangelogMode.insert_only()
        plan = table_plan(table, path, StreamTable(table.readable, batches, insert_only))
        scan = plan.inputs[0] if plan.inputs else plan
        if isinstance(scan, Scan) and scan.watermark is not None:
            (watermark,) = columns((scan.watermark,), session_zone(self._config))
            timed = batches.assign_timestamps_and_watermarks(rowtime_strategy(watermark)).uid(f"{path[0]} in time")
            plan = table_plan(table, path, StreamTable(table.readable, timed, insert_only))
        if plan.names != declared.visible:
            plan = Project(plan, tuple(plan.refs()[: len(declared.visible)]), declared.visible)
            return Table(plan, self)
        return Table(plan, self, resolved_schema(table))

    def _path_of(self, stream: DataStream) -> tuple[str]:
        """A name for a table of a stream. State is found again by it: where the stream has a uid, it has that of the
        stream, so that it does not depend on which tables were made before."""
        uid = stream.transformation.uid
        if uid is None:
            self._anonymous += 1
            return (f"*anonymous_datastream_source${self._anonymous}*",)
        number = self._tables_of_streams[uid] = self._tables_of_streams.get(uid, 0) + 1
        return (f"*datastream {uid}*" if number == 1 else f"*datastream {uid}${number}*",)

    def _from_stream(self, stream: DataStream, fields: tuple[Any, ...], insert_only: bool) -> Table:
        if not isinstance(stream, DataStream):
            raise ProgramError(f"from_data_stream() takes a DataStream, got {short_repr(stream, 60)}.")
        row_type, several = row_type_of_stream(stream.get_type())
        chosen = stream_fields(fields, row_type, several)
        rowtime = any(field.source == ROWTIME for field in chosen)
        if rowtime:
            moment = RowField(ROWTIME_COLUMN, TimestampType(3))
            row_type = RowType((*row_type.fields, moment))
        schema = arrow_schema(row_type.field_names(), row_type.field_types())
        rows = stream if several else _singles(stream)
        batches = rows.transform("RowsToColumns", RowsToColumns(schema, not insert_only, rowtime), ColumnsType(schema))
        path = self._path_of(stream)
        rowtimes = (ROWTIME_COLUMN,) if rowtime else ()
        plan: Plan = Scan(path, row_type, StreamTable(row_type, batches, insert_only), rowtimes)
        if chosen:
            refs = plan.refs()
            sources: dict[int | str, Typed] = {PROCTIME: bind("PROCTIME", []), ROWTIME: refs[-1]}
            sources.update(enumerate(refs))
            plan = Project(
                plan, tuple(sources[field.source] for field in chosen), tuple(field.name for field in chosen)
            )
        return Table(plan, self)

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataStream, *fields_or_schema: Any
    ) -> None:
        """Gives a table, or a stream, a name."""
        if isinstance(table_or_data_stream, DataStream):
            table_or_data_stream = self.from_data_stream(table_or_data_stream, *fields_or_schema)
        super().create_temporary_view(view_path, table_or_data_stream)

    def to_data_stream(self, table: Table) -> DataStream:
        """A stream of the table's rows. Only of a table that never takes a row back; in batch mode none does."""
        if self._streaming and not inserts_only(table._plan):
            raise ProgramError(
                "to_data_stream(): the table takes rows back when it changes. Use to_changelog_stream()."
            )
        return self.to_changelog_stream(table)

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> DataStream:
        """A stream of rows, each of which says what it does to the table. A schema chooses columns and their types; its
        metadata column ``rowtime`` becomes the timestamp of each row."""
        plan = table._plan
        rowtime = None
        if target_schema is not None:
            plan, rowtime = fitted_to(plan, target_schema)
        if changelog_mode == ChangelogMode.insert_only() and self._streaming and not inserts_only(plan):
            raise ProgramError("to_changelog_stream(): the table takes rows back, and only insertions are asked for.")
        apply_function_settings(plan, self._config.get_configuration())
        batches = self._stream_planner().stream(plan)
        row_type = plan.row_type
        if rowtime is not None:
            row_type = RowType(tuple(field for at, field in enumerate(row_type.fields) if at != rowtime))
        spec = ColumnsToRows(schema_of(plan), rowtime, rowtime is not None)
        stream = batches.transform("ColumnsToRows", spec, stream_type(row_type))
        if changelog_mode == ChangelogMode.upsert():
            stream = stream.filter(as_filter(_not_before))
        return stream

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """A stream of records of this type, place by place: rows, tuples, or single values. Only of a table that never
        takes a row back. :meth:`to_data_stream` has its place."""
        row_type, several = row_type_of_stream(type_info)
        rows = self.to_data_stream(self._with_type(table, row_type))
        return rows if _gives_rows(type_info) else rows.map(as_map(tuple if several else _value), type_info)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """A stream of pairs: whether a record comes or goes, and the record, as :meth:`to_append_stream` has it.
        :meth:`to_changelog_stream` has its place."""
        row_type, several = row_type_of_stream(type_info)
        rows = self.to_changelog_stream(self._with_type(table, row_type))
        pairs = _Signed(None if _gives_rows(type_info) else tuple if several else _value)
        return rows.map(as_map(pairs), Types.TUPLE([Types.BOOLEAN(), type_info]))

    def _with_type(self, table: Table, row_type: RowType) -> Table:
        return Table(fitted_columns(table._plan, row_type.field_names(), row_type.field_types(), "the stream"), self)

    def _planner(self) -> tuple[StreamExecutionEnvironment, Planner]:
        mini_batch = self._config.get_configuration().get_boolean("table.exec.mini-batch.enabled", False)
        planner = Planner(self._stream_env, session_zone(self._config), mini_batch, self._state_ttl())
        return self._stream_env, self._adjusted(planner)

    def _stream_planner(self) -> Planner:
        if not self._streaming:
            # The table is computed now: what follows is a stream of its rows.
            return self._batch().planner(self._stream_env)
        made = self._planner()[1]
        planner = self._stream_planners.setdefault(made.settings, made)
        # Ids are counted over all of the program.
        planner.share_names(self._stream_names)
        return planner

    def _batch(self) -> StreamsExecutor:
        # Here, not at the top, as for the executor itself.
        from firesteel.table.batch.streams import StreamsExecutor

        return StreamsExecutor(super()._batch(), self._stream_env, self._alone, session_zone(self._config))

    def _to_spark(self, plan: Plan) -> Any:
        return super()._to_spark(plan if self._streaming else self._batch().read(plan))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Sinks of the stream program wait for its own execute()."""
        program = self._stream_env.program
        waiting = program.remove_sinks()
        try:
            with self._stream_env.changed_settings(self._own_settings()):
                parallelism = self._parallelism()
                if parallelism is not None:
                    self._stream_env.set_parallelism(parallelism)
                yield
        finally:
            program.put_back(waiting)

    def _own_settings(self) -> Configuration:
        """What was set for tables. Their mode is none of it: that of the streams stays."""
        settings, given = self._config.to_map(), self._given.to_dict()
        own = {key: value for key, value in settings.items() if value != given.get(key) and key != MODE}
        return Configuration.from_dict(own)

    def _check_settings(self) -> None:
        super()._check_settings()
        mode = self._stream_env.get_runtime_mode()
        if mode is not self._mode_of_streams:
            raise ProgramError(
                f"The mode of the stream environment is {mode.name} now, and it was {self._mode_of_streams.name} when "
                "the table environment was made: set_runtime_mode() comes first."
            )

    def _run_query(self, plan: Plan) -> Any:
        with self._alone():
            return super()._run_query(plan)

    def _insert(self, inserts: Any) -> Any:
        with self._alone():
            return super()._insert(inserts)

    def _attach(self, inserts: Sequence[Insertion]) -> None:
        self._check_settings()
        planner = self._stream_planner()
        for insert in inserts:
            if insert.overwrite:
                raise ProgramError("INSERT OVERWRITE replaces files when its own job has ended: execute() runs it.")
            apply_function_settings(insert.plan, self._config.get_configuration())
            full, table = self._target(insert.target, insert.plan)
            write_to(table, full, insert.plan, planner, self._config, insert.on_conflict)


@dataclass(frozen=True)
class _Signed:
    """Whether a row comes or goes, and what is made of it."""

    record: Callable[[Any], Any] | None

    def __call__(self, row: Any) -> tuple[bool, Any]:
        comes = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        return comes, row if self.record is None else self.record(row)


def _gives_rows(type_info: TypeInformation) -> bool:
    return isinstance(type_info, RowTypeInfo)


def _value(row: Any) -> Any:
    return row[0]


def _not_before(row: Any) -> bool:
    return row.get_row_kind() is not RowKind.UPDATE_BEFORE


def _singles(stream: DataStream) -> DataStream:
    """Records as rows of one column, in the order in which they come."""
    node, rows = stream.transformation, stream.map(as_map(_single))
    parallelism = node.parallelism if node.parallel else 1
    return rows if parallelism is None else rows.set_parallelism(parallelism)


def _single(value: Any) -> tuple[Any]:
    return (value,)
