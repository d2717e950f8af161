"""What is refused when a statement is planned, as Flink refuses it, and where the error points."""

from __future__ import annotations

import pytest

from firesteel.common import Configuration
from firesteel.table import TableEnvironment
from firesteel.table.sql import SqlError


@pytest.mark.parametrize(
    ("query", "told", "marked"),
    [
        ("SELECT MAX(ROW(k, s)) FROM t", "MAX takes a value that has an order, got ROW<", "MAX(ROW(k, s))"),
        ("SELECT MIN(ARRAY[k]) FROM t", "MIN takes a value that has an order, got ARRAY<INT>", "MIN(ARRAY[k])"),
        ("SELECT MAX(MAP[k, s]) FROM t", "MAX takes a value that has an order, got MAP<INT, STRING>", "MAX(MAP[k, s])"),
        ("SELECT nope(k), COUNT(*) FROM t", "There is no function NOPE.", "nope(k)"),
        ("SELECT uper(s), COUNT(*) FROM t", r"There is no function UPER. Did you mean UPPER\?", "uper(s)"),
        ("SELECT UPPER(1)", r"UPPER\(INT NOT NULL\): the function is UPPER\(<STRING>\)", "UPPER(1)"),
        ("SELECT CHAR_LENGTH(k) FROM t", r"CHAR_LENGTH\(INT\): the function is", "CHAR_LENGTH(k)"),
        ("SELECT s LIKE 1 FROM t", "a LIKE b takes STRING values, got STRING, INT NOT NULL", "s LIKE 1"),
        ("SELECT URL_ENCODE(x'61')", r"URL_ENCODE\(BINARY\(1\) NOT NULL\)", "URL_ENCODE(x'61')"),
        ("SELECT 9223372036854775808", "9223372036854775808 is too large for a BIGINT", "9223372036854775808"),
        ("SELECT -9223372036854775809", "9223372036854775809 is too large for a BIGINT", "9223372036854775809"),
        ("SELECT ARRAY[1, 2][0]", "The elements of an array are counted from 1, got 0", "0"),
        ("SELECT ARRAY[1, 2][-1]", "The elements of an array are counted from 1, got -1", "-1"),
        (
            "SELECT /*+ STATE_TTL('tt' = '1h') */ k, COUNT(*) FROM t GROUP BY k",
            r"STATE_TTL: the query reads no table tt. Did you mean t\?",
            "STATE_TTL('tt' = '1h')",
        ),
        (
            "SELECT /*+ STATE_TTL('x' = '1h', 't' = '1h') */ x.k FROM t AS x JOIN t AS y ON x.k = y.k",
            "STATE_TTL: the query reads no table t.",
            "STATE_TTL('x' = '1h', 't' = '1h')",
        ),
        ("SHOW INDEXES", "Expected CREATE, CURRENT, CATALOGS, DATABASES, .* got INDEXES", "INDEXES"),
        ("SHOW CREATE DATABASE d", "Expected TABLE or VIEW or CATALOG, got DATABASE", "DATABASE"),
        ("INSERT INTO two SELECT k FROM t", r"two has 2 columns \(a, b\), the query 1 \(k\)", "SELECT k FROM t"),
        ("INSERT INTO two SELECT k, v FROM t", "Column b of .*two is STRING, the query gives DOUBLE", "v"),
        ("INSERT INTO two (b, a) SELECT s, v FROM t", "Column a of .*two is INT, the query gives DOUBLE", "v"),
        (
            "INSERT INTO two SELECT s, * FROM u",
            "Column a of .*two is INT, the query gives STRING",
            "SELECT s, * FROM u",
        ),
        ("CREATE TABLE x (a INT) PARTITIONED BY (b)", "partitioned by b, which is not a column of it", "(b)"),
        ("SELECT * FROM bare WHERE a > 1", "Table .*bare has no connector", "bare"),
        ("INSERT INTO bare SELECT k FROM t", "Table .*bare has no connector", "bare"),
        ("SELECT * FROM t JOIN odd ON t.k = odd.a", r"reading from connector 'kafak' .* Did you mean kafka\?", "odd"),
        ("INSERT INTO odd SELECT k FROM t", "writing to connector 'kafak'", "odd"),
        ("INSERT OVERWRITE two SELECT k, s FROM t", "INSERT OVERWRITE into .*: a stream has no end", "two"),
    ],
)
def test_errors_point_at_what_they_are_about(env: TableEnvironment, query: str, told: str, marked: str) -> None:
    env.execute_sql("CREATE TABLE two (a INT, b STRING) WITH ('connector' = 'blackhole')")
    env.execute_sql("CREATE TABLE bare (a INT)")
    env.execute_sql("CREATE TABLE odd (a INT) WITH ('connector' = 'kafak')")
    env.execute_sql("CREATE TEMPORARY VIEW u AS SELECT s FROM t")
    with pytest.raises(SqlError, match=told) as caught:
        env.execute_sql(query)
    assert caught.value.span is not None
    assert query[caught.value.span.start : caught.value.span.end] == marked


def test_every_insert_of_a_set_has_its_own_place(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE two (a INT, b STRING) WITH ('connector' = 'blackhole')")
    text = "EXECUTE STATEMENT SET BEGIN INSERT INTO two SELECT k, s FROM t; INSERT INTO two SELECT v, s FROM t; END"
    with pytest.raises(SqlError, match=r"Column a of .*two is INT, the query gives DOUBLE") as caught:
        env.execute_sql(text)
    assert caught.value.span is not None
    assert text[caught.value.span.start :].startswith("v, s FROM t")


def test_joins_with_versions_have_a_place_in_batch_mode() -> None:
    settings = {"firesteel.master": "memory", "execution.runtime-mode": "batch"}
    env = TableEnvironment.create(Configuration.from_dict(settings))
    options = "WITH ('connector' = 'datagen', 'number-of-rows' = '1')"
    env.execute_sql(f"CREATE TABLE o (c STRING, t TIMESTAMP(3), WATERMARK FOR t AS t) {options}")
    env.execute_sql(
        f"CREATE TABLE r (c STRING, t TIMESTAMP(3), WATERMARK FOR t AS t, PRIMARY KEY (c) NOT ENFORCED) {options}"
    )
    query = "SELECT o.c FROM o JOIN r FOR SYSTEM_TIME AS OF o.t ON r.c = o.c"
    with pytest.raises(SqlError, match="Not supported yet in batch mode: FOR SYSTEM_TIME") as caught:
        env.execute_sql(query)
    assert caught.value.span is not None
    assert query[caught.value.span.start : caught.value.span.end] == "o.t"


@pytest.mark.parametrize("call", ["IS_DIGIT(1)", "MD5(x'61')", "FROM_BASE64(x'5945')", "ELT(1, x'61')"])
def test_some_functions_of_text_take_more(env: TableEnvironment, call: str) -> None:
    env.execute_sql(f"SELECT {call}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT /*+ STATE_TTL('default_catalog.default_database.t' = '1h') */ k, COUNT(*) FROM t GROUP BY k",
        "SELECT /*+ STATE_TTL('q' = '1h') */ k, COUNT(*) FROM (SELECT * FROM t) AS q GROUP BY k",
        # Nothing has state there.
        "SELECT /*+ STATE_TTL('zz' = '1h') */ k FROM t",
    ],
)
def test_times_to_live_name_what_the_query_reads(env: TableEnvironment, query: str) -> None:
    env.explain_sql(query)
