"""Streams as tables, and tables as streams."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row, RowKind
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import ProgramError
from firesteel.table import StreamTableEnvironment
from firesteel.table.expressions import col

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
