"""What stands in a call where a table is meant: a query, with PARTITION BY or without; and times behind TO_CHANGELOG
and FROM_CHANGELOG, which go on."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import environment

from firesteel.table import TableEnvironment

TRIPS = """
    CREATE TABLE trips (
        n BIGINT,
        taxi AS MOD(n, 2),
        at AS TIMESTAMPADD(SECOND, CAST(n AS INT) * 4, TIMESTAMP '2024-05-01 00:00:00.000'),
        WATERMARK FOR at AS at
    ) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '5')
"""


@pytest.fixture
def trips() -> TableEnvironment:
    """Rides of two taxis in turns, one every four seconds."""
    env = environment()
    env.execute_sql(TRIPS)
    return env


def rows(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(query).collect() as found:
        return [tuple(row) for row in found]


def test_windows_of_a_query(trips: TableEnvironment) -> None:
    query = """
        SELECT COUNT(*), MIN(n) FROM TABLE(
            TUMBLE((SELECT * FROM trips WHERE n > 0), DESCRIPTOR(at), INTERVAL '10' SECOND)
        ) GROUP BY window_start, window_end
    """
    assert rows(trips, query) == [(2, 1), (2, 3), (1, 5)]


def test_sessions_of_a_query_by_key(trips: TableEnvironment) -> None:
    query = """
        SELECT taxi, COUNT(*) FROM TABLE(
            SESSION((SELECT taxi, at FROM trips WHERE n <> 2) PARTITION BY taxi, DESCRIPTOR(at), INTERVAL '9' SECOND)
        ) GROUP BY taxi, window_start, window_end
    """
    assert sorted(rows(trips, query)) == [(0, 1), (0, 1), (1, 3)]


def test_times_behind_to_changelog(trips: TableEnvironment) -> None:
    trips.execute_sql("CREATE VIEW changes AS SELECT taxi, n, at FROM TO_CHANGELOG(TABLE trips)")
    with trips.execute_sql("DESCRIBE changes").collect() as found:
        assert [row[1] for row in found] == ["INT", "BIGINT", "TIMESTAMP(3) *ROWTIME*"]
    before = "SELECT n, LAG(n) OVER (PARTITION BY taxi ORDER BY at) FROM changes"
    assert sorted(rows(trips, before)) == [(0, None), (1, None), (2, 0), (3, 1), (4, 2), (5, 3)]
    counted = """
        SELECT COUNT(*) FROM TUMBLE(TABLE changes, DESCRIPTOR(at), INTERVAL '10' SECOND)
        GROUP BY window_start, window_end
    """
    assert rows(trips, counted) == [(3,), (2,), (1,)]


@pytest.mark.parametrize("place", ["op, n, at", "n, op, at", "n, at, op"])
def test_times_behind_from_changelog(trips: TableEnvironment, place: str) -> None:
    told = "SELECT IF(n = 4, 'DELETE', 'INSERT') AS op, MOD(n, 4) AS n, at FROM trips"
    query = f"""
        SELECT SUM(n) FROM TUMBLE(
            (SELECT * FROM FROM_CHANGELOG((SELECT {place} FROM ({told})))), DESCRIPTOR(at), INTERVAL '30' SECOND
        ) GROUP BY window_start, window_end
    """
    assert rows(trips, query) == [(0 + 1 + 2 + 3 - 0 + 1,)]


@pytest.mark.parametrize("bound", ["CAST(1 AS BIGINT)", "2 - 1"])
def test_a_number_of_rows_may_be_computed(trips: TableEnvironment, bound: str) -> None:
    summed = f"SELECT SUM(n) OVER (ORDER BY at ROWS BETWEEN {bound} PRECEDING AND CURRENT ROW) FROM trips WHERE n < 4"
    assert rows(trips, summed) == [(0,), (1,), (3,), (5,)]
    back = f"SELECT LAG(n, {bound}) OVER (ORDER BY at) FROM trips WHERE n < 3"
    assert rows(trips, back) == [(None,), (0,), (1,)]
