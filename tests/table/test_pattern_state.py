"""MATCH_RECOGNIZE: what is under way comes back from a savepoint, at another parallelism; conditions as Python and as
kernels agree."""

from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from conftest import environment
from hypothesis import given, settings
from savepointkit import Halves

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import DataStream
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef
from firesteel.table.logical.patterns import MatchRecognize, RowReference
from firesteel.table.logical.plan import Plan, Scan
from firesteel.table.logical.scope import Scope
from firesteel.table.physical.pattern_matching import _Fits, event_columns, key_of, match_spec, read_columns
from firesteel.table.physical.row_expressions import _Computed, _simple
from firesteel.table.sql.parser import parse
from firesteel.table.types.data_types import BigIntType, BooleanType, DoubleType, IntType, RowType, VarCharType

START = datetime(2024, 1, 1)
QUERY = """
    SELECT * FROM prices MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY ts
        MEASURES FIRST(down.v) AS top, LAST(down.v) AS bottom, COUNT(down.v) AS steps
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (down{2,} up)
        DEFINE down AS LAST(down.v, 1) IS NULL OR down.v < LAST(down.v, 1), up AS up.v > LAST(down.v)
    )
"""


def match_plan() -> MatchRecognize:
    env = environment()
    env.execute_sql("""
        CREATE TABLE prices (k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')
    """)
    plan: Plan = env.sql_query(QUERY)._plan
    while not isinstance(plan, MatchRecognize):
        (plan,) = plan.inputs
    return plan


def milliseconds(event: Any, before: int) -> int:
    return int((event[2] - START) / timedelta(milliseconds=1))


class Times:
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return milliseconds(value, record_timestamp)


def matched(stream: DataStream) -> DataStream:
    plan = match_plan()
    columns = event_columns(plan)
    assert sorted(columns) == [0, 1, 2]
    assert [columns[at] for at, read in enumerate(read_columns(plan)) if read is None] == [2], "nobody reads the time"
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())  # type: ignore[arg-type]
    timed = stream.assign_timestamps_and_watermarks(strategy).uid("timed").set_parallelism(1)
    events = timed.map(lambda row: tuple(row[at] for at in columns)).uid("events").set_parallelism(1)
    keyed = events.key_by(key_of([columns.index(0)]))
    return keyed.transform("Match", match_spec(plan, columns, "UTC")).uid("match")


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_partial_matches_come_back_from_a_savepoint(tmp_path: Path, before: int, after: int) -> None:
    rows = [(f"k{n % 5}", n * 37 % 11, START + timedelta(seconds=n)) for n in range(120)]
    halves = Halves(tmp_path)
    steps = [rows[:30], rows[30:57], rows[57:]]
    whole = halves.whole(matched, steps)

    got = halves.save(matched, steps[:2], before)
    got += halves.resume(matched, steps, after)

    assert Counter(got) == Counter(whole)
    assert len(whole) > 10


KINDS = [IntType(), BigIntType(), DoubleType(), VarCharType(10), BooleanType()]
CONDITIONS = [
    "i + b * 2 > 7 AND NOT f",
    "d * 2 - i <= b OR s = 'a'",
    "i IS NULL OR b <> i AND s >= 'aa'",
    "CAST(i AS BIGINT) = b AND d IS NOT NULL",
    "i * 2000000000 < b",
]


def resolved(text: str) -> Expression:
    statement: Any = parse(f"SELECT {text}")
    scan = Scan(("t",), RowType.of(list("ibdsf"), KINDS), None)
    return ExpressionResolver(Scope.of(scan, None)).resolve(statement.query.body.items[0].expression)


ROWS = st.tuples(
    st.none() | st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3),
    st.none() | st.integers(-9, 9),
    st.none() | st.floats(-9, 9),
    st.none() | st.sampled_from(["a", "aa", "b", ""]),
    st.none() | st.booleans(),
)


@pytest.mark.parametrize("text", CONDITIONS)
@given(row=ROWS)
@settings(max_examples=30)
def test_a_condition_of_one_row_means_what_it_means_for_many(text: str, row: Any) -> None:
    condition = resolved(text)
    simple = _simple(condition)
    assert simple is not None
    assert simple(row) == _Computed(condition, KINDS, "UTC")(row, 0)


def test_what_python_cannot_say_is_left_to_the_kernels() -> None:
    for text in ("UPPER(s) = 'A'", "s LIKE 'a%'", "i / 2 = 1"):
        assert _simple(resolved(text)) is None
    assert _Computed(resolved("UPPER(s) = 'A'"), KINDS, "UTC")((1, 1, 1.0, "a", True), 0) is True
    assert isinstance(resolved("i"), InputRef)


class Matched:
    """What a condition may ask of the rows before the one at hand."""

    def __init__(self, rows: dict[str, list[Any]]) -> None:
        self.rows = rows

    def get_events_for_pattern(self, variable: str) -> list[Any]:
        return list(self.rows.get(variable, ()))


@pytest.mark.parametrize("own", ["a", "b"])
@pytest.mark.parametrize("function", ["FIRST", "LAST"])
@pytest.mark.parametrize("variable", ["a", "b"])
def test_columns_of_single_rows_are_what_they_are_among_all_rows(own: str, function: str, variable: str) -> None:
    kind = BigIntType()
    references = tuple(RowReference(function, variable, 0, offset, kind) for offset in range(4))
    fits = _Fits(own, InputRef(0, kind), references, {0: 1}, ["a", "b"], "UTC")
    getters = fits._getters
    assert getters is not None
    event = ("now", 99)
    for of_a in range(3):
        for of_b in range(3 if own == "b" else 1):
            rows = {"a": [("a", 10 + n) for n in range(of_a)], "b": [("b", 20 + n) for n in range(of_b)]}
            context = Matched(rows)
            wanted = fits._rows.values(partial(fits._rows_of, event=event, context=context))
            assert [value_of(event, context) for value_of in getters] == wanted
    assert any(value_of(event, Matched({})) is not None for value_of in getters) == (variable == own)


def test_other_references_are_looked_up_among_all_rows() -> None:
    kind = BigIntType()
    for reference in (RowReference("SUM", "a", 0, 0, kind), RowReference("LAST", None, 0, 0, kind)):
        assert _Fits("a", InputRef(0, kind), (reference,), {0: 1}, ["a", "b"], "UTC")._getters is None
