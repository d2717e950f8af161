"""Streams as tables and tables as streams where a program is in batch mode. The rows are those of PyFlink 2.3."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row, RowKind
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.errors import ConfigurationError
from firesteel.table import EnvironmentSettings, Schema, StreamTableEnvironment, Table, TableEnvironment
from firesteel.table.expressions import col, lit
from firesteel.table.window import Tumble

PAIRS = Types.TUPLE([Types.INT(), Types.STRING()])


def stream_environment(mode: RuntimeExecutionMode = RuntimeExecutionMode.BATCH) -> StreamExecutionEnvironment:
    settings = Configuration.from_dict({"firesteel.master": "memory"})
    return StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(1).set_runtime_mode(mode)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return stream_environment()


@pytest.fixture
def tables(env: StreamExecutionEnvironment) -> StreamTableEnvironment:
    made = StreamTableEnvironment.create(env)
    made.create_temporary_view("s", env.from_collection([(1, "a"), (2, "a"), (3, "b")], PAIRS))
    return made


def rows(found: Any) -> list[tuple[Any, ...]]:
    iterator = found.execute().collect() if isinstance(found, Table) else found.execute_and_collect()
    with iterator as collected:
        return [(str(row.get_row_kind()), *row) for row in collected]


def test_the_mode_of_the_streams_is_that_of_the_tables(tables: StreamTableEnvironment) -> None:
    table = tables.from_elements([(1, "a"), (2, "a")], ["v", "k"])
    assert rows(table.group_by(col("k")).select(col("k"), col("v").sum)) == [("+I", "a", 3)]
    assert rows(table.order_by(col("v").desc)) == [("+I", 2, "a"), ("+I", 1, "a")]


def test_kinds_are_printed_where_the_streams_choose_the_mode(tables: StreamTableEnvironment, capsys: Any) -> None:
    tables.sql_query("SELECT COUNT(*) AS n FROM s").execute().print()
    assert capsys.readouterr().out.splitlines()[1] == "| op |                    n |"


def test_settings_win_over_the_mode_of_the_streams(env: StreamExecutionEnvironment) -> None:
    def summed(tables: StreamTableEnvironment) -> list[Any]:
        return rows(tables.from_elements([(1,), (2,)], ["v"]).select(col("v").sum))

    streaming = StreamTableEnvironment.create(env, EnvironmentSettings.in_streaming_mode())
    assert summed(streaming) == [("+I", 1), ("-U", 1), ("+U", 3)]
    streams = stream_environment(RuntimeExecutionMode.STREAMING)
    assert summed(StreamTableEnvironment.create(streams, EnvironmentSettings.in_batch_mode())) == [("+I", 3)]


def test_tables_need_to_know_the_mode() -> None:
    with pytest.raises(ConfigurationError, match="must be STREAMING or BATCH, got 'AUTOMATIC'"):
        StreamTableEnvironment.create(stream_environment(RuntimeExecutionMode.AUTOMATIC))


@pytest.mark.parametrize(("mode", "streaming"), [("batch", False), ("STREAMING", True)])
def test_the_mode_may_come_with_the_configuration(mode: str, streaming: bool) -> None:
    config = Configuration.from_dict({"execution.runtime-mode": mode, "firesteel.master": "memory"})
    settings = EnvironmentSettings.new_instance().with_configuration(config).build()
    assert settings.is_streaming_mode() is streaming
    table = TableEnvironment.create(settings).from_elements([(1,), (2,)], ["v"])
    assert (len(rows(table.select(col("v").sum))) == 1) is not streaming
    # What is said last holds.
    last = EnvironmentSettings.new_instance().with_configuration(config).in_streaming_mode().build()
    assert last.is_streaming_mode()


def test_a_stream_as_a_table_and_back(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    table = tables.from_path("s")
    grouped = table.group_by(col("f1")).select(col("f1"), col("f0").sum.alias("n"))
    assert rows(grouped) == [("+I", "a", 3), ("+I", "b", 3)]
    assert rows(tables.to_data_stream(table.order_by(col("f0").desc))) == [
        ("+I", 3, "b"),
        ("+I", 2, "a"),
        ("+I", 1, "a"),
    ]
    assert rows(tables.to_data_stream(grouped)) == rows(tables.to_changelog_stream(grouped)) == rows(grouped)
    joined = tables.sql_query("SELECT l.f0, r.f0 FROM s l JOIN s r ON l.f1 = r.f1 WHERE l.f0 < r.f0")
    assert rows(joined) == [("+I", 1, 2)]


def test_event_time_of_a_stream(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    class First(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[0])

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(First())
    moments = env.from_collection([(1000, "a"), (2000, "b"), (11000, "a")], PAIRS)
    schema = Schema.new_builder().column_by_metadata("at", "TIMESTAMP_LTZ(3)", "rowtime")
    schema.watermark("at", "SOURCE_WATERMARK()")
    table = tables.from_data_stream(moments.assign_timestamps_and_watermarks(strategy), schema.build())
    windows = table.window(Tumble.over(lit(5).seconds).on(col("at")).alias("w")).group_by(col("w"))
    assert rows(windows.select(col("f0").sum)) == [("+I", 3000), ("+I", 11000)]


def test_changes_of_a_stream_are_made_before_the_query(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    changes = [Row(1, "a"), Row(2, "b"), Row.of_kind(RowKind.DELETE, 1, "a")]
    stream = env.from_collection(changes, Types.ROW([Types.INT(), Types.STRING()]))
    assert rows(tables.from_changelog_stream(stream)) == [("+I", 2, "b")]


def test_sinks_of_the_stream_program_wait(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment, capsys: Any
) -> None:
    env.from_collection(["of the stream"]).print()
    assert len(rows(tables.from_path("s"))) == 3
    stream = tables.to_data_stream(tables.from_path("s"))
    assert capsys.readouterr().out == ""
    stream.print()
    env.execute()
    assert capsys.readouterr().out.splitlines()[0] == "of the stream"
