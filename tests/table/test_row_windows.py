"""Windows of a number of rows in the Table API: PyFlink 2.3 gave these rows for the same programs."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import SETTINGS, environment

from firesteel.common import Configuration
from firesteel.errors import FiresteelError, ProgramError
from firesteel.table import EnvironmentSettings, Table, TableEnvironment
from firesteel.table.expressions import col, lit, row_interval
from firesteel.table.udf import udaf
from firesteel.table.window import GroupWindow, Session, Slide, Tumble

NUMBERS = """CREATE TABLE t (n BIGINT, k AS MOD(n, 2), p AS PROCTIME(),
    ts AS TIMESTAMPADD(SECOND, CAST(n AS INT), TIMESTAMP '2024-01-01 00:00:00.000'), WATERMARK FOR ts AS ts)
    WITH ('connector' = 'datagen', 'number-of-rows' = '11', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1',
    'fields.n.end' = '11')"""


@pytest.fixture
def numbers() -> Table:
    env = environment()
    env.execute_sql(NUMBERS)
    return env.from_path("t")


def tumble(rows: int) -> GroupWindow:
    return Tumble.over(row_interval(rows)).on(col("p")).alias("w")


def slide(rows: int, every: int) -> GroupWindow:
    return Slide.over(row_interval(rows)).every(row_interval(every)).on(col("p")).alias("w")


def rows_of(table: Table) -> list[Any]:
    with table.execute().collect() as rows:
        found = [(str(row.get_row_kind()), *row) for row in rows]
    assert {kind for kind, *_ in found} == {"+I"}
    return [tuple(row) for _, *row in found]


def test_every_so_many_rows(numbers: Table) -> None:
    sums = numbers.window(tumble(2)).group_by(col("w")).select(col("n").sum.alias("s"), col("n").count.alias("c"))
    assert rows_of(sums) == [(3, 2), (7, 2), (11, 2), (15, 2), (19, 2)]


def test_every_so_many_rows_of_a_group(numbers: Table) -> None:
    made = (
        numbers.window(tumble(2))
        .group_by(col("w"), col("k"))
        .select(col("k"), col("n").sum.alias("s"), col("n").max.alias("m"), col("n").min)
    )
    assert made.get_schema().get_field_names() == ["k", "s", "m", "EXPR$2"]
    assert rows_of(made) == [(1, 4, 3, 1), (0, 6, 4, 2), (1, 12, 7, 5), (0, 14, 8, 6), (1, 20, 11, 9)]


def test_rows_that_are_chosen_first(numbers: Table) -> None:
    made = (
        numbers.where(col("n") > 2)
        .window(tumble(3))
        .group_by(col("w"), col("k"))
        .select(col("k"), col("n").avg.alias("s"), col("n").collect.alias("m"))
    )
    assert rows_of(made) == [(1, 5, {3: 1, 5: 1, 7: 1}), (0, 6, {4: 1, 6: 1, 8: 1})]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (slide(3, 2), [(6, 1, 3), (12, 3, 5), (18, 5, 7), (24, 7, 9), (30, 9, 11)]),
        (slide(2, 3), [(3, 1, 2), (9, 4, 5), (15, 7, 8), (21, 10, 11)]),
        (slide(2, 2), [(3, 1, 2), (7, 3, 4), (11, 5, 6), (15, 7, 8), (19, 9, 10)]),
    ],
)
def test_windows_that_overlap_or_leave_rows_out(numbers: Table, window: GroupWindow, expected: list[Any]) -> None:
    made = numbers.window(window).group_by(col("w"))
    assert rows_of(made.select(col("n").sum, col("n").min, col("n").max)) == expected


def test_windows_that_overlap_in_groups(numbers: Table) -> None:
    made = numbers.window(slide(3, 1)).group_by(col("w"), col("k")).select(col("k"), col("n").sum, col("n").min)
    assert rows_of(made) == [(1, 9, 1), (0, 12, 2), (1, 15, 3), (0, 18, 4), (1, 21, 5), (0, 24, 6), (1, 27, 7)]


def test_distinct_values_and_keys_alone(numbers: Table) -> None:
    made = numbers.window(tumble(4)).group_by(col("w")).select(col("k").count.distinct, col("k").sum.distinct)
    assert rows_of(made) == [(2, 1), (2, 1)]
    keys = numbers.window(tumble(2)).group_by(col("w"), col("k")).select(col("k"))
    assert rows_of(keys) == [(1,), (0,), (1,), (0,), (1,)]


def test_variances_and_functions_of_the_user(numbers: Table) -> None:
    longest = udaf(lambda values: values.max() - values.min(), result_type="BIGINT", func_type="pandas")
    made = (
        numbers.window(tumble(3)).group_by(col("w")).select(col("n").var_pop.alias("v"), longest(col("n")).alias("d"))
    )
    assert rows_of(made) == [(0, 2)] * 3


of_event_time = Tumble.over(row_interval(2)).on(col("ts")).alias("w")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda t: t.window(tumble(2)).group_by(col("w")).select(col("w").start), "has no start and no end"),
        (lambda t: t.window(tumble(2)).group_by(col("w")).select(col("w").proctime), "has no start and no end"),
        (
            lambda t: (
                t.window(Tumble.over(row_interval(2)).on(col("ts")).alias("w")).group_by(col("w")).select(col("n").sum)
            ),
            "are of processing time",
        ),
        (lambda t: tumble(0), "has one row at least, got row_interval"),
        (lambda t: Slide.over(row_interval(2)).every(lit(1).seconds), "both of time, or both of rows"),
        (lambda t: Session.with_gap(row_interval(2)), "The gap of a session is a time"),
    ],
)
def test_what_is_refused(numbers: Table, make: Any, told: str) -> None:
    with pytest.raises(ProgramError, match=told):
        make(numbers)


def test_batch_mode_has_none() -> None:
    builder = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict(SETTINGS))
    env = TableEnvironment.create(builder.in_batch_mode().build())
    env.execute_sql(NUMBERS)
    with pytest.raises(FiresteelError, match="Windows of a number of rows are for streams"):
        env.from_path("t").window(tumble(2)).group_by(col("w")).select(col("n").sum)
