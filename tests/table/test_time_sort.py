"""ORDER BY a time attribute on streams: rows in the order of time as the watermark passes them, through restarts."""

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings
from operatorkit import Change, OperatorRun

from firesteel.common import Configuration
from firesteel.runtime.operators.table import Order, TimeSort, TimeSortOperator
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.expressions import col
from firesteel.table.sql import SqlError

SCHEMA = pa.schema([("at", pa.int64()), ("word", pa.string()), ("id", pa.int64())])
ORDERS: dict[str, tuple[Order, ...]] = {
    "time": (),
    "time, word": (Order(1),),
    "time, word descending": (Order(1, ascending=False, nulls_first=False),),
}


class Reference:
    """Row by row: what waits, and the time of the last row that is out."""

    def __init__(self, order: tuple[Order, ...]) -> None:
        self._order = order
        self._waiting: list[tuple[Any, ...]] = []
        self._last = -(1 << 62)
        self.out: list[Change] = []

    def take(self, row: tuple[Any, ...]) -> None:
        if row[0] > self._last:
            self._waiting.append(row)

    def watermark(self, value: int) -> None:
        due = [row for row in self._waiting if row[0] <= value]
        self._waiting = [row for row in self._waiting if row[0] > value]
        for one in reversed(self._order):
            due.sort(key=lambda row: (row[1] is not None, row[1] or ""), reverse=not one.ascending)
        due.sort(key=lambda row: row[0])
        if due:
            self._last = due[-1][0]
        self.out += [(0, row) for row in due]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("row"), st.integers(0, 9), st.sampled_from(["a", "b", None])),
        st.tuples(st.just("watermark"), st.integers(0, 9), st.none()),
        st.tuples(st.just("restart"), st.none(), st.none()),
    ),
    max_size=40,
)


@pytest.mark.parametrize("order", ORDERS)
@given(STEPS)
@settings(max_examples=60)
def test_rows_come_in_the_order_of_time(order: str, steps: list[Any]) -> None:
    reference = Reference(ORDERS[order])
    got = OperatorRun(TimeSortOperator, TimeSort(0, ORDERS[order], SCHEMA, SCHEMA))
    reached = -1
    for number, (step, value, word) in enumerate(steps):
        if step == "row":
            row = (value, word, number)
            reference.take(row)
            got.take([(0, row)], SCHEMA)
        elif step == "watermark":
            reached = max(reached, value)
            reference.watermark(reached)
            got.watermark(reached)
        else:
            got.restart()
    reference.watermark(100)
    got.watermark(100)
    assert got.changes == reference.out


def test_a_row_that_is_behind_the_watermark_is_taken_until_a_later_one_is_out() -> None:
    got = OperatorRun(TimeSortOperator, TimeSort(0, (), SCHEMA, SCHEMA))
    got.take([(0, (3, "first", 0))], SCHEMA)
    got.watermark(7)
    got.take([(0, (5, "behind", 1)), (0, (3, "too late", 2))], SCHEMA)
    got.watermark(8)
    assert [row[1] for _, row in got.changes] == ["first", "behind"]


def environment() -> TableEnvironment:
    settings = EnvironmentSettings.new_instance().in_streaming_mode()
    memory = Configuration.from_dict({"firesteel.master": "memory", "parallelism.default": "2"})
    env = TableEnvironment.create(settings.with_configuration(memory).build())
    env.execute_sql("""
        CREATE TABLE t (
            n BIGINT, k AS MOD(n, 2), p AS PROCTIME(),
            at AS TIMESTAMPADD(SECOND, CAST(MOD(n * 7, 10) / 3 AS INT), TIMESTAMP '2024-01-01 12:00:00.000'),
            WATERMARK FOR at AS at - INTERVAL '10' SECOND
        ) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '9')
    """)
    return env


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT n FROM t ORDER BY at, n DESC", [6, 3, 0, 9, 5, 2, 8, 4, 1, 7]),
        ("SELECT n FROM t WHERE n > 4 ORDER BY at", [6, 5, 9, 8, 7]),
        ("SELECT n, at AS w FROM t ORDER BY w, k, n", [0, 6, 3, 2, 5, 9, 4, 8, 1, 7]),
        # An order inside means nothing without a limit, whatever it is by.
        ("SELECT n FROM (SELECT * FROM t ORDER BY n DESC) WHERE n < 3", [0, 1, 2]),
        ("SELECT n FROM t WHERE n < 3 ORDER BY p", [0, 1, 2]),
    ],
)
def test_queries(query: str, expected: list[int]) -> None:
    with environment().execute_sql(query).collect() as rows:
        assert [row[0] for row in rows] == expected


def test_what_comes_behind_goes_on_with_the_time() -> None:
    env = environment()
    env.create_temporary_view("ordered", env.sql_query("SELECT n, at FROM t ORDER BY at, n DESC"))
    query = "SELECT window_start, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE ordered, DESCRIPTOR(at), INTERVAL '2' SECOND)) "
    with env.execute_sql(query + "GROUP BY window_start, window_end").collect() as rows:
        assert [row[1] for row in rows] == [6, 4]
    with env.from_path("t").order_by(col("at"), col("n").desc).select(col("n")).execute().collect() as rows:
        assert [row[0] for row in rows] == [6, 3, 0, 9, 5, 2, 8, 4, 1, 7]
    assert "TemporalSort(orderBy=[at ASC, n DESC])\n+- Exchange(distribution=[single])" in env.explain_sql(
        "SELECT n, at FROM t ORDER BY at, n DESC"
    )


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT n FROM t ORDER BY at DESC", "ORDER BY needs a LIMIT, or begins with a time attribute"),
        ("SELECT n FROM t ORDER BY n, at", "ORDER BY needs a LIMIT, or begins with a time attribute"),
        ("SELECT n FROM t ORDER BY at OFFSET 3", "OFFSET needs a LIMIT in a stream"),
        (
            "SELECT window_time AS w FROM (SELECT window_time, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE t, "
            "DESCRIPTOR(at), INTERVAL '2' SECOND)) GROUP BY window_start, window_end, window_time) ORDER BY c",
            "ORDER BY needs a LIMIT",
        ),
    ],
)
def test_what_has_no_order(query: str, reason: str) -> None:
    with pytest.raises(SqlError, match=reason):
        environment().execute_sql(query)
