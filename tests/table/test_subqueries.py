"""Queries inside expressions, set operations, NATURAL JOIN and USING, hints: what is planned, and what is refused.
Results are compared with PyFlink's in test_joins_of_pyflink.py."""

from collections import Counter
from typing import Any

import pytest

from firesteel.common.types import RowKind
from firesteel.table import DataTypes, TableEnvironment
from firesteel.table.expressions import col
from firesteel.table.sql.errors import SqlError
from firesteel.table.table import Table


@pytest.fixture(autouse=True)
def more(env: TableEnvironment) -> None:
    """A second table u of three rows: k INT, w BIGINT."""
    row = DataTypes.ROW([DataTypes.FIELD("k", DataTypes.INT()), DataTypes.FIELD("w", DataTypes.BIGINT())])
    env.create_temporary_view("u", env.from_elements([(1, 5), (1, 6), (7, 1)], row))


def final(result: Table) -> Counter[Any]:
    """The rows that are left in the end."""
    rows: Counter[Any] = Counter()
    with result.execute().collect() as found:
        for row in found:
            rows[tuple(row)] += 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
    return +rows


def test_a_condition_is_a_semi_or_anti_join(env: TableEnvironment) -> None:
    plan = env.explain_sql(
        "SELECT s FROM t WHERE k IN (SELECT k FROM u) AND NOT EXISTS (SELECT 1 FROM u WHERE w = t.k)"
    )
    assert "Join(joinType=[LeftSemiJoin], where=[(k = k0)]" in plan
    assert "Join(joinType=[LeftAntiJoin], where=[($k0 = w)]" in plan


def test_a_table_in_a_condition(env: TableEnvironment) -> None:
    t, u = env.from_path("t"), env.from_path("u")
    keys = u.select(col("k"))
    assert final(t.where(col("k").in_(keys)).select(col("s"))) == Counter([("a",), ("c",)])
    assert final(t.select(col("s"), col("k").in_(keys).alias("i"))) == Counter(
        [("a", True), ("b", False), ("c", True), ("d", None)]
    )


def test_set_operations_of_tables(env: TableEnvironment) -> None:
    t, u = env.from_path("t").select(col("k")), env.from_path("u").select(col("k"))
    assert final(t.intersect(u)) == Counter([(1,)])
    assert final(t.intersect_all(u)) == Counter([(1,), (1,)])
    assert final(t.minus(u)) == Counter([(2,), (None,)])
    assert final(t.minus_all(u)) == Counter([(2,), (None,)])
    assert final(u.minus_all(t)) == Counter([(7,)])
    with pytest.raises(SqlError, match=r"minus\(\): 1 columns and 2 columns do not go together"):
        t.minus(env.from_path("u"))


def test_columns_of_using_are_one_and_have_those_of_both_sides_behind_them(env: TableEnvironment) -> None:
    query = "SELECT {} FROM t JOIN u USING (k) LEFT JOIN (SELECT k + 0 AS k, w AS x FROM u) AS z USING (k)"
    whole = env.sql_query(query.format("*"))
    assert whole.get_schema().get_field_names() == ["k", "s", "v", "w", "x"]
    assert env.sql_query(query.format("t.*, z.x")).get_schema().get_field_names() == ["k", "s", "v", "x"]
    found = final(env.sql_query(query.format("k, t.k AS a, u.k AS b, z.k AS c, s")))
    assert found == Counter({(1, 1, 1, 1, "a"): 4, (1, 1, 1, 1, "c"): 4})
    with pytest.raises(SqlError, match="is in t and z"):
        env.sql_query("SELECT k FROM t JOIN u AS z ON t.k = z.k")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT s FROM t WHERE k IN (SELECT k, w FROM u)", "IN compares 1 values with a query of 2 columns"),
        ("SELECT (SELECT k, w FROM u) FROM t", "has one column, this one has 2"),
        ("SELECT s FROM t WHERE k IN (SELECT nothing FROM u)", "There is no column nothing"),
        ("SELECT s FROM t WHERE s IN (SELECT ARRAY[1])", "cannot be compared"),
        ("SELECT COUNT(*) FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE w > t.v)", "the groups do not have"),
        ("SELECT (SELECT MAX(w) FROM u WHERE w > t.v) FROM t", "not an equality, below an aggregate"),
        ("SELECT (SELECT t.v FROM u) FROM t", "outside of WHERE"),
        ("SELECT s FROM t JOIN u ON t.k = u.k AND t.k IN (SELECT k FROM u)", "IN with a query inside ON"),
        (
            "SELECT s FROM t JOIN u ON EXISTS (SELECT 1 FROM u AS o WHERE o.k = t.k)",
            "refers to the tables that are joined",
        ),
        ("SELECT SUM((SELECT 1)) FROM t", "a query inside GROUP BY or an aggregate"),
        ("SELECT s FROM t WHERE k > ALL (SELECT k, w FROM u)", "one value with a query of 2 columns"),
        ("SELECT * FROM t JOIN u USING (s)", "s is not a column that both sides have"),
        ("SELECT k FROM t INTERSECT SELECT k, w FROM u", "INTERSECT: 1 columns and 2 columns"),
        ("SELECT /*+ STATE_TTL('t' = 'soon') */ t.s FROM t JOIN u ON t.k = u.k", "STATE_TTL: 'soon' is not a duration"),
        ("SELECT /*+ STATE_TTL(t) */ t.s FROM t JOIN u ON t.k = u.k", "STATE_TTL takes tables and times"),
        ("SELECT /*+ OPTIONS('a' = 'b') */ s FROM t", "OPTIONS is a hint of a table"),
        ("SELECT s FROM t FOR SYSTEM_TIME AS OF k", "on the right side of a join"),
    ],
)
def test_what_is_refused_says_why(query: str, expected: str, env: TableEnvironment) -> None:
    with pytest.raises(SqlError) as caught:
        env.execute_sql(query)
    assert expected in str(caught.value)


