"""Queries inside queries and set operations over random rows with NULLs: the same table as SQLite gives."""

import random
import sqlite3
from collections import Counter
from typing import Any

import pytest
from conftest import environment

from firesteel.common.types import RowKind
from firesteel.table import DataTypes, TableEnvironment

QUERIES = [
    "SELECT k, v FROM t WHERE k IN (SELECT k FROM u)",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT k FROM u)",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)",
    "SELECT k, v FROM t WHERE (k, v) NOT IN (SELECT k, w FROM u)",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT k FROM u WHERE u.w = t.v)",
    "SELECT k, v FROM t WHERE k IN (SELECT k FROM u WHERE u.w > t.v)",
    "SELECT k, v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w <> t.v)",
    "SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w >= t.v)",
    "SELECT k, v FROM t WHERE EXISTS (SELECT k FROM u WHERE u.k = t.k GROUP BY k HAVING COUNT(*) > 1)",
    "SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u AS a JOIN u AS b ON a.k = b.w WHERE a.w = t.v)",
    "SELECT k, v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w IN (SELECT v FROM t AS i WHERE i.k > 1))",
    "SELECT k, v, (SELECT MAX(w) FROM u WHERE u.k = t.k) AS m FROM t",
    "SELECT k, v, (SELECT COUNT(*) FROM u WHERE u.k = t.k) AS m FROM t",
    "SELECT k, v, (SELECT COUNT(w) + 1 FROM u WHERE u.k = t.k AND u.w > 1) AS m FROM t",
    "SELECT k, v, (SELECT COALESCE(SUM(w), -1) FROM u WHERE u.k = t.k AND u.w = t.v) AS m FROM t",
    "SELECT k, v FROM t WHERE v = (SELECT MIN(w) FROM u WHERE u.k = t.k)",
    "SELECT k, v FROM t WHERE v > (SELECT MIN(w) FROM u) OR k IN (SELECT w FROM u)",
    "SELECT k, v FROM t WHERE v > 2 OR k NOT IN (SELECT w FROM u)",
    "SELECT k, v, k IN (SELECT k FROM u WHERE u.w = t.v) AS i FROM t",
    "SELECT k, v, k IN (SELECT w FROM u) AS i FROM t",
    "SELECT k, v, EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS i FROM t",
    "SELECT k, COUNT(*) AS c, (SELECT SUM(w) FROM u WHERE u.k = t.k) AS m FROM t GROUP BY k",
    "SELECT k, COUNT(*) AS c FROM t GROUP BY k HAVING COUNT(*) >= (SELECT COUNT(*) FROM u WHERE u.k = t.k)",
    "SELECT k, v FROM t WHERE EXISTS (SELECT t.k IS NULL FROM u WHERE u.k = t.k)",
    "SELECT k, v FROM t WHERE NOT EXISTS (SELECT t.k + 1 FROM u WHERE u.w = t.v)",
    "SELECT k, v, EXISTS (SELECT t.v FROM u WHERE u.k = t.k) AS i FROM t",
    "SELECT k, v FROM t WHERE k IN (SELECT COUNT(*) FROM u WHERE u.k = t.v)",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT COUNT(*) FROM u WHERE u.k = t.v)",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT m - 1 FROM (SELECT MAX(w) AS m FROM u WHERE u.k = t.v) AS a)",
    "SELECT k, v, (k, v) IN (SELECT MIN(k), COUNT(*) FROM u WHERE u.w = t.v) AS i FROM t",
    "SELECT k, v FROM t WHERE (SELECT COUNT(*) FROM u WHERE (u.k = t.k AND w > 1) OR (u.k = t.k AND w IS NULL)) > 0",
    "SELECT k, v FROM t WHERE k IN (SELECT a.k FROM u a RIGHT JOIN (SELECT w FROM u WHERE k = t.v) b ON a.k = b.w)",
    "SELECT k, v FROM t WHERE EXISTS (SELECT 1 FROM t a RIGHT JOIN (SELECT w FROM u WHERE k = t.k) b ON a.v > b.w)",
    "SELECT t.k, u.w FROM t, u WHERE (t.k = u.k AND t.v > 1) OR (t.k = u.k AND u.w > 2) OR (u.w = t.v AND t.k = u.k)",
    "SELECT t.k, u.w FROM t LEFT JOIN u ON (t.k = u.k AND t.v > 2) OR (t.k = u.k AND u.w > 3)",
    "SELECT t.k, u.w FROM t LEFT JOIN u ON (t.k = u.k AND t.v > 2) OR t.k = u.k",
    "SELECT k, v FROM t INTERSECT SELECT k, w FROM u",
    "SELECT k, v FROM t EXCEPT SELECT k, w FROM u",
    "SELECT k FROM t EXCEPT SELECT k FROM u UNION SELECT w FROM u WHERE w > 2",
]

