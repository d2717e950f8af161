"""Schemas and descriptors of a program, and event time between streams and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Row, RowKind, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import DataStream, ProcessFunction, StreamExecutionEnvironment
from firesteel.errors import ProgramError
from firesteel.table import (
    ChangelogMode,
    DataTypes,
    EnvironmentSettings,
    FormatDescriptor,
    Schema,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
)
from firesteel.table.expressions import col, lit, source_watermark
from firesteel.table.sql import SqlError
from firesteel.table.window import Tumble
from firesteel.testing import memory_environment

ROW = Types.ROW_NAMED(["name", "ms"], [Types.STRING(), Types.LONG()])


class _ByMillis(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class _WithTimestamp(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield (*value, ctx.timestamp())


@pytest.fixture
def streams() -> StreamExecutionEnvironment:
    env = memory_environment()
    env.set_parallelism(1)
    return env


def timed(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_ByMillis())
    rows = env.from_collection([("a", 1000), ("b", 2000), ("a", 15000)], ROW)
    return rows.assign_timestamps_and_watermarks(strategy)


def collected(table: Any) -> list[tuple[Any, ...]]:
    with table.execute().collect() as found:
        return [tuple(row) for row in found]


WINDOWS = """SELECT name, CAST(window_start AS STRING), COUNT(*)
    FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY name, window_start, window_end"""
COUNTED = [
    ("a", "1970-01-01 00:00:00.000", 1),
    ("b", "1970-01-01 00:00:00.000", 1),
    ("a", "1970-01-01 00:00:10.000", 1),
]


def test_event_time_of_a_computed_column(streams: StreamExecutionEnvironment) -> None:
    tables = StreamTableEnvironment.create(streams)
    schema = (
        Schema.new_builder()
        .column_by_expression("at", "CAST(TO_TIMESTAMP_LTZ(ms, 3) AS TIMESTAMP(3))")
        .watermark("at", "at - INTERVAL '1' SECOND")
        .build()
    )
    tables.create_temporary_view("v", tables.from_data_stream(timed(streams), schema))
    assert collected(tables.sql_query(WINDOWS)) == COUNTED


def test_timestamps_and_watermarks_of_the_stream(streams: StreamExecutionEnvironment) -> None:
    tables = StreamTableEnvironment.create(streams)
    schema = (
        Schema.new_builder()
        .column("name", DataTypes.STRING())
        .column_by_metadata("at", DataTypes.TIMESTAMP(3), "rowtime")
        .watermark("at", source_watermark())
        .build()
    )
    tables.create_temporary_view("v", tables.from_data_stream(timed(streams), schema))
    assert collected(tables.sql_query(WINDOWS)) == COUNTED
    target = Schema.new_builder().column("name", "STRING").column_by_metadata("at", "TIMESTAMP(3)", "rowtime").build()
    back = tables.to_changelog_stream(tables.from_path("v"), target)
    assert list(back.process(_WithTimestamp()).execute_and_collect()) == [("a", 1000), ("b", 2000), ("a", 15000)]


def test_a_stream_of_upserts(streams: StreamExecutionEnvironment) -> None:
    tables = StreamTableEnvironment.create(streams)
    kinds = [(RowKind.INSERT, "k", 1), (RowKind.UPDATE_AFTER, "k", 2), (RowKind.DELETE, "k", None)]
    rows = streams.from_collection(
        [Row.of_kind(kind, *values) for kind, *values in kinds],
        Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()]),
    )
    schema = Schema.new_builder().column("k", "STRING").column("n", "BIGINT").primary_key("k").build()
    table = tables.from_changelog_stream(rows, schema, ChangelogMode.upsert())
    with table.execute().collect() as found:
        assert [(str(row.get_row_kind()), *row) for row in found] == [
            ("+I", "k", 1),
            ("-U", "k", 1),
            ("+U", "k", 2),
            ("-D", "k", 2),
        ]
    upserts = tables.to_changelog_stream(table, changelog_mode=ChangelogMode.upsert())
    assert [str(row.get_row_kind()) for row in upserts.execute_and_collect()] == ["+I", "+U", "-D"]
    with pytest.raises(ProgramError, match="needs a schema with a primary key"):
        tables.from_changelog_stream(rows, None, ChangelogMode.upsert())


def test_what_a_stream_cannot_give(streams: StreamExecutionEnvironment) -> None:
    tables = StreamTableEnvironment.create(streams)
    for schema, told in (
        (Schema.new_builder().column("nme", "STRING").build(), "no field 'nme'. Did you mean name"),
        (Schema.new_builder().column_by_metadata("x", "BIGINT", "offset").build(), "column 'x' asks for 'offset'"),
    ):
        with pytest.raises(ProgramError, match=told):
            tables.from_data_stream(timed(streams), schema)


def test_tables_of_descriptors(env: TableEnvironment, tmp_path: Path, capsys: Any) -> None:
    schema = Schema.new_builder().column("k", DataTypes.INT()).column("s", "STRING").build()
    descriptor = (
        TableDescriptor.for_connector("filesystem")
        .schema(schema)
        .option("path", str(tmp_path))
        .format(FormatDescriptor.for_format("csv").option("field-delimiter", "|").build())
        .partitioned_by("k")
        .comment("files")
        .build()
    )
    assert env.create_table("files", descriptor)
    assert not env.create_table("files", descriptor, ignoreIfExists=True)
    with pytest.raises(ProgramError, match="already"):
        env.create_table("files", descriptor)
    env.from_path("t").where(col("k") == 1).select(col("k"), col("s")).execute_insert(descriptor).wait()
    assert sorted(collected(env.from_descriptor(descriptor))) == [(1, "a"), (1, "c")]
    assert sorted(collected(env.from_path("files"))) == [(1, "a"), (1, "c")]
    # Without a schema it has the columns of what is written.
    inserts = env.create_statement_set()
    inserts.add_insert(TableDescriptor.for_connector("print").build(), env.from_path("t").select(col("k")))
    inserts.execute().wait()
    assert sorted(capsys.readouterr().out.split()) == ["+I[1]", "+I[1]", "+I[2]", "+I[null]"]
    with pytest.raises(ProgramError, match="has no schema"):
        env.from_descriptor(TableDescriptor.for_connector("datagen").build())


def test_a_descriptor_shows_no_password() -> None:
    made = TableDescriptor.for_connector("jdbc").option("password", "hunter2").option("url", "jdbc:sqlite:x").build()
    assert "hunter2" not in str(made)
    assert made.get_options()["password"] == "hunter2"


def test_a_schema_that_is_wrong(env: TableEnvironment) -> None:
    schema = Schema.new_builder().column("a", "INT").watermark("b", "b").build()
    with pytest.raises(SqlError, match="There is no column b"):
        env.create_temporary_table("x", TableDescriptor.for_connector("datagen").schema(schema).build())
    with pytest.raises(SqlError):
        Schema.new_builder().column("a", "NUMBR")
    with pytest.raises(ProgramError, match="one primary key"):
        Schema.new_builder().primary_key("a").primary_key("b")


def test_schemas_show_times_and_what_was_declared(capsys: pytest.CaptureFixture[str]) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.execute_sql(
        "CREATE TABLE g (id BIGINT NOT NULL, ts TIMESTAMP(3), m AS id + 1, p AS PROCTIME(), WATERMARK FOR ts AS "
        "ts - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'datagen')"
    )
    env.execute_sql("CREATE TABLE k (o BIGINT METADATA VIRTUAL, t INT METADATA FROM 'at') WITH ('connector' = 'kafka')")
    env.from_path("g").print_schema()
    env.from_path("k").print_schema()
    chosen = env.from_path("g").select(col("id"), col("ts").alias("at"), col("p"))
    chosen.print_schema()
    windows = chosen.window(Tumble.over(lit(5).seconds).on(col("at")).alias("w")).group_by(col("w"))
    windows.select(col("w").start.alias("a"), col("w").rowtime.alias("b")).print_schema()
    batch = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    timed = Schema.new_builder().column("ts", "TIMESTAMP(3)").watermark("ts", "ts").build()
    batch.from_descriptor(TableDescriptor.for_connector("datagen").schema(timed).build()).print_schema()
    assert capsys.readouterr().out == (
        "(\n  `id` BIGINT NOT NULL,\n  `ts` TIMESTAMP(3) *ROWTIME*,\n  `m` BIGINT NOT NULL AS id + 1,\n"
        "  `p` TIMESTAMP_LTZ(3) NOT NULL *PROCTIME* AS PROCTIME(),\n"
        "  WATERMARK FOR `ts`: TIMESTAMP(3) AS ts - INTERVAL '5' SECOND,\n"
        "  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED\n)\n"
        "(\n  `o` BIGINT METADATA VIRTUAL,\n  `t` INT METADATA FROM 'at'\n)\n"
        "(\n  `id` BIGINT NOT NULL,\n  `at` TIMESTAMP(3) *ROWTIME*,\n  `p` TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*\n)\n"
        "(\n  `a` TIMESTAMP(3) NOT NULL,\n  `b` TIMESTAMP(3) NOT NULL *ROWTIME*\n)\n"
        "(\n  `ts` TIMESTAMP(3),\n  WATERMARK FOR `ts`: TIMESTAMP(3) AS ts\n)\n"
    )
