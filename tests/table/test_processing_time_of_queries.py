"""NOW() and its like are the processing time of the micro-batch, which is logged: a batch that is done again gives the
same."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.datastream import DataStream, ProcessFunction, StreamExecutionEnvironment
from firesteel.table import Schema, StreamTableEnvironment
from firesteel.testing import Crash, ListSource, ProcessingTime, run_pipeline

DAY = 86_400_000
EARLY, LATE = 5_000, DAY + 9_123
STEPS = [ProcessingTime(EARLY), [1], ProcessingTime(LATE), [2]]


def query(sql: str, steps: list[Any] = STEPS, zone: str = "UTC") -> Callable[[StreamExecutionEnvironment], DataStream]:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        tables = StreamTableEnvironment.create(env)
        tables.get_config().set_local_timezone(zone)
        kind = Types.ROW_NAMED(["n"], [Types.INT()])
        numbers = env.from_source(ListSource(steps), WatermarkStrategy.no_watermarks(), "numbers")
        rows = numbers.map(lambda n: Row(n=n), output_type=kind)
        schema = Schema.new_builder().column("n", "INT").column_by_expression("p", "PROCTIME()").build()
        tables.create_temporary_view("e", tables.from_data_stream(rows, schema))
        return tables.to_changelog_stream(tables.sql_query(sql))

    return build


def values(sql: str, steps: list[Any] = STEPS, zone: str = "UTC") -> list[tuple[Any, ...]]:
    return [tuple(row) for row in run_pipeline(query(sql, steps, zone))]


def moment(milliseconds: int) -> str:
    return str(datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).replace(tzinfo=None))[:23]


@pytest.mark.parametrize("function", ["NOW()", "CURRENT_TIMESTAMP", "CURRENT_ROW_TIMESTAMP()", "PROCTIME()", "p"])
def test_moments(function: str) -> None:
    found = values(f"SELECT n, CAST({function} AS STRING) FROM e")
    assert found == [(1, "1970-01-01 00:00:05.000"), (2, "1970-01-02 00:00:09.123")]


def test_local_times() -> None:
    found = values(
        "SELECT CAST(LOCALTIMESTAMP AS STRING), CAST(LOCALTIME AS STRING), CAST(CURRENT_TIME AS STRING), "
        "CAST(CURRENT_DATE AS STRING), UNIX_TIMESTAMP() FROM e",
        zone="Asia/Tokyo",
    )
    assert found == [
        ("1970-01-01 09:00:05.000", "09:00:05", "09:00:05", "1970-01-01", 5),
        ("1970-01-02 09:00:09.123", "09:00:09", "09:00:09", "1970-01-02", 86_409),
    ]


def test_conditions_of_queries() -> None:
    assert values("SELECT n FROM e WHERE CURRENT_DATE > DATE '1970-01-01'") == [(2,)]
    # Row 2 meets both; what is asked on the second day is answered for the row of the first day, too.
    joined = "SELECT a.n, b.n FROM e AS a JOIN e AS b ON a.n <= b.n AND UNIX_TIMESTAMP() > 100"
    assert sorted(values(joined)) == [(1, 2), (2, 2)]
    grouped = "SELECT CAST(CURRENT_DATE AS STRING), COUNT(*) FROM e GROUP BY CURRENT_DATE"
    assert values(grouped) == [("1970-01-01", 1), ("1970-01-02", 1)]


def test_rows_that_are_made() -> None:
    made = "SELECT n, u FROM e CROSS JOIN UNNEST(ARRAY[UNIX_TIMESTAMP()]) AS t(u)"
    assert values(made) == [(1, 5), (2, 86_409)]


def test_patterns() -> None:
    """A condition on the row and the one before it, computed row by row."""
    sql = (
        "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY p MEASURES A.n AS a, B.n AS b, UNIX_TIMESTAMP() AS u PATTERN (A B) "
        "DEFINE B AS B.n > A.n AND UNIX_TIMESTAMP() = 86409)"
    )
    steps = [ProcessingTime(EARLY), [1, 2], ProcessingTime(LATE), [3, 4], ProcessingTime(LATE + DAY), []]
    assert values(sql, steps)[0] == (2, 3, 86_409)


class _Watched:
    """Notes what comes, also in tries that fail, and fails at the second row."""

    def __init__(self, path: Path, crash: Crash) -> None:
        self._path, self._crash = path, crash

    def __call__(self, row: Row) -> Row:
        with self._path.open("a") as file:
            file.write(f"{tuple(row)}\n")
        if row[0] == 2:
            self._crash.hit()
        return row


def test_a_batch_that_is_done_again(tmp_path: Path) -> None:
    seen, crash = tmp_path / "seen", Crash()
    sql = "SELECT n, CAST(NOW() AS STRING), UNIX_TIMESTAMP() FROM e"

    found = run_pipeline(lambda env: query(sql)(env).map(_Watched(seen, crash)), restarts=1)

    assert crash.count == 1
    first, again = (line for line in seen.read_text().splitlines() if line.startswith("(2,"))
    assert first == again == f"(2, '{moment(LATE)}', 86409)"
    assert tuple(found[-1]) == (2, moment(LATE), 86_409)


def test_random_numbers_of_a_seed() -> None:
    """Java's; the sequence begins anew with each batch of rows."""
    found = values("SELECT RAND(42), RAND_INTEGER(42, 100) FROM e", [[1, 2], [3]])
    assert found[0] == found[2] == (0.7275636800328681, 30)
    assert [row[1] for row in found] == [30, 63, 30]
    assert len(set(values("SELECT RAND_INTEGER(n, 1000000) FROM e", [[1, 2, 3]]))) == 3


class _Watermarks(ProcessFunction):
    def process_element(self, value: Row, ctx: ProcessFunction.Context) -> Iterator[int]:
        yield ctx.timer_service().current_watermark()


def test_watermarks() -> None:
    """An expression over rows may ask for the time, too."""

    def build(env: StreamExecutionEnvironment) -> DataStream:
        tables = StreamTableEnvironment.create(env)
        numbers = env.from_source(ListSource(STEPS), WatermarkStrategy.no_watermarks(), "numbers")
        rows = numbers.map(lambda n: Row(n=n), output_type=Types.ROW_NAMED(["n"], [Types.INT()]))
        schema = (
            Schema.new_builder()
            .column("n", "INT")
            .column_by_expression("t", "TO_TIMESTAMP_LTZ(n, 0)")
            .watermark("t", "TO_TIMESTAMP_LTZ(UNIX_TIMESTAMP() - 100, 0)")
            .build()
        )
        tables.create_temporary_view("e", tables.from_data_stream(rows, schema))
        return tables.to_data_stream(tables.from_path("e")).process(_Watermarks())

    # The second batch still sees that of the first one.
    assert run_pipeline(build)[-1] == EARLY - 100_000
