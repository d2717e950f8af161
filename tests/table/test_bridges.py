"""Streams as tables, and tables as streams."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from firesteel.common import Configuration, Instant
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row, RowKind
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.errors import ProgramError
from firesteel.table import DataTypes, EnvironmentSettings, Schema, StreamTableEnvironment, TableEnvironment
from firesteel.table.expressions import array, col, lit
from firesteel.table.window import Over, Tumble

NAMED = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    made = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"firesteel.master": "memory"}))
    made.set_parallelism(1)
    return made


@pytest.fixture
def tables(env: StreamExecutionEnvironment) -> StreamTableEnvironment:
    made = StreamTableEnvironment.create(env)
    made.create_temporary_view("s", env.from_collection([Row("a", 1), Row("b", 2), Row("a", 3)], NAMED))
    return made


def collected(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as found:
        return list(found)


def test_a_stream_as_a_table_and_back(tables: StreamTableEnvironment) -> None:
    stream = tables.to_data_stream(tables.sql_query("SELECT name, n * 10 AS n FROM s WHERE n > 1"))
    assert str(stream.get_type()) == "ROW<name STRING, n INT>"
    assert collected(stream.map(lambda row: f"{row.name}={row.n}")) == ["b=20", "a=30"]


def test_a_changelog_stream(tables: StreamTableEnvironment) -> None:
    counted = tables.sql_query("SELECT name, COUNT(*) AS c FROM s GROUP BY name")
    with pytest.raises(ProgramError, match="the table takes rows back"):
        tables.to_data_stream(counted)
    changes = collected(tables.to_changelog_stream(counted))
    assert [(str(row.get_row_kind()), row.name, row.c) for row in changes] == [
        ("+I", "a", 1),
        ("+I", "b", 1),
        ("-U", "a", 1),
        ("+U", "a", 2),
    ]


def test_a_stream_of_changes_as_a_table(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    changes = [Row("a", 1), Row("b", 5), Row.of_kind(RowKind.DELETE, "a", 1), Row.of_kind(RowKind.INSERT, "a", 7)]
    table = tables.from_changelog_stream(env.from_collection(changes, NAMED))
    summed = table.select(col("n").sum.alias("n"))
    with summed.execute().collect() as found:
        assert [tuple(row) for row in found][-1] == (12,)


def test_single_values_get_a_name(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    numbers = env.from_collection([1, 2], Types.INT())
    assert tables.from_data_stream(numbers).get_schema().get_field_names() == ["f0"]
    with tables.from_data_stream(numbers, col("x")).select(col("x") * 2).execute().collect() as found:
        assert [tuple(row) for row in found] == [(2,), (4,)]
    with pytest.raises(ProgramError, match="needs a stream of a declared type"):
        tables.from_data_stream(env.from_collection([1]))


def test_queries_leave_the_sinks_of_the_stream_program_alone(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment, capsys: Any
) -> None:
    env.from_collection(["of the stream"]).print()
    for _ in range(2):
        with tables.execute_sql("SELECT name, SUM(n) FROM s GROUP BY name").collect() as found:
            assert len(list(found)) == 4
    assert capsys.readouterr().out == ""
    env.execute()
    assert capsys.readouterr().out == "of the stream\n"


def test_instants_are_timestamps_in_the_local_zone(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    tables.get_config().set_local_timezone("Asia/Shanghai")
    moments = env.from_collection([Row(1, Instant(1, 5)), Row(2, None)], Types.ROW([Types.INT(), Types.INSTANT()]))
    table = tables.from_data_stream(moments)
    assert str(table.get_schema().get_field_data_type("f1")) == "TIMESTAMP_LTZ(9)"
    with table.select(col("f1").cast(DataTypes.STRING())).execute().collect() as found:
        assert [row[0] for row in found] == ["1970-01-01 08:00:01.000000005", None]
    back = tables.to_data_stream(table.select(col("f1"), array(col("f1").cast(DataTypes.TIMESTAMP_LTZ(3))).alias("l")))
    assert collected(back) == [Row(f1=Instant(1, 5), l=[Instant(1, 0)]), Row(f1=None, l=[None])]
    assert str(tables.to_data_stream(table).get_type()) == "ROW<f0 INT, f1 INSTANT>"


def test_timestamps_of_streams_have_nine_digits(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    named = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
    moment, last = datetime.datetime(2020, 1, 1, 1, 2, 3, 456000), datetime.datetime(9999, 12, 31)
    table = tables.from_data_stream(env.from_collection([Row(moment)], named))
    assert str(table.get_schema().get_field_data_type("at")) == "TIMESTAMP(9)"
    assert collected(tables.to_data_stream(table)) == [Row(at=moment)]
    # Arrow counts nanoseconds up to the year 2262: fewer digits go further.
    wide = Schema.new_builder().column("at", DataTypes.TIMESTAMP(6)).build()
    table = tables.from_data_stream(env.from_collection([Row(last)], named), wide)
    assert collected(tables.to_data_stream(table)) == [Row(at=last)]


def test_columns_are_computed_of_fields_that_the_schema_leaves_out(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    kind = Types.ROW([Types.INSTANT(), Types.STRING(), Types.INT()])
    stream = env.from_collection([Row(Instant(1, 0), "a", 1), Row(Instant(6, 0), "b", 2)], kind)
    schema = Schema.new_builder().column_by_expression("ts", "CAST(f0 AS TIMESTAMP(3))").column("f2", DataTypes.INT())
    table = tables.from_data_stream(stream, schema.watermark("ts", "ts - INTERVAL '3' SECOND").build())
    assert table.get_schema().get_field_names() == ["ts", "f2"]
    windows = table.window(Tumble.over(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("w"))
    with windows.select(col("f2").sum).execute().collect() as found:
        assert [tuple(row) for row in found] == [(1,), (2,)]


class First(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[0])


@pytest.fixture
def timed(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(First())
    pairs = Types.TUPLE([Types.LONG(), Types.STRING()])
    stream = env.from_collection([(1000, "a"), (2000, "b"), (11000, "a")], pairs)
    return stream.assign_timestamps_and_watermarks(strategy)


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        ([col("a")], {"a": "BIGINT"}),
        ([col("f1"), col("f0")], {"f1": "STRING", "f0": "BIGINT"}),
        ([col("f1").alias("q")], {"q": "STRING"}),
        ([col("a"), col("b"), col("rt").rowtime], {"a": "BIGINT", "b": "STRING", "rt": "TIMESTAMP(3)"}),
        ([col("rt").rowtime, col("f1")], {"rt": "TIMESTAMP(3)", "f1": "STRING"}),
        ([col("f0").rowtime.alias("t"), col("f1")], {"t": "TIMESTAMP(3)", "f1": "STRING"}),
        ([col("a").rowtime, col("b")], {"a": "TIMESTAMP(3)", "b": "STRING"}),
        ([col("a"), col("b"), col("p").proctime], {"a": "BIGINT", "b": "STRING", "p": "TIMESTAMP_LTZ(3) NOT NULL"}),
    ],
)
def test_fields_of_a_stream(
    timed: DataStream, tables: StreamTableEnvironment, fields: list[Any], columns: dict[str, str]
) -> None:
    schema = tables.from_data_stream(timed, *fields).get_schema()
    kinds = map(str, schema.get_field_data_types())
    assert dict(zip(schema.get_field_names(), kinds, strict=True)) == columns


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([col("a"), col("b"), col("c")], "3 names for 2 columns"),
        ([col("f0"), col("x")], "no field 'x', they have f0, f1"),
        ([col("f1").alias("q"), col("a")], "no field 'a'"),
        ([col("a"), col("rt").rowtime], "stands for a field of type STRING, which is no time"),
        ([col("a"), col("p").proctime], "give it a name of its own, behind those of all fields"),
        ([col("a"), col("a")], "two columns are called 'a'"),
        ([col("a"), col("b"), col("s").rowtime, col("t").rowtime], "a stream has one event time"),
        ([col("a") + 1], r"takes col\('a'\), col\('a'\).alias\('b'\)"),
    ],
)
def test_fields_that_a_stream_does_not_have(
    timed: DataStream, tables: StreamTableEnvironment, fields: list[Any], message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        tables.from_data_stream(timed, *fields)


def test_windows_of_the_time_of_a_stream(timed: DataStream, tables: StreamTableEnvironment) -> None:
    tables.create_temporary_view("timed", timed, col("a"), col("b"), col("at").rowtime)
    windows = tables.from_path("timed").window(Tumble.over(lit(5).seconds).on(col("at")).alias("w"))
    summed = windows.group_by(col("w"), col("b")).select(col("b"), col("w").rowtime, col("a").sum)
    ends = [datetime.datetime(1970, 1, 1, 0, 0, second, 999000) for second in (4, 14)]
    with summed.execute().collect() as found:
        assert sorted(map(tuple, found)) == [("a", ends[0], 1000), ("a", ends[1], 11000), ("b", ends[0], 2000)]


def test_a_window_of_processing_time_of_a_stream(timed: DataStream, tables: StreamTableEnvironment) -> None:
    table = tables.from_data_stream(timed, col("a"), col("b"), col("now").proctime)
    over = table.over_window(Over.partition_by(col("b")).order_by(col("now")).alias("w"))
    with over.select(col("a"), col("a").sum.over(col("w"))).execute().collect() as found:
        assert sorted(map(tuple, found)) == [(1000, 1000), (2000, 2000), (11000, 12000)]


@pytest.mark.parametrize(
    ("kind", "records", "shown"),
    [
        (Types.ROW([Types.STRING(), Types.LONG()]), [Row(f0="a", f1=1), Row(f0="b", f1=2)], "ROW<f0 STRING, f1 LONG>"),
        (Types.ROW_NAMED(["n", "name"], [Types.STRING(), Types.INT()]), [Row(n="a", name=1), Row(n="b", name=2)], None),
        (Types.TUPLE([Types.STRING(), Types.INT()]), [("a", 1), ("b", 2)], "TUPLE<STRING, INT>"),
    ],
)
def test_streams_of_a_given_type(tables: StreamTableEnvironment, kind: Any, records: list[Any], shown: str) -> None:
    table = tables.sql_query("SELECT name, n FROM s WHERE n < 3")
    stream = tables.to_append_stream(table, kind)
    assert collected(stream) == records
    assert str(stream.get_type()) == (shown or str(kind))
    pairs = tables.to_retract_stream(table, kind)
    assert collected(pairs) == [(True, record) for record in records]
    assert [type(record) for _, record in collected(pairs)] == [type(record) for record in records]


def test_records_that_are_taken_back(tables: StreamTableEnvironment) -> None:
    counted = tables.sql_query("SELECT COUNT(*) AS c FROM s WHERE name = 'a'")
    assert collected(tables.to_retract_stream(counted, Types.LONG())) == [(True, 1), (False, 1), (True, 2)]
    with pytest.raises(ProgramError, match="the table takes rows back"):
        tables.to_append_stream(counted, Types.LONG())


def test_a_type_that_does_not_fit(tables: StreamTableEnvironment) -> None:
    with pytest.raises(ProgramError, match=r"the stream has 1 columns \(f0\), the query 2 \(name, n\)"):
        tables.to_append_stream(tables.from_path("s"), Types.ROW([Types.STRING()]))
    with pytest.raises(ProgramError, match="Column f1 of the stream is STRING, the query gives INT"):
        tables.to_append_stream(tables.from_path("s"), Types.ROW([Types.STRING(), Types.STRING()]))


def test_fields_without_a_type(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    kind = Types.ROW_NAMED(["i", "p"], [Types.INT(), Types.PICKLED_BYTE_ARRAY()])
    with pytest.raises(
        ProgramError, match=r"Field 'p' of .* PICKLED_BYTE_ARRAY, which is no type of tables.*output_type="
    ):
        tables.from_data_stream(env.from_collection([Row(1, {"k": 2})], kind))


def test_a_statement_set_as_a_part_of_the_stream_program(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.execute_sql("CREATE TABLE names (name STRING) WITH ('connector' = 'print', 'print-identifier' = 'names')")
    tables.execute_sql("CREATE TABLE counts (name STRING, c BIGINT) WITH ('connector' = 'print')")
    statements = tables.create_statement_set()
    statements.add_insert_sql("INSERT INTO names SELECT name FROM s WHERE n > 1")
    statements.add_insert("counts", tables.sql_query("SELECT name, COUNT(*) FROM s GROUP BY name"))
    statements.attach_as_datastream()
    assert not capsys.readouterr().out
    # They are in the program now, and not in the set.
    statements.attach_as_datastream()
    tables.execute_sql("SELECT COUNT(*) AS n FROM s").collect().close()
    env.from_collection([10], Types.INT()).print()
    env.execute()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(
        ["names> +I[a]", "names> +I[b]", "+I[a, 1]", "+I[b, 1]", "-U[a, 1]", "+U[a, 2]", "10"]
    )
    alone = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    alone.execute_sql("CREATE TABLE x (n INT) WITH ('connector' = 'print')")
    other = alone.create_statement_set().add_insert_sql("INSERT INTO x SELECT 1")
    with pytest.raises(ProgramError, match=r"attach_as_datastream.. needs a stream program"):
        other.attach_as_datastream()
