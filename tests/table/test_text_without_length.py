"""VARCHAR and VARBINARY without a length are of any length, as in Flink's SQL."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.table import DataTypes, Schema, TableDescriptor, TableEnvironment
from firesteel.table.expressions import call_sql, col
from firesteel.table.udf import udf

COLUMNS = (
    "a VARCHAR, b VARBINARY, c CHAR, d BINARY, e CHARACTER VARYING, f ROW<x VARCHAR, y CHAR>, "
    "g MAP<VARCHAR, VARBINARY>, h VARCHAR ARRAY, i VARCHAR MULTISET, j VARCHAR(3), k VARCHAR NOT NULL"
)
KINDS = [
    *("STRING", "BYTES", "CHAR(1)", "BINARY(1)", "STRING", "ROW<`x` STRING, `y` CHAR(1)>", "MAP<STRING, BYTES>"),
    *("ARRAY<STRING>", "MULTISET<STRING>", "VARCHAR(3)", "STRING"),
]


def rows(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(query).collect() as found:
        return [tuple(row) for row in found]


def test_columns_of_a_table(env: TableEnvironment) -> None:
    env.execute_sql(f"CREATE TABLE kinds ({COLUMNS}) WITH ('connector' = 'datagen')")
    described = rows(env, "DESCRIBE kinds")
    assert [row[1] for row in described] == KINDS
    # A table has no key, nothing computes its columns, and there is no watermark.
    assert described[0][3:] == (None, None, None)
    (statement,) = rows(env, "SHOW CREATE TABLE kinds")[0]
    assert "`a` VARCHAR(2147483647),\n  `b` VARBINARY(2147483647),\n  `c` CHAR(1)" in statement


def test_what_is_written_is_whole(env: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    env.execute_sql("CREATE TABLE console (word VARCHAR, mark VARBINARY) WITH ('connector' = 'print')")
    env.execute_sql("INSERT INTO console VALUES ('steel', x'0102')").wait()
    assert capsys.readouterr().out == "+I[steel, [1, 2]]\n"


def test_casts(env: TableEnvironment) -> None:
    query = """
        SELECT CAST('steel' AS VARCHAR), TRY_CAST(123 AS VARCHAR), CAST(x'0102' AS VARBINARY), CAST('steel' AS CHAR),
            JSON_VALUE('{"a": "steel"}', '$.a' RETURNING VARCHAR), CAST('steel' AS VARCHAR(2))
    """
    assert rows(env, query) == [("steel", "123", b"\x01\x02", "s", "steel", "st")]
    in_api = env.from_path("t").select(call_sql("CAST(s || 'teel' AS VARCHAR)").alias("x"))
    assert str(in_api.get_schema().get_field_data_type("x")) == "STRING"


def test_types_of_a_program(env: TableEnvironment) -> None:
    schema = Schema.new_builder().column("a", "VARCHAR").column("b", "ROW<x VARCHAR, y VARBINARY>").build()
    table = env.from_descriptor(TableDescriptor.for_connector("datagen").schema(schema).build())
    kinds = [str(kind) for kind in table.get_schema().get_field_data_types()]
    assert kinds == ["VARCHAR(1)", "ROW<`x` VARCHAR(1), `y` VARBINARY(1)>"], "in the text of a type, as in PyFlink"
    same = udf(lambda word: word, result_type="VARCHAR")
    assert (
        str(env.from_path("t").select(same(col("s")).alias("x")).get_schema().get_field_data_type("x")) == "VARCHAR(1)"
    )


def test_arguments_are_cut_to_the_declared_length(env: TableEnvironment) -> None:
    twice = udf(lambda word: word * 2, input_types=[DataTypes.VARCHAR(2)], result_type=DataTypes.STRING())
    words = env.from_elements([("steel",)], DataTypes.ROW([DataTypes.FIELD("word", DataTypes.STRING())]))
    with words.select(twice(col("word"))).execute().collect() as found:
        assert [row[0] for row in found] == ["stst"]