def test_an_unknown_hint_is_a_warning(env: TableEnvironment) -> None:
    with pytest.warns(UserWarning, match=r"There is no hint STAT_TTL. Did you mean STATE_TTL\?"):
        env.sql_query("SELECT /*+ STAT_TTL('t' = '1d') */ s FROM t")


def test_state_lives_as_long_as_a_hint_or_the_configuration_says(env: TableEnvironment) -> None:
    env.get_config().set("table.exec.state.ttl", "5 s")

    def specs(query: str) -> dict[str, Any]:
        streams, planner = env._planner()
        planner.stream(env.sql_query(query)._plan)
        given = [getattr(node.spec, "spec", None) for node in streams._program.nodes()]
        return {type(spec).__name__: spec.state_ttl for spec in given if hasattr(spec, "state_ttl")}

    hint = "/*+ STATE_TTL('t' = '1 min', 'x' = '0 ms') */"
    assert specs(f"SELECT {hint} t.s FROM t JOIN u AS x ON t.k = x.k") == {"Join": (60_000, None)}
    assert specs("SELECT t.s FROM t JOIN u ON t.k = u.k") == {"Join": (5_000, 5_000)}
    assert specs(f"SELECT {hint} t.s FROM t, u AS x WHERE t.k = x.k") == {"Join": (60_000, None)}
    of_groups = "SELECT /*+ STATE_TTL('t' = '1 min') */ k, COUNT(*) FROM t GROUP BY k"
    assert specs(of_groups) == {"GroupAggregate": 60_000}
    assert specs("SELECT k, COUNT(*) FROM u GROUP BY k") == {"GroupAggregate": 5_000}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT t.s, o.w FROM t, LATERAL (SELECT w FROM u WHERE k = t.k ORDER BY w DESC LIMIT 1) AS o",
            [("a", 6), ("c", 6)],
        ),
        ("SELECT t.s, o.n FROM t, LATERAL (SELECT COUNT(*) AS n FROM u WHERE k = t.k) AS o", [("a", 2), ("c", 2)]),
        ("SELECT 5. / 2 AS n", [(2,)]),
    ],
)
def test_what_refers_to_the_row_before_it(env: TableEnvironment, query: str, expected: list[Any]) -> None:
    assert final(env.sql_query(query)) == Counter(expected)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("EXISTS (SELECT 1 FROM u, UNNEST(ARRAY[w, 7]) AS made (n) WHERE u.k = t.k AND n > 6)", ["a", "c"]),
        ("NOT EXISTS (SELECT 1 FROM u, UNNEST(ARRAY[w, 7]) AS made (n) WHERE u.k = t.k)", ["b", "d"]),
        ("k + 5 IN (SELECT n FROM u, UNNEST(ARRAY[w, 7]) AS made (n) WHERE u.k = t.k)", ["a", "c"]),
    ],
)
def test_rows_that_are_made_inside_a_query(env: TableEnvironment, condition: str, expected: list[str]) -> None:
    assert final(env.sql_query(f"SELECT s FROM t WHERE {condition}")) == Counter((s,) for s in expected)


def test_what_the_branches_of_a_condition_have_in_common_is_a_key(env: TableEnvironment) -> None:
    plan = env.explain_sql("SELECT s FROM t JOIN u ON (t.k = u.k AND v > 1) OR (w > 1 AND t.k = u.k)")
    assert "where=[((k = k0)" not in plan
    assert "Exchange(distribution=[hash[k]])" in plan


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT s FROM t RIGHT JOIN LATERAL (SELECT w FROM u WHERE k = t.k) AS o ON TRUE",
            "RIGHT JOIN cannot be used",
        ),
        ("SELECT s FROM t JOIN LATERAL (SELECT w FROM u WHERE k = t.k) AS o", "JOIN needs a condition"),
        ("SELECT s FROM t, LATERAL (SELECT t.k + w FROM u) AS o", "a column of the query around outside of WHERE"),
        ("SELECT s FROM t, LATERAL (SELECT COUNT(*) FROM u WHERE w > t.v) AS o", "not an equality, below an aggregate"),
        ("SELECT k, COUNT(*) FROM t GROUP BY k QUALIFY ROW_NUMBER() OVER (ORDER BY k) = 1", "in QUALIFY where there"),
        ("SELECT 1 OVERLAPS 2", r"OVERLAPS takes periods: \(start, end\), or \(start, interval\)"),
    ],
)
def test_what_cannot_be_asked_of_each_row(env: TableEnvironment, query: str, reason: str) -> None:
    with pytest.raises(SqlError, match=reason) as caught:
        env.execute_sql(query)
    assert "(line 1, column " in str(caught.value)
