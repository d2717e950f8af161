"""Lookup joins: a connector is asked for the keys of a batch together, and its answers are remembered if wanted."""

from typing import Any

import pyarrow as pa
import pytest
from conftest import environment
from operatorkit import OperatorRun

from firesteel.connectors.table.lookup import LookupCache, LookupTable
from firesteel.runtime.operators.table import LookupJoin, LookupJoinOperator
from firesteel.runtime.operators.table.lookup_join import AnswerCache
from firesteel.table import TableEnvironment
from firesteel.table.physical import lookups
from firesteel.table.sql.errors import NotSupportedError, SqlError

LEFT = pa.schema([("word", pa.string()), ("id", pa.int64())])
RIGHT = pa.schema([("id", pa.int64()), ("colour", pa.string())])
BOTH = pa.schema([*LEFT, pa.field("id0", pa.int64()), pa.field("colour", pa.string())])
COLOURS = [(1, "red"), (2, "blue"), (2, "navy"), (4, "green")]
ASKED: list[list[Any]] = []
"""The keys of each question."""


class Colours(LookupTable):
    def __init__(self, misses: int = 0) -> None:
        self._misses = misses
        """How often nothing is found."""

    def lookup(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        wanted = keys.column("id").to_pylist()
        ASKED.append(wanted)
        self._misses -= 1
        rows = [row for row in COLOURS if row[0] in wanted] if self._misses < 0 else []
        return pa.RecordBatch.from_pylist([dict(zip(RIGHT.names, row, strict=True)) for row in rows], RIGHT)


@pytest.fixture(autouse=True)
def asked() -> list[list[Any]]:
    ASKED.clear()
    return ASKED


def joined(rows: list[Any], kind: str = "INNER", **options: Any) -> list[Any]:
    """The join of each list of rows, one batch after the other."""
    table = options.pop("table", None) or Colours()
    got = OperatorRun(LookupJoinOperator, LookupJoin(kind, (1,), (0,), LEFT, RIGHT, BOTH, table, **options))
    for batch in rows:
        got.take(batch, LEFT)
    return got.changes


def test_each_key_of_a_batch_is_asked_for_once() -> None:
    rows = [(0, ("a", 2)), (0, ("b", 1)), (1, ("c", 2)), (0, ("d", None)), (0, ("e", 3))]
    assert joined([rows]) == [
        (0, ("a", 2, 2, "blue")),
        (0, ("a", 2, 2, "navy")),
        (0, ("b", 1, 1, "red")),
        (1, ("c", 2, 2, "blue")),
        (1, ("c", 2, 2, "navy")),
    ]
    assert ASKED == [[2, 1, 3]]


def test_a_left_join_has_rows_without_an_answer() -> None:
    assert joined([[(0, ("e", 3)), (0, ("a", 1)), (3, ("d", None))]], "LEFT") == [
        (0, ("e", 3, None, None)),
        (0, ("a", 1, 1, "red")),
        (3, ("d", None, None, None)),
    ]


def test_answers_are_remembered() -> None:
    rows = [[(0, ("a", 1)), (0, ("b", 3))], [(0, ("c", 1)), (0, ("d", 3)), (0, ("e", 4))]]
    joined(rows, cache=LookupCache())
    assert ASKED == [[1, 3], [4]]
    ASKED.clear()
    joined(rows, cache=LookupCache(cache_missing_key=False))
    assert ASKED == [[1, 3], [3, 4]]
    ASKED.clear()
    joined(rows)
    assert ASKED == [[1, 3], [1, 3, 4]]


def test_what_is_remembered_is_forgotten_in_time() -> None:
    now = 0
    cache = AnswerCache(LookupCache(2, expire_after_write=10, expire_after_access=4), lambda: now)
    cache.put((1,), "one")
    cache.put((2,), "two")
    now = 3
    assert cache.get((1,)) == "one"
    now = 5
    # Nobody asked for two; one was asked for.
    assert (cache.get((2,)), cache.get((1,))) == (None, "one")
    now = 8
    assert cache.get((1,)) == "one"
    now = 10
    assert cache.get((1,)) is None
    for key in range(3):
        cache.put((key,), key)
    assert [cache.get((key,)) for key in range(3)] == [None, 1, 2]


def test_a_missing_row_is_asked_for_again() -> None:
    rows = [[(0, ("a", 1)), (0, ("b", 3))]]
    assert joined(rows, table=Colours(misses=1), attempts=3) == [(0, ("a", 1, 1, "red"))]
    assert ASKED == [[1, 3], [1, 3], [3]]


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> TableEnvironment:
    monkeypatch.setitem(lookups._LOOKUPS, "colours", lambda table, path: Colours())
    made = environment()
    made.execute_sql("""
        CREATE TABLE orders (n BIGINT, word AS CONCAT('w', CAST(n AS STRING)), at AS PROCTIME()) WITH (
            'connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '4')
    """)
    made.execute_sql("CREATE TABLE colours (id BIGINT, colour STRING) WITH ('connector' = 'colours', 'x' = '1')")
    return made


def rows_of(env: TableEnvironment, query: str) -> list[Any]:
    with env.execute_sql(query).collect() as rows:
        return sorted(map(tuple, rows), key=str)


def test_sql(env: TableEnvironment) -> None:
    join = "JOIN colours FOR SYSTEM_TIME AS OF o.at AS c ON"
    assert rows_of(env, f"SELECT o.word, c.colour FROM orders AS o {join} o.n = c.id") == [
        ("w1", "red"),
        ("w2", "blue"),
        ("w2", "navy"),
        ("w4", "green"),
    ]
    # What is no key is a condition; a key may be computed.
    query = f"SELECT o.word, c.colour, c.id FROM orders AS o LEFT {join} o.n - 1 = c.id AND c.colour < o.word || 'x'"
    assert rows_of(env, f"{query} AND c.colour <> 'navy'") == [
        ("w1", None, None),
        ("w2", "red", 1),
        ("w3", "blue", 2),
        ("w4", None, None),
    ]


def test_what_the_table_computes_is_worked_out_of_the_answers(env: TableEnvironment) -> None:
    env.execute_sql("""
        CREATE TABLE shades (
            id BIGINT, colour STRING, shade AS CONCAT('dark ', COALESCE(colour, 'none')), twice AS id * 2
        ) WITH ('connector' = 'colours')
    """)
    join = "JOIN shades FOR SYSTEM_TIME AS OF o.at AS c ON o.n = c.id"
    assert rows_of(env, f"SELECT o.word, c.shade FROM orders AS o {join} AND c.twice > 2") == [
        ("w2", "dark blue"),
        ("w2", "dark navy"),
        ("w4", "dark green"),
    ]
    # Where there is no answer, nothing is computed of it.
    assert rows_of(env, f"SELECT o.word, c.shade, c.twice FROM orders AS o LEFT {join} AND c.shade <> 'dark navy'") == [
        ("w1", "dark red", 2),
        ("w2", "dark blue", 4),
        ("w3", None, None),
        ("w4", "dark green", 8),
    ]


@pytest.mark.parametrize("kind", ["", "LEFT"])
def test_a_view_of_columns_and_conditions_is_looked_up(env: TableEnvironment, kind: str) -> None:
    query = f"""
        WITH bright AS (SELECT UPPER(colour) AS name, id AS number FROM colours WHERE colour <> 'navy')
        SELECT o.word, b.name FROM orders AS o
        {kind} JOIN bright FOR SYSTEM_TIME AS OF o.at AS b ON o.n = b.number AND b.name <> 'RED'
    """
    without = [("w1", None), ("w3", None)] if kind else []
    assert rows_of(env, query) == sorted([("w2", "BLUE"), ("w4", "GREEN"), *without])
    assert ASKED == [[1, 2, 3, 4]]


def test_a_constant_is_a_key_too(env: TableEnvironment) -> None:
    join = "JOIN colours FOR SYSTEM_TIME AS OF o.at AS c ON"
    assert rows_of(env, f"SELECT o.word, c.colour FROM orders AS o {join} c.id = 2 AND o.word > 'w3'") == [
        ("w4", "blue"),
        ("w4", "navy"),
    ]
    assert ASKED[-1] == [2]


def test_a_cast_that_makes_values_equal_is_no_key(env: TableEnvironment) -> None:
    join = "JOIN colours FOR SYSTEM_TIME AS OF o.at AS c ON"
    query = f"SELECT o.word, c.colour FROM orders AS o {join} c.id = 4 AND CAST(c.id AS BOOLEAN) = (o.n > 3)"
    assert rows_of(env, query) == [("w4", "green")]
    with pytest.raises(SqlError, match="A lookup needs a condition"):
        env.execute_sql(f"SELECT o.word FROM orders AS o {join} CAST(c.id AS TINYINT) = o.n")


def test_a_hint_asks_again(env: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lookups._LOOKUPS, "colours", lambda table, path: Colours(misses=1))
    hint = "LOOKUP('table' = 'c', 'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay'"
    query = (
        f"SELECT /*+ {hint}, 'fixed-delay' = '1 ms', 'max-attempts' = '1') */ o.word FROM orders AS o "
        "JOIN colours FOR SYSTEM_TIME AS OF o.at AS c ON o.n = c.id"
    )
    assert rows_of(env, query) == [("w1",), ("w2",), ("w2",), ("w4",)]
    assert ASKED == [[1, 2, 3, 4], [1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("JOIN orders FOR SYSTEM_TIME AS OF o.at AS c ON o.n = c.n", "cannot be asked for keys"),
        ("JOIN counts FOR SYSTEM_TIME AS OF o.at AS c ON o.n = c.n", "not a view of more than"),
        ("JOIN colours FOR SYSTEM_TIME AS OF o.at AS c ON o.n < c.id", "A lookup needs a condition"),
        ("JOIN colours FOR SYSTEM_TIME AS OF o.n AS c ON o.n = c.id", "takes a time attribute"),
        ("RIGHT JOIN colours FOR SYSTEM_TIME AS OF o.at AS c ON o.n = c.id", "INNER or LEFT"),
        ("JOIN plain FOR SYSTEM_TIME AS OF o.at AS c ON o.n = c.id", "cannot be asked for keys"),
        ("JOIN full_cache FOR SYSTEM_TIME AS OF o.at AS c ON o.n = c.id", "'lookup.cache' is NONE or PARTIAL"),
        ("JOIN bad_cache FOR SYSTEM_TIME AS OF o.at AS c ON o.n = c.id", "max-rows' should be a whole number"),
    ],
)
def test_what_cannot_be_looked_up_is_refused(env: TableEnvironment, query: str, expected: str) -> None:
    env.execute_sql("CREATE TABLE plain (id BIGINT) WITH ('connector' = 'datagen')")
    env.execute_sql("CREATE VIEW counts AS SELECT id, COUNT(*) AS n FROM colours GROUP BY id")
    env.execute_sql("CREATE TABLE full_cache (id BIGINT) WITH ('connector' = 'colours', 'lookup.cache' = 'FULL')")
    options = "'lookup.cache' = 'partial', 'lookup.partial-cache.max-rows' = 'many'"
    env.execute_sql(f"CREATE TABLE bad_cache (id BIGINT) WITH ('connector' = 'colours', {options})")
    with pytest.raises((SqlError, NotSupportedError)) as caught:
        env.execute_sql(f"SELECT o.word FROM orders AS o {query}")
    assert expected in str(caught.value)