OTHERWISE = {
    "SELECT k, v FROM t WHERE k > ALL (SELECT w FROM u)": "NOT EXISTS (SELECT 1 FROM u WHERE NOT COALESCE(t.k > w, 0))",
    "SELECT k, v FROM t WHERE k <= ANY (SELECT w FROM u)": "EXISTS (SELECT 1 FROM u WHERE t.k <= u.w)",
    "SELECT k, v FROM t WHERE NOT (k < ANY (SELECT w FROM u))": (
        "NOT EXISTS (SELECT 1 FROM u WHERE COALESCE(t.k < w, 1))"
    ),
    "SELECT k, v FROM t WHERE k <> SOME (SELECT w FROM u)": "EXISTS (SELECT 1 FROM u WHERE t.k <> u.w)",
    "SELECT k, v FROM t WHERE k = ALL (SELECT w FROM u)": "NOT EXISTS (SELECT 1 FROM u WHERE NOT COALESCE(t.k = w, 0))",
    "SELECT k, v FROM t WHERE v >= ALL (SELECT w FROM u WHERE u.k = t.k)": (
        "NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND NOT COALESCE(t.v >= u.w, 0))"
    ),
    "SELECT k, v FROM t WHERE k < ALL (SELECT w FROM u WHERE w > 9)": "TRUE",
    "SELECT k, v FROM t WHERE k < ANY (SELECT w FROM u WHERE w > 9)": "FALSE",
}
"""Comparisons that SQLite does not have, and the condition that means the same there."""


def tables(seed: int) -> tuple[TableEnvironment, sqlite3.Connection]:
    """The same two tables in both."""
    chance = random.Random(seed)
    env, database = environment(), sqlite3.connect(":memory:")
    for name, column in (("t", "v"), ("u", "w")):
        values = [None, 1, 2, 3] if seed % 2 else [1, 2, 3]
        rows = [(chance.choice(values), chance.choice(values)) for _ in range(chance.randrange(3, 9))]
        fields = [DataTypes.FIELD(each, DataTypes.INT()) for each in ("k", column)]
        env.create_temporary_view(name, env.from_elements(rows, DataTypes.ROW(fields)))
        database.execute(f"CREATE TABLE {name} (k INT, {column} INT)")
        database.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
    return env, database


def final(env: TableEnvironment, query: str) -> Counter[Any]:
    rows: Counter[Any] = Counter()
    with env.execute_sql(query).collect() as found:
        for row in found:
            # SQLite has no BOOLEAN.
            plain = tuple(int(value) if isinstance(value, bool) else value for value in row)
            rows[plain] += 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
    return +rows


@pytest.mark.parametrize("seed", range(4))
def test_the_same_table(seed: int) -> None:
    env, database = tables(seed)
    for query in QUERIES:
        assert final(env, query) == Counter(database.execute(query).fetchall()), query


@pytest.mark.parametrize("seed", range(4))
def test_comparisons_with_all_and_any(seed: int) -> None:
    env, database = tables(seed)
    for query, condition in OTHERWISE.items():
        expected = database.execute(f"SELECT k, v FROM t WHERE {condition}").fetchall()
        assert final(env, query) == Counter(expected), query
