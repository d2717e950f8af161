"""Which types of a query go into which columns of a table: as PyFlink 2.3 answered for each pair."""

from __future__ import annotations

import pytest

from firesteel.table import TableEnvironment
from firesteel.table.expressions import col
from firesteel.table.sql import SqlValidationError

TAKEN = {
    "TINYINT": ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)"],
    "SMALLINT": ["SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)"],
    "INT": ["INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)"],
    "BIGINT": ["BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)"],
    "FLOAT": ["FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)"],
    "DOUBLE": ["DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)"],
    "DECIMAL(10,2)": ["FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)"],
    "DECIMAL(20,5)": ["FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)"],
    "BOOLEAN": ["BOOLEAN"],
    "STRING": ["STRING", "VARCHAR(5)"],
    "CHAR(3)": ["STRING", "CHAR(3)", "VARCHAR(5)"],
    "VARCHAR(5)": ["STRING", "VARCHAR(5)"],
    "BYTES": ["BYTES"],
    "BINARY(3)": ["BYTES", "BINARY(3)"],
    "DATE": ["DATE"],
    "TIME": ["TIME"],
    "TIMESTAMP(3)": ["DATE", "TIME", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"],
    "TIMESTAMP_LTZ(3)": ["TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"],
    "ARRAY<INT>": ["ARRAY<INT>", "ARRAY<BIGINT>"],
    "ARRAY<BIGINT>": ["ARRAY<BIGINT>"],
    "ROW<a INT>": ["ROW<a INT>", "ROW<b BIGINT>"],
    "ROW<b BIGINT>": ["ROW<b BIGINT>"],
    "MAP<STRING,INT>": ["MAP<STRING,INT>"],
}


def taken(env: TableEnvironment, source: str, target: str) -> bool:
    try:
        env.explain_sql(f"INSERT INTO `into {target}` SELECT CAST(NULL AS {source})")
    except SqlValidationError as error:
        if "Cast it" in str(error):
            return False
        raise
    return True


def test_only_what_pyflink_takes_goes_into_a_column(env: TableEnvironment) -> None:
    for kind in TAKEN:
        env.execute_sql(f"CREATE TABLE `into {kind}` (x {kind}) WITH ('connector' = 'blackhole')")
    found = {source: [target for target in TAKEN if taken(env, source, target)] for source in TAKEN}
    assert found == TAKEN


def test_nothing_is_cut_off_on_the_way_into_a_table(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE p (a INT, b STRING) WITH ('connector' = 'print')")
    with pytest.raises(SqlValidationError, match=r"Column a of .*p is INT, the query gives BIGINT"):
        env.execute_sql("INSERT INTO p SELECT CAST(3000000000 AS BIGINT), 'x'")
    with pytest.raises(SqlValidationError, match="is INT, the query gives DOUBLE"):
        env.from_path("t").select(col("v"), col("s")).execute_insert("p")
    with pytest.raises(SqlValidationError, match="is INT, the query gives DOUBLE"):
        env.execute_sql("INSERT INTO p (b, a) SELECT s, v FROM t")


def test_the_least_numbers_have_their_types(env: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    env.execute_sql("CREATE TABLE p (a INT, b BIGINT, c BIGINT) WITH ('connector' = 'print')")
    env.execute_sql("INSERT INTO p SELECT -2147483648, -9223372036854775808, - -2147483648").wait()
    assert capsys.readouterr().out == "+I[-2147483648, -9223372036854775808, 2147483648]\n"


def test_a_column_that_takes_no_null_must_be_named(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE p (a INT, b STRING NOT NULL) WITH ('connector' = 'print')")
    with pytest.raises(SqlValidationError, match="Column b of p is NOT NULL and gets no value"):
        env.execute_sql("INSERT INTO p (a) VALUES (77)")
