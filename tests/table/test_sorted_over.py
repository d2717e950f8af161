"""RANK, DENSE_RANK and LAG in another order than that of time: what stands at the end of a stream, and the changes."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import environment

from firesteel.table import TableEnvironment
from firesteel.table.sql import SqlError

PRICES = "VALUES ('tea', 4), ('ink', 9), ('pen', 4), ('cup', 7), ('jar', CAST(NULL AS INT)), ('pot', 7)"


@pytest.fixture
def prices() -> TableEnvironment:
    """Items with prices, some of which are equal."""
    env = environment()
    env.execute_sql(f"CREATE VIEW prices AS SELECT * FROM ({PRICES}) AS t (item, price)")
    return env


def table(env: TableEnvironment, query: str) -> dict[Any, Any]:
    """What stands at the end, by its first column."""
    return {row[0]: row[1] for row in env.sql_query(query).to_pandas().itertuples(index=False)}


@pytest.mark.parametrize(
    ("function", "order", "expected"),
    [
        ("RANK()", "price", {"jar": 1, "tea": 2, "pen": 2, "cup": 4, "pot": 4, "ink": 6}),
        ("RANK()", "price DESC", {"ink": 1, "cup": 2, "pot": 2, "tea": 4, "pen": 4, "jar": 6}),
        ("DENSE_RANK()", "price DESC", {"ink": 1, "cup": 2, "pot": 2, "tea": 3, "pen": 3, "jar": 4}),
        (
            "LAG(item)",
            "price, item",
            {"jar": None, "pen": "jar", "tea": "pen", "cup": "tea", "pot": "cup", "ink": "pot"},
        ),
        (
            "LAG(item, 4, '---')",
            "item",
            {"cup": "---", "ink": "---", "jar": "---", "pen": "---", "pot": "cup", "tea": "ink"},
        ),
    ],
)
def test_functions_of_the_place(prices: TableEnvironment, function: str, order: str, expected: dict[str, Any]) -> None:
    assert table(prices, f"SELECT item, {function} OVER (ORDER BY {order}) AS found FROM prices") == expected


def test_a_place_changes_with_the_rows_before(prices: TableEnvironment) -> None:
    query = "SELECT item, RANK() OVER (ORDER BY price DESC) FROM prices WHERE price <> 4"
    with prices.execute_sql(query).collect() as rows:
        assert [(str(row.get_row_kind()), *row) for row in rows] == [
            ("+I", "ink", 1),
            ("+I", "cup", 2),
            ("+I", "pot", 2),
        ]


def test_places_of_rows_that_are_taken_back(prices: TableEnvironment) -> None:
    counted = "SELECT n, RANK() OVER (ORDER BY n) FROM (SELECT price, COUNT(*) AS n FROM prices GROUP BY price)"
    found = prices.sql_query(counted).to_pandas()
    assert sorted(found.itertuples(index=False, name=None)) == [(1, 1), (1, 1), (2, 3), (2, 3)]


def test_the_best_with_ties(prices: TableEnvironment) -> None:
    ranked = "SELECT item, RANK() OVER (ORDER BY price DESC) AS place FROM prices"
    query = f"SELECT item, place FROM ({ranked}) WHERE place <= 2"
    assert table(prices, query) == {"ink": 1, "cup": 2, "pot": 2}


def test_the_clock_orders_rows_as_they_come(prices: TableEnvironment) -> None:
    query = "SELECT item, SUM(price) OVER (ORDER BY PROCTIME() ROWS 1 PRECEDING) AS found FROM prices WHERE price > 4"
    assert table(prices, query) == {"ink": 9, "cup": 16, "pot": 14}


def test_a_number_of_rows_may_be_a_power(prices: TableEnvironment) -> None:
    query = "SELECT item, COUNT(*) OVER (ORDER BY PROCTIME() ROWS POWER(2, 1) PRECEDING) AS found FROM prices"
    assert list(table(prices, query).values()) == [1, 2, 3, 3, 3, 3]


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("COUTN(price)", r"There is no function COUTN. Did you mean COUNT"),
        ("UPPER(item)", "UPPER is no aggregate, so it has no OVER"),
    ],
)
def test_what_is_no_aggregate_has_no_window(prices: TableEnvironment, function: str, told: str) -> None:
    with pytest.raises(SqlError, match=told):
        prices.execute_sql(f"SELECT {function} OVER (ORDER BY price) FROM prices")


def test_what_needs_rows_to_come_is_refused(prices: TableEnvironment) -> None:
    with pytest.raises(SqlError, match="LEAD needs rows that have not come yet"):
        prices.execute_sql("SELECT LEAD(item) OVER (ORDER BY price) FROM prices")
    with pytest.raises(SqlError, match="SUM with such a window is in the order of a time attribute"):
        prices.execute_sql("SELECT SUM(price) OVER (ORDER BY price ROWS 1 PRECEDING) FROM prices")
