"""EXPLAIN with its details: kinds of rows, advice, costs and the operators as JSON."""

from __future__ import annotations

import json
import re

import pytest
from conftest import environment

from firesteel.table import ExplainDetail, TableEnvironment

TABLE = """CREATE TABLE t (k INT, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')"""
COUNTS = "(SELECT k, COUNT(*) AS c FROM t GROUP BY k)"
MODES = [
    ("SELECT k, v + 1 AS w FROM t WHERE v > 1", "I"),
    ("SELECT k, COUNT(*) AS c FROM t GROUP BY k HAVING COUNT(*) > 1", "I,UA"),
    (f"SELECT c, COUNT(*) AS n FROM {COUNTS} GROUP BY c", "I,UA,D"),
    (f"SELECT l.k, r.c FROM t AS l LEFT JOIN {COUNTS} AS r ON l.k = r.k", "I,UA,D"),
    ("SELECT l.k, r.v FROM t AS l JOIN t AS r ON l.k = r.k", "I"),
    (
        "SELECT * FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t) WHERE n <= 2",
        "I,UA,D",
    ),
    ("SELECT k FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM t) WHERE n = 1", "I,UA,D"),
    (
        "SELECT window_start, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
        "GROUP BY window_start, window_end",
        "I",
    ),
    ("SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS s FROM t", "I"),
    ("SELECT k FROM t UNION ALL SELECT CAST(COUNT(*) AS INT) FROM t", "I,UA"),
    ("SELECT k FROM t WHERE k IN (SELECT k FROM t WHERE v > 2)", "I"),
    ("SELECT k FROM t ORDER BY v LIMIT 3", "I,UA,D"),
]
"""The kinds of a result's rows in PyFlink 2.3. It leaves UB out where nobody needs it; here an update always has it."""


@pytest.fixture
def tables() -> TableEnvironment:
    env = environment()
    env.execute_sql(TABLE)
    env.execute_sql("CREATE TABLE sink (k INT, c BIGINT) WITH ('connector' = 'print')")
    return env


def printed(env: TableEnvironment, statement: str) -> str:
    with env.execute_sql(statement).collect() as rows:
        (row,) = rows
    return str(row[0])


@pytest.mark.parametrize(("query", "flinks"), MODES)
def test_the_kinds_of_rows_are_flinks(tables: TableEnvironment, query: str, flinks: str) -> None:
    text = printed(tables, f"EXPLAIN CHANGELOG_MODE {query}")
    assert text == tables.sql_query(query).explain(ExplainDetail.CHANGELOG_MODE)
    physical, execution = text.split("== Optimized Physical Plan ==\n")[1].split("\n== Optimized Execution Plan ==\n")
    modes = [re.fullmatch(r".*, changelogMode=\[([IUABD,]+)\]\)", line) for line in physical.splitlines()]
    assert all(modes)
    assert modes[0] is not None
    assert modes[0][1] == flinks.replace("UA", "UB,UA")
    assert "changelogMode" not in execution


def test_a_sink_gives_nothing_on(tables: TableEnvironment) -> None:
    first, second = "INSERT INTO sink SELECT k, 1 FROM t", "INSERT INTO sink SELECT k, COUNT(*) FROM t GROUP BY k"
    text = printed(tables, f"EXPLAIN CHANGELOG_MODE STATEMENT SET BEGIN {first}; {second}; END")
    assert text.count("fields=[k, EXPR$1], changelogMode=[NONE])\n") == 2
    assert "GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS EXPR$1], changelogMode=[I,UB,UA])" in text
    assert "Exchange(distribution=[hash[k]], changelogMode=[I])" in text
    statements = tables.create_statement_set().add_insert_sql(first).add_insert_sql(second)
    assert statements.explain(ExplainDetail.CHANGELOG_MODE) == text


def test_advice_and_costs(tables: TableEnvironment) -> None:
    grouped = "SELECT k, COUNT(*) AS c FROM t GROUP BY k"
    text = printed(tables, f"EXPLAIN PLAN_ADVICE, ESTIMATED_COST {grouped}")
    assert "== Optimized Physical Plan With Advice ==\nGroupAggregate(advice=[1], groupBy=[k]" in text
    assert "\nadvice[1]: [ADVICE] You might want to enable mini-batches" in text
    assert "\nNo estimated cost: plans are made by rules" in text
    assert text.endswith(tables.explain_sql(grouped).split("== Optimized Physical Plan ==")[1].split("\n\n", 1)[1])
    assert "No available advice..." in printed(tables, "EXPLAIN PLAN_ADVICE SELECT k FROM t")
    tables.execute_sql("SET 'table.exec.mini-batch.enabled' = 'true'")
    assert "No available advice..." in printed(tables, f"EXPLAIN PLAN_ADVICE {grouped}")


def test_without_details_it_is_the_plan(tables: TableEnvironment) -> None:
    query = "SELECT k, COUNT(*) AS c FROM t GROUP BY k"
    assert printed(tables, f"EXPLAIN PLAN FOR {query}") == printed(tables, f"EXPLAIN {query}")
    assert printed(tables, f"EXPLAIN {query}") == tables.explain_sql(query)


def test_operators_as_json(tables: TableEnvironment) -> None:
    text = printed(tables, "EXPLAIN CHANGELOG_MODE, JSON_EXECUTION_PLAN SELECT k FROM t")
    plan, _, operators = text.partition("\n== Physical Execution Plan ==\n")
    assert plan == tables.sql_query("SELECT k FROM t").explain(ExplainDetail.CHANGELOG_MODE)
    assert [node["pact"] for node in json.loads(operators)["nodes"]] == ["Data Source", "Operator"]


def test_tables_that_take_rows_back() -> None:
    env = environment()
    options = "'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'nowhere:1'"
    formats = "'key.format' = 'json', 'value.format' = 'json'"
    env.execute_sql(f"CREATE TABLE u (k INT, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH ({options}, {formats})")
    assert (
        "TableSourceScan(table=[[default_catalog, default_database, u]], fields=[k, v], changelogMode=[I,UB,UA,D])"
        in (env.explain_sql("SELECT k, v FROM u", ExplainDetail.CHANGELOG_MODE))
    )
