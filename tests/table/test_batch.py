"""Batch mode in memory: what PyFlink prints for bounded queries, order, and the same rows as in streaming."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import test_joins_of_pyflink as joins
import window_programs as windows
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration
from firesteel.common.types import Row, RowKind
from firesteel.errors import ConfigurationError, ProgramError
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment
from firesteel.table.expressions import col
from firesteel.table.final_rows import final_rows
from firesteel.table.sql import NotSupportedError, SqlValidationError

SETTINGS = {"firesteel.master": "memory", "parallelism.default": "1"}
RECORDED = json.loads((Path(__file__).parent / "printed_in_batch_by_pyflink.json").read_text())


def environment(batch: bool = True, **more: str) -> TableEnvironment:
    builder = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict({**SETTINGS, **more}))
    return TableEnvironment.create((builder.in_batch_mode() if batch else builder.in_streaming_mode()).build())


def filled(batch: bool = True) -> TableEnvironment:
    env = environment(batch)
    columns = [
        DataTypes.FIELD("k", DataTypes.INT()),
        DataTypes.FIELD("s", DataTypes.STRING()),
        DataTypes.FIELD("v", DataTypes.DOUBLE()),
    ]
    rows = [(1, "a", 1.5), (2, "b", 2.5), (1, "c", None), (None, "d", 0.1)]
    env.create_temporary_view("t", env.from_elements(rows, DataTypes.ROW(columns)))
    env.create_temporary_view("a", env.from_elements([(1, "x"), (2, "y"), (3, "z")], ["k", "s"]))
    env.create_temporary_view("b", env.from_elements([(1, 10), (1, 11), (3, 30), (4, 40)], ["k", "v"]))
    return env


@pytest.fixture
def env() -> TableEnvironment:
    return filled()


def in_lines(text: str, ordered: bool) -> list[str]:
    """What was printed. Without an order the rows may come in any."""
    lines = text.splitlines()
    return lines if ordered else sorted(lines)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["sql"][:60]))
def test_prints_what_pyflink_prints(case: dict[str, str], env: TableEnvironment, capsys: Any) -> None:
    env.execute_sql(case["sql"]).print()
    ordered = "ORDER BY" in case["sql"]
    assert in_lines(capsys.readouterr().out, ordered) == in_lines(case["expected"], ordered)


def rows(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(query).collect() as found:
        result = list(found)
    assert all(row.get_row_kind() is RowKind.INSERT for row in result)
    return [tuple(row) for row in result]


def test_order_and_limits(env: TableEnvironment) -> None:
    assert rows(env, "SELECT s, k + 1 FROM t ORDER BY v DESC NULLS FIRST, s LIMIT 3") == [("c", 2), ("b", 3), ("a", 2)]
    assert rows(env, "SELECT s FROM t ORDER BY t.v OFFSET 2") == [("a",), ("b",)]
    assert rows(env, "SELECT k, s FROM t ORDER BY 1 DESC, 2") == [(2, "b"), (1, "a"), (1, "c"), (None, "d")]
    assert rows(env, "SELECT * FROM (SELECT s FROM t ORDER BY v DESC LIMIT 2) AS x ORDER BY s DESC") == [("b",), ("a",)]
    assert len(rows(env, "SELECT * FROM t LIMIT 3")) == 3
    with pytest.raises(SqlValidationError, match="There is no column 3: SELECT has 2"):
        env.execute_sql("SELECT k, s FROM t ORDER BY 3")


def test_order_in_the_table_api(env: TableEnvironment) -> None:
    table = env.from_path("t")

    def values(found: Any) -> list[Any]:
        with found.select(col("s")).execute().collect() as result:
            return [row[0] for row in result]

    # NULL is the largest here, as in PyFlink, and the least in SQL.
    assert values(table.order_by(col("v").desc)) == ["c", "b", "a", "d"]
    assert values(table.order_by(col("v")).limit(2, 2)) == ["b", "c"]
    assert values(table.order_by(-col("v")).fetch(2)) == ["b", "a"]
    assert values(table.order_by(col("k").desc, col("s").asc).offset(1).fetch(2)) == ["b", "a"]
    assert values(table.order_by(col("s")).limit(1, 2)) == ["c"]
    assert len(values(table.limit(3))) == 3
    streaming = filled(batch=False).from_path("t")
    assert sorted(streaming.order_by(col("s").desc).fetch(2).to_pandas()["s"]) == ["c", "d"]
    with pytest.raises(SqlValidationError, match="ORDER BY needs a LIMIT"):
        streaming.order_by(col("s")).execute()


def test_a_sum_of_nothing_is_a_row(env: TableEnvironment) -> None:
    assert rows(env, "SELECT COUNT(*), SUM(k), MIN(s) FROM t WHERE k > 5") == [(0, None, None)]
    assert rows(env, "SELECT COUNT(*) FILTER (WHERE v > 2), COUNT(DISTINCT k) FROM t") == [(1, 2)]
    assert rows(env, "SELECT COUNT(*) FROM (SELECT SUM(k) FROM t WHERE k > 5)") == [(1,)]
    assert rows(env, "SELECT k, COUNT(*) FROM t WHERE k > 5 GROUP BY k") == []


def test_sinks_get_the_final_rows(env: TableEnvironment, capsys: Any) -> None:
    env.execute_sql("CREATE TABLE p (k INT, n BIGINT) WITH ('connector' = 'print')")
    result = env.execute_sql("INSERT INTO p SELECT k, COUNT(*) FROM t WHERE k IS NOT NULL GROUP BY k")
    result.wait()
    assert sorted(capsys.readouterr().out.splitlines()) == ["+I[1, 2]", "+I[2, 1]"]
    with result.collect() as counts:
        assert list(counts) == [Row(-1)]
    statements = env.create_statement_set()
    statements.add_insert_sql("INSERT INTO p SELECT CAST(k AS INT), v FROM b WHERE v = 40")
    statements.add_insert("p", env.sql_query("SELECT 7, CAST(8 AS BIGINT) FROM t WHERE FALSE"))
    statements.execute().wait()
    assert capsys.readouterr().out == "+I[4, 40]\n"


def test_spark_is_not_needed(env: TableEnvironment) -> None:
    assert rows(env, "SELECT COUNT(*) FROM t") == [(4,)]
    with pytest.raises(ConfigurationError, match="to_spark\\(\\) needs Spark"):
        env.from_path("t").to_spark()
    with pytest.raises(ProgramError, match="is for batch mode"):
        filled(batch=False).from_path("t").to_spark()


def test_a_source_without_an_end_is_refused(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE endless (a INT) WITH ('connector' = 'datagen')")
    with pytest.raises(SqlValidationError, match=r"has no end, and batch mode needs one\. Set .number-of-rows."):
        env.execute_sql("SELECT * FROM endless").print()


def test_nothing_is_late(env: TableEnvironment) -> None:
    """Time runs backwards in this table: a stream drops all rows behind its watermark."""
    env.execute_sql("""
        CREATE TABLE backwards (
            n BIGINT,
            ts AS TIMESTAMPADD(SECOND, CAST(0 - n AS INT), TIMESTAMP '2024-01-01 00:00:59.000'),
            WATERMARK FOR ts AS ts
        ) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '70000',
            'rows-per-second' = '100000000')
    """)
    windows = "TABLE(TUMBLE(TABLE backwards, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
    counts = f"SELECT COUNT(*) AS n FROM {windows} GROUP BY window_start, window_end"
    assert rows(env, f"SELECT SUM(n), MAX(n) FROM ({counts})") == [(70_001, 3_600)]


def test_versions_of_a_table_are_for_streams(env: TableEnvironment) -> None:
    env.execute_sql("""
        CREATE TABLE l (n BIGINT, ts AS TIMESTAMPADD(SECOND, CAST(n AS INT), TIMESTAMP '2024-01-01 00:00:00.000'),
            WATERMARK FOR ts AS ts, PRIMARY KEY (n) NOT ENFORCED)
        WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '2')
    """)
    with pytest.raises(NotSupportedError, match="Not supported yet in batch mode: FOR SYSTEM_TIME AS OF an event"):
        env.execute_sql("SELECT l.n FROM l JOIN l FOR SYSTEM_TIME AS OF l.ts AS r ON l.n = r.n").print()


QUERIES = [
    "SELECT k, COUNT(*), SUM(n), AVG(n), MIN(s), MAX(n), COUNT(DISTINCT s) FROM x GROUP BY k",
    "SELECT COUNT(*), SUM(n) FILTER (WHERE k = 1) FROM x HAVING COUNT(*) > 0",
    "SELECT x.k, x.n, y.s FROM x JOIN y ON x.k = y.k AND x.n < y.n",
    "SELECT x.k, x.n, y.n FROM x LEFT JOIN y ON x.k = y.k",
    "SELECT x.n, y.n FROM x FULL JOIN y ON x.n = y.n WHERE x.n IS NULL OR y.n IS NULL",
    "SELECT k, n FROM (SELECT k, n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n DESC, s) AS p FROM x) WHERE p <= 2",
    "SELECT DISTINCT k, s FROM (SELECT * FROM x UNION ALL SELECT * FROM y)",
    "SELECT c, COUNT(*) FROM (SELECT k, COUNT(*) AS c FROM x GROUP BY k) GROUP BY c",
    "SELECT n FROM (SELECT n, k FROM x ORDER BY n DESC LIMIT 3) WHERE k > 0",
]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1, 2]),
        st.one_of(st.none(), st.integers(-(2**62), 2**62), st.integers(0, 3)),
        st.sampled_from([None, "", "a", "ä"]),
    ),
    max_size=12,
)


@settings(max_examples=4, deadline=None, derandomize=True)
@given(ROWS, ROWS)
def test_the_same_rows_as_in_streaming(left: list[Any], right: list[Any]) -> None:
    columns = [
        DataTypes.FIELD("k", DataTypes.INT()),
        DataTypes.FIELD("n", DataTypes.BIGINT()),
        DataTypes.FIELD("s", DataTypes.STRING()),
    ]
    both = []
    for batch in (True, False):
        env = environment(batch)
        env.create_temporary_view("x", env.from_elements(left, DataTypes.ROW(columns)))
        env.create_temporary_view("y", env.from_elements(right, DataTypes.ROW(columns)))
        both.append([Counter(map(repr, env.sql_query(query).to_pandas().to_numpy().tolist())) for query in QUERIES])
    assert both[0] == both[1]


def table_of(changes: list[Any]) -> Counter[str]:
    """What a changelog leads to."""
    found: Counter[str] = Counter()
    for kind, *row in changes:
        found[repr(row)] += 1 if kind in ("+I", "+U") else -1
    return +found


def test_programs_of_joins_end_as_in_flink() -> None:
    env = environment()
    for statement in joins.CONTENT["setup"]:
        env.execute_sql(statement)
    wrong = []
    for name, program in joins.PROGRAMS.items():
        if "rows" not in program or "FOR SYSTEM_TIME AS OF" in program["sql"]:
            # Versions of a table are for streams.
            continue
        expected = table_of(program["rows"])
        if name == "scalar, count of nothing":
            # In a stream nothing was counted yet.
            expected = Counter({row.replace("None", "0"): number for row, number in expected.items()})
        if table_of(joins.run(env, program["sql"])[1]) != expected:
            wrong.append(name)
    assert not wrong


OF_STREAMS_ALONE = {
    # LAG of a stream sees rows of one time as one.
    "over lag",
    "over lag with a default",
    # In batch mode all rows are read at one time of the clock, so they are equals.
    "over the clock",
    # A stream adds and subtracts as frames move: other last digits.
    "over doubles, rows",
    "over variance",
}


def test_programs_of_windows_end_as_in_flink() -> None:
    recorded = json.loads((Path(__file__).parent / "windows_by_pyflink.json").read_text())["changes"]
    environments = {}
    for zone in ("UTC", "Asia/Shanghai"):
        environments[zone] = environment(**{"table.local-time-zone": zone})
        for statement in windows.TABLES:
            environments[zone].execute_sql(statement)
    wrong = []
    for name, query in windows.PROGRAMS.items():
        if name in recorded and name not in OF_STREAMS_ALONE:
            found = windows.changes(environments[windows.zone_of(name)].execute_sql(query))
            if table_of(found) != table_of(recorded[name]):
                wrong.append(name)
    assert not wrong


def test_changes_cancel_each_other() -> None:
    import pyarrow as pa

    schema = pa.schema([("n", pa.int64())])
    changes = pa.record_batch({"n": [5, 1, 1, 2, 5], "$kind": pa.array([0, 0, 1, 2, 0], pa.int8())})
    assert final_rows([changes], schema).to_pydict() == {"n": [5, 2, 5]}
