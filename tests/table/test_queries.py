"""Queries end to end on the memory engine, with what PyFlink 2.3 printed for the same statements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import JobStatus
from firesteel.common.types import Row, RowKind
from firesteel.errors import JobCancelledError, ProgramError
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment
from firesteel.table.expressions import coalesce, col, if_then_else, lit
from firesteel.table.sql import NotSupportedError, SqlValidationError

RECORDED = json.loads((Path(__file__).parent / "printed_by_pyflink.json").read_text())


@pytest.mark.parametrize("case", RECORDED["printed"], ids=lambda case: str(case["name"]))
def test_prints_what_pyflink_prints(case: dict[str, str], env: TableEnvironment, capsys: Any) -> None:
    env.execute_sql(case["sql"]).print()
    assert capsys.readouterr().out == case["expected"]


@pytest.mark.parametrize("case", RECORDED["schemas"], ids=lambda case: str(case["sql"][:40]))
def test_has_the_schema_that_pyflink_has(case: dict[str, str], env: TableEnvironment, capsys: Any) -> None:
    env.sql_query(case["sql"]).print_schema()
    assert capsys.readouterr().out == case["expected"]


def rows(env: TableEnvironment, query: str) -> list[tuple[str, tuple[Any, ...]]]:
    with env.execute_sql(query).collect() as found:
        return [(str(row.get_row_kind()), tuple(row)) for row in found]


def test_collect_gives_rows_without_names_and_with_kinds(env: TableEnvironment) -> None:
    with env.execute_sql("SELECT k, COUNT(*) AS n FROM t WHERE k = 1 GROUP BY k").collect() as found:
        first, before, after = found
    assert first == Row(1, 1)
    assert (before.get_row_kind(), after.get_row_kind()) == (RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER)
    assert tuple(after) == (1, 2)


def test_groups_of_groups_take_back_what_changed(env: TableEnvironment) -> None:
    counted = "SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) GROUP BY n"
    final: dict[Any, Any] = {}
    for kind, (number, groups) in rows(env, counted):
        if kind in ("+I", "+U"):
            final[number] = groups
        else:
            assert final.pop(number) == groups
    assert final == {1: 2, 2: 1}


def test_ctes_views_and_derived_tables(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TEMPORARY VIEW large (key, total) AS SELECT k, v FROM t WHERE v > 1")
    query = "WITH x AS (SELECT total * 2 AS y FROM large) SELECT y + 1 FROM (SELECT y FROM x WHERE y > 3) AS z"
    assert rows(env, query) == [("+I", (6.0,))]
    assert env.list_views() == ["large", "t"]


def test_conditions_guard_what_can_fail(env: TableEnvironment) -> None:
    query = "SELECT s FROM (SELECT s, k FROM t WHERE k <> 1) WHERE 10 / (k - 1) = 10"
    assert rows(env, query) == [("+I", ("b",))]


def test_values_and_queries_without_from(env: TableEnvironment) -> None:
    assert rows(env, "VALUES (1, 'a'), (2, NULL)") == [("+I", (1, "a")), ("+I", (2, None))]
    assert rows(env, "SELECT 1 + 1, UPPER('x')") == [("+I", (2, "X"))]


def test_the_table_api_says_the_same(env: TableEnvironment) -> None:
    table = env.from_path("t")
    result = (
        table.where((col("k") == 1) | col("k").is_null)
        .group_by(col("k"))
        .select(col("k"), col("v").sum.alias("total"), col("s").count.distinct.alias("n"))
    )
    with result.execute().collect() as found:
        changes = [(str(row.get_row_kind()), *row) for row in found]
    assert changes == [("+I", 1, 1.5, 1), ("-U", 1, 1.5, 1), ("+U", 1, 1.5, 2), ("+I", None, 0.1, 1)]


def test_the_table_api_names_columns_as_pyflink_does(env: TableEnvironment) -> None:
    table = env.from_path("t")
    assert table.select(col("k") + 1, col("s"), lit(5)).get_schema().get_field_names() == ["_c0", "s", "_c2"]
    grouped = table.group_by(col("k")).select(col("k"), col("v").sum.alias("x"), col("s").count)
    assert grouped.get_schema().get_field_names() == ["k", "x", "EXPR$1"]
    assert table.add_columns((col("k") * 2).alias("d")).drop_columns(col("s")).get_schema().get_field_names() == [
        "k",
        "v",
        "d",
    ]
    renamed = table.rename_columns(col("k").alias("key")).add_or_replace_columns(lit(1).alias("v"))
    assert str(renamed.get_schema().get_field_data_types()[2]) == "INT NOT NULL"
    assert table.alias("a", "b").get_schema().get_field_names() == ["a", "b", "v"]
    assert table.k is not None


def test_expressions_of_the_table_api(env: TableEnvironment) -> None:
    chosen = env.from_path("t").select(
        if_then_else(col("v") > 2, "high", "low").alias("level"),
        coalesce(col("v"), 0.0).alias("v"),
        col("k").between(1, 1),
        col("s").in_("a", "b"),
        col("k").cast(DataTypes.STRING()),
    )
    with chosen.execute().collect() as found:
        assert [tuple(row) for row in found] == [
            ("low", 1.5, True, True, "1"),
            ("high", 2.5, False, True, "2"),
            ("low", 0.0, True, False, "1"),
            ("low", 0.1, None, False, None),
        ]
    with pytest.raises(ProgramError, match="write & for and"):
        env.from_path("t").where(col("k") == 1 and col("v") == 2)


def test_to_pandas_gives_the_final_rows(env: TableEnvironment) -> None:
    frame = env.sql_query("SELECT k, COUNT(*) AS n FROM t GROUP BY k").to_pandas()
    assert sorted(zip(frame["k"].fillna(0), frame["n"], strict=True)) == [(0, 1), (1, 2), (2, 1)]


def test_from_pandas_and_inferred_types(env: TableEnvironment) -> None:
    import pandas as pd

    table = env.from_pandas(pd.DataFrame({"a": [1, 2], "b": ["x", None]}))
    assert [str(kind) for kind in table.get_schema().get_field_data_types()] == ["BIGINT", "STRING"]
    with table.execute().collect() as found:
        assert [tuple(row) for row in found] == [(1, "x"), (2, None)]
    inferred = env.from_elements([(1, [1.5], {"a": True}, ("x", 2))])
    assert (
        repr(inferred)
        == "Table(`_1` BIGINT, `_2` ARRAY<DOUBLE>, `_3` MAP<STRING, BOOLEAN>, `_4` ROW<`_1` STRING, `_2` BIGINT>)"
    )
    with inferred.execute().collect() as found:
        assert [tuple(row) for row in found] == [(1, [1.5], {"a": True}, Row("x", 2))]


def test_explain_reads_as_in_flink(env: TableEnvironment) -> None:
    plan = env.explain_sql("SELECT k, COUNT(*) AS c, SUM(v) FROM t WHERE s <> 'b' GROUP BY k")
    assert plan.endswith(
        "== Optimized Execution Plan ==\n"
        "GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS c, SUM(v) AS EXPR$2])\n"
        "+- Exchange(distribution=[hash[k]])\n"
        "   +- Calc(select=[k, v], where=[(s <> 'b')])\n"
        "      +- TableSourceScan(table=[[*anonymous_python-input-format$1*]], fields=[k, s, v])\n"
    )


def test_insert_into_print_and_blackhole(env: TableEnvironment, capsys: Any) -> None:
    env.execute_sql("CREATE TABLE p (a INT, b STRING) WITH ('connector' = 'print')")
    env.execute_sql("CREATE TABLE b (a BIGINT) WITH ('connector' = 'blackhole')")
    result = env.execute_sql("INSERT INTO p SELECT k, s FROM t WHERE k IS NULL OR k = 2")
    result.wait()
    assert capsys.readouterr().out == "+I[2, b]\n+I[null, d]\n"
    with result.collect() as counts:
        assert list(counts) == [Row(-1)]
    env.execute_sql("INSERT INTO p (b) SELECT s FROM t WHERE k = 2").wait()
    assert capsys.readouterr().out == "+I[null, b]\n"
    env.execute_sql(
        "EXECUTE STATEMENT SET BEGIN INSERT INTO p SELECT 7, 'x'; INSERT INTO b SELECT k FROM t; END"
    ).wait()
    assert capsys.readouterr().out == "+I[7, x]\n"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM nope", "There is no table nope. There are t. (line 1, column 15)"),
        ("SELECT kk FROM t", "There is no column kk. Did you mean k? The columns are k, s, v. (line 1, column 8)"),
        ("SELECT x.k FROM t", "There is no table x in FROM."),
        ("SELECT k, s FROM t GROUP BY k", "s is neither in GROUP BY nor inside an aggregate"),
        ("SELECT k + s FROM t", "a + b takes NUMERIC values, got INT, STRING. (line 1, column 8)"),
        ("SELECT UPER(s) FROM t", "There is no function UPER. Did you mean UPPER?"),
        ("SELECT k FROM t WHERE COUNT(*) > 1", "WHERE has no aggregates"),
        ("SELECT SUM(COUNT(*)) FROM t", "COUNT is an aggregate"),
        ("SELECT SUM(s) FROM t", "SUM takes a number, got STRING."),
        ("SELECT k FROM t WHERE k", "WHERE takes a BOOLEAN, got INT."),
        ("SELECT k FROM t UNION ALL SELECT s, k FROM t", "1 columns and 2 columns do not go together"),
        ("SELECT k FROM t UNION ALL SELECT s FROM t", "column k has no common type: INT and STRING"),
        ("SELECT CAST(k AS DATE) FROM t", "INT cannot be cast to DATE."),
        (
            "SELECT * FROM t ORDER BY k",
            "or begins with a time attribute in ascending order. (line 1, column 26)",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(k), INTERVAL '1' DAY))",
            "k is not a time attribute: the table needs WATERMARK FOR k AS",
        ),
        ("SELECT * FROM t a JOIN t b", "INNER JOIN needs a condition"),
        ("SELECT k FROM t a JOIN t b ON a.k = b.k", "Column k is in a and b: write which of them is meant."),
        ("SELECT INTERVAL 'x' DAY", "'x' is not an interval DAY."),
        ("SELECT DATE '2024-02-30'", "is not a date"),
        ("INSERT INTO t SELECT 1, 'a', 1e0", "is a view: rows go into tables."),
        ("CREATE TABLE x (a INT, PRIMARY KEY (b) NOT ENFORCED) WITH ('a' = 'b')", "There is no column b."),
        ("USE CATALOG defalt_catalog", "There is no catalog defalt_catalog. Did you mean default_catalog?"),
    ],
)
def test_errors_name_the_place_and_near_names(query: str, expected: str, env: TableEnvironment) -> None:
    with pytest.raises(SqlValidationError) as caught:
        env.execute_sql(query)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT SUM0(k) FROM t", "the aggregate SUM0"),
    ],
)
def test_what_cannot_be_run_yet_says_so(query: str, expected: str, env: TableEnvironment) -> None:
    with pytest.raises(NotSupportedError) as caught:
        env.execute_sql(query)
    assert f"Not supported yet: {expected}" in str(caught.value)


def test_names_belong_to_catalogs_and_databases(env: TableEnvironment) -> None:
    env.execute_sql("CREATE DATABASE other COMMENT 'x'")
    env.execute_sql("CREATE TABLE other.a (x INT) WITH ('connector' = 'print')")
    env.execute_sql("USE other")
    assert (env.get_current_database(), env.list_tables()) == ("other", ["a"])
    assert rows(env, "SELECT COUNT(*) FROM default_database.t")[-1] == ("+U", (4,))
    with pytest.raises(SqlValidationError, match="There is a table default_catalog"):
        env.execute_sql("CREATE TABLE a (x INT) WITH ('connector' = 'print')")
    env.execute_sql("USE default_database")
    with pytest.raises(SqlValidationError, match="has tables"):
        env.execute_sql("DROP DATABASE other")
    env.execute_sql("DROP DATABASE other CASCADE")
    assert env.list_databases() == ["default_database"]


def test_settings_by_sql(env: TableEnvironment) -> None:
    env.execute_sql("SET 'table.local-time-zone' = 'Europe/Berlin'")
    assert env.get_config().get_local_timezone() == "Europe/Berlin"
    moment = "SELECT CAST(CAST(TIMESTAMP '2024-07-01 12:00:00' AS TIMESTAMP_LTZ(3)) AS STRING)"
    assert rows(env, moment) == [("+I", ("2024-07-01 12:00:00.000",))]
    env.execute_sql("RESET 'table.local-time-zone'")
    assert env.get_config().get_local_timezone() == "UTC"


@pytest.fixture
def orders(env: TableEnvironment) -> TableEnvironment:
    env.create_temporary_view("a", env.from_elements([(1, "x"), (2, "y"), (3, "z")], ["k", "s"]))
    env.create_temporary_view("b", env.from_elements([(1, 10), (1, 11), (3, 30), (4, 40)], ["k", "v"]))
    return env


def final(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    """What is left of the changelog; every row that is taken back was there."""
    kept: list[tuple[Any, ...]] = []
    for kind, row in rows(env, query):
        if kind in ("+I", "+U"):
            kept.append(row)
        else:
            kept.remove(row)
    return sorted(kept, key=repr)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a.s, b.v FROM a JOIN b ON a.k = b.k", [("x", 10), ("x", 11), ("z", 30)]),
        ("SELECT s, v FROM a, b WHERE a.k = b.k AND v < 30", [("x", 10), ("x", 11)]),
        ("SELECT s, v FROM a LEFT JOIN b ON a.k = b.k AND v > 10", [("x", 11), ("y", None), ("z", 30)]),
        ("SELECT s, v FROM a LEFT JOIN b ON a.k = b.k AND a.k > 1", [("x", None), ("y", None), ("z", 30)]),
        ("SELECT s, v FROM a RIGHT JOIN b ON a.k = b.k WHERE v >= 30", [("z", 30), (None, 40)]),
        (
            "SELECT a.s, COUNT(v) FROM a FULL JOIN b ON a.k = b.k GROUP BY a.s",
            [("x", 2), ("y", 0), ("z", 1), (None, 1)],
        ),
        ("SELECT a.k, b.k FROM a CROSS JOIN b WHERE a.k + 1 = b.k AND s <> 'q'", [(2, 3), (3, 4)]),
        ("SELECT s, n FROM a JOIN (SELECT k, COUNT(*) AS n FROM b GROUP BY k) AS g ON g.k = a.k", [("x", 2), ("z", 1)]),
        ("SELECT x.s, y.s FROM a x JOIN a y ON x.k < y.k", [("x", "y"), ("x", "z"), ("y", "z")]),
    ],
)
def test_joins(query: str, expected: list[tuple[Any, ...]], orders: TableEnvironment) -> None:
    assert final(orders, query) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM b) WHERE n = 1",
            [(1, 11), (3, 30), (4, 40)],
        ),
        (
            "SELECT k, n FROM (SELECT k, ROW_NUMBER() OVER w n FROM b WINDOW w AS (ORDER BY v)) WHERE n > 1 AND n < 4",
            [(1, 2), (3, 3)],
        ),
        ("SELECT * FROM b LIMIT 2", [(1, 10), (1, 11)]),
        ("SELECT k, SUM(v) AS s FROM b GROUP BY k ORDER BY s DESC LIMIT 2 OFFSET 1", [(1, 21), (3, 30)]),
        ("SELECT v FROM b ORDER BY -v FETCH FIRST 1 ROW ONLY", [(40,)]),
    ],
)
def test_first_rows(query: str, expected: list[tuple[Any, ...]], orders: TableEnvironment) -> None:
    assert final(orders, query) == sorted(expected, key=repr)


def test_datagen_and_computed_columns(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE g (a INT NOT NULL, b STRING, c AS a * 10) WITH ('connector' = 'datagen',"
        " 'fields.a.kind' = 'sequence',"
        " 'fields.a.start' = '1', 'fields.a.end' = '3', 'fields.b.length' = '4')"
    )
    found = final(env, "SELECT a, c, CHAR_LENGTH(b) FROM g")
    assert found == [(1, 10, 4), (2, 20, 4), (3, 30, 4)]
    env.execute_sql("CREATE TABLE wrong (a INT) WITH ('connector' = 'datagen', 'number-of-row' = '3')")
    with pytest.raises(SqlValidationError, match="no option 'number-of-row'"):
        env.execute_sql("SELECT * FROM wrong")


def create_ticks(env: TableEnvironment) -> None:
    """A row a second, and a watermark two seconds behind."""
    env.execute_sql("""
        CREATE TABLE ticks (
            n BIGINT,
            odd AS n % 2,
            ts AS TIMESTAMPADD(SECOND, CAST(n AS INT), TIMESTAMP '2024-01-01 00:00:00.000'),
            WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
        ) WITH (
            'connector' = 'datagen',
            'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '24'
        )
    """)


@pytest.fixture
def ticks(env: TableEnvironment) -> TableEnvironment:
    create_ticks(env)
    return env


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT EXTRACT(SECOND FROM window_end), odd, COUNT(*), SUM(n) FROM TABLE(TUMBLE(TABLE ticks,"
            " DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE n <> 3 GROUP BY odd, window_start, window_end",
            [(10, 0, 5, 20), (10, 1, 4, 22), (20, 0, 5, 70), (20, 1, 5, 75), (30, 0, 3, 66), (30, 1, 2, 44)],
        ),
        (
            "SELECT EXTRACT(SECOND FROM window_start), MAX(n) FROM HOP(DATA => TABLE ticks, TIMECOL => DESCRIPTOR(ts),"
            " SLIDE => INTERVAL '5' SECOND, SIZE => INTERVAL '10' SECOND) GROUP BY window_start, window_end",
            [(55, 4), (0, 9), (5, 14), (10, 19), (15, 24), (20, 24)],
        ),
        (
            "SELECT EXTRACT(SECOND FROM window_end), COUNT(*) FROM TABLE(CUMULATE(TABLE ticks, DESCRIPTOR(ts),"
            " INTERVAL '10' SECOND, INTERVAL '30' SECOND)) GROUP BY window_start, window_end",
            [(10, 10), (20, 20), (30, 25)],
        ),
        (
            "SELECT SUM(c) FROM (SELECT COUNT(*) AS c FROM TABLE(TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '10'"
            " SECOND, INTERVAL '3' SECOND)) GROUP BY window_start, window_end HAVING COUNT(*) > 5)",
            [(20,)],
        ),
    ],
)
def test_windows(query: str, expected: list[tuple[Any, ...]], ticks: TableEnvironment) -> None:
    assert final(ticks, query) == sorted(expected, key=repr)


def test_results_of_windows_are_insertions(ticks: TableEnvironment) -> None:
    windows = "TABLE(TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
    found = rows(ticks, f"SELECT COUNT(*) FROM {windows} GROUP BY window_start, window_end")
    assert found == [("+I", (10,)), ("+I", (10,)), ("+I", (5,))]


def test_joins_of_the_table_api(orders: TableEnvironment) -> None:
    left, right = orders.from_path("a"), orders.from_path("b").alias("key")
    found = left.left_outer_join(right, col("k") == col("key")).select(col("s"), col("v")).to_pandas()
    assert sorted(zip(found["s"], found["v"].fillna(0), strict=True)) == [("x", 10), ("x", 11), ("y", 0), ("z", 30)]
    crossed = left.join(right).where(col("k") == col("key")).select(col("s")).to_pandas()
    assert sorted(crossed["s"]) == ["x", "x", "z"]
    with pytest.raises(SqlValidationError, match="Both tables have a column k"):
        left.join(orders.from_path("b"), col("k") == 1)


def test_statement_sets(orders: TableEnvironment, capsys: Any) -> None:
    orders.execute_sql("CREATE TABLE p (x BIGINT) WITH ('connector' = 'print')")
    statements = orders.create_statement_set()
    statements.add_insert_sql("INSERT INTO p SELECT k FROM a WHERE k = 1")
    statements.add_insert("p", orders.sql_query("SELECT v FROM b WHERE v = 40"))
    statements.execute().wait()
    assert sorted(capsys.readouterr().out.split()) == ["+I[1]", "+I[40]"]
    with pytest.raises(ProgramError, match="The statement set is empty"):
        statements.execute()


def test_rows_are_cast_by_the_places_of_their_fields(env: TableEnvironment) -> None:
    query = "SELECT CAST(ROW(k, s) AS ROW<x BIGINT, y STRING>).x, CAST(ROW(1, 'z') AS ROW<x BIGINT, y STRING>).y FROM t"
    assert rows(env, query) == [("+I", (1, "z")), ("+I", (2, "z")), ("+I", (1, "z")), ("+I", (None, "z"))]


def test_changes_of_one_subtask_stay_in_their_order(capsys: Any) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in (
        ("firesteel.master", "memory"),
        ("parallelism.default", "3"),
        ("firesteel.batch.max-records", "50"),
    ):
        env.get_config().set(key, value)
    env.execute_sql("""CREATE TABLE numbers (n BIGINT) WITH (
        'connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '300')""")
    env.execute_sql("CREATE TABLE console (n BIGINT, s BIGINT) WITH ('connector' = 'print')")
    query = "SELECT COUNT(*) AS n, SUM(n) AS s FROM numbers"
    with env.execute_sql(f"SELECT n + 0, s + 0 FROM ({query})").collect() as found:
        counts = [row[0] for row in found if row.get_row_kind() is not RowKind.UPDATE_BEFORE]
    assert counts == list(range(1, 301))
    env.execute_sql(f"INSERT INTO console {query}").wait()
    assert capsys.readouterr().out.splitlines()[-1] == "+U[300, 45150]"


def test_a_query_has_the_client_of_its_job_before_and_while_rows_are_collected(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen')")
    result = env.execute_sql("SELECT n FROM endless")
    client = result.get_job_client()
    assert client is not None
    with result.collect() as rows:
        next(rows)
        assert result.get_job_client() is client
        assert client.get_job_status().result() is JobStatus.RUNNING
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert env.execute_sql("SHOW TABLES").get_job_client() is None


def test_what_flink_does_not_compare_is_refused_where_it_stands(env: TableEnvironment) -> None:
    for condition in ("k = '1'", "s = 1", "s <> 1", "s IS DISTINCT FROM 1", "CASE s WHEN 1 THEN TRUE END"):
        with pytest.raises(SqlValidationError, match=r"cannot be compared.*Cast one of them.*\(line 1, column"):
            env.sql_query(f"SELECT s FROM t WHERE {condition}")
    for pair in ("DATE '2020-01-01' = TIMESTAMP '2020-01-01 00:00:00'", "CURRENT_DATE < CURRENT_TIMESTAMP"):
        with pytest.raises(SqlValidationError, match="cannot be compared"):
            env.sql_query(f"SELECT {pair}")
    assert rows(env, "SELECT k FROM t WHERE k IN ('2') OR k > '1'") == [("+I", (2,))]


def test_only_texts_are_put_together(env: TableEnvironment) -> None:
    for call in ("s || k", "CONCAT(s, k)", "k || s"):
        with pytest.raises(SqlValidationError, match="INT"):
            env.sql_query(f"SELECT {call} FROM t")
