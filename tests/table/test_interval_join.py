"""Joins within an interval of time: the same rows as a nested loop, whatever the cuts between batches; and what time
has passed by is forgotten."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from operatorkit import Behind, OperatorRun, timed_columns
from savepointkit import Halves

from firesteel.datastream import DataStream
from firesteel.runtime.operators.table import (
    ColumnsToRows,
    ColumnsType,
    IntervalJoin,
    IntervalJoinOperator,
    KeyColumns,
)

LEFT = pa.schema([("word", pa.string()), ("at", pa.int64()), ("number", pa.int64())])
RIGHT = pa.schema([("time", pa.int64()), ("name", pa.string()), ("value", pa.int64())])
BOTH = pa.schema([*LEFT, *RIGHT])
KINDS = ["INNER", "LEFT", "RIGHT", "FULL"]
END = 1 << 61


@dataclass(frozen=True)
class NumberBelowValue:
    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        return pc.less(batch.column(2), batch.column(5))


def spec(kind: str, condition: bool = False, lower: int = -2, upper: int = 3) -> IntervalJoin:
    checked = NumberBelowValue() if condition else None
    return IntervalJoin(kind, (0,), (1,), LEFT, RIGHT, BOTH, (1, 0), lower, upper, checked)


def joined(what: IntervalJoin, left: list[Any], right: list[Any]) -> Counter[Any]:
    """The rows, by a nested loop."""

    def fits(one: Any, other: Any) -> bool:
        if one[0] is None or one[0] != other[1] or not what.lower <= one[1] - other[0] <= what.upper:
            return False
        return what.condition is None or one[2] < other[2]

    found: Counter[Any] = Counter()
    for one in left:
        partners = [other for other in right if fits(one, other)]
        found.update(one + other for other in partners)
        if not partners and what.kind in ("LEFT", "FULL"):
            found[(*one, None, None, None)] += 1
    if what.kind in ("RIGHT", "FULL"):
        found.update((None, None, None, *other) for other in right if not any(fits(one, other) for one in left))
    return found


class Vectorised(OperatorRun):
    def __init__(self, what: IntervalJoin) -> None:
        super().__init__(IntervalJoinOperator, what)
        self.rows: Counter[Any] = Counter()
        self.sent = -END
        """What those behind the operator know of time."""
        self.earliest = END
        """How far behind that the earliest time of a result was."""

    def process(self, side: int, rows: list[Any]) -> None:
        self.take([(0, row) for row in rows], (LEFT, RIGHT)[side], side)
        self._gather()

    def watermark(self, time: int) -> None:
        super().watermark(time)
        self._gather()
        self.sent = self.operator.output_watermark(self._watermark)

    def _gather(self) -> None:
        rows = [row for _, row in self.taken()]
        self.rows.update(rows)
        self.earliest = min(
            [self.earliest, *(time - self.sent for row in rows for time in (row[1], row[3]) if time is not None)]
        )


WORDS = st.sampled_from(["a", "b", None])
# Times go forward from step to step, so that no row is late.
STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.lists(st.tuples(WORDS, st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=5),
        st.sampled_from(["nothing", "watermark", "restart"]),
    ),
    max_size=8,
)


@pytest.mark.parametrize("condition", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@given(steps=STEPS)
@settings(max_examples=40)
def test_interval_joins(kind: str, condition: bool, steps: list[Any]) -> None:
    what = spec(kind, condition)
    got = Vectorised(what)
    sides: tuple[list[Any], list[Any]] = ([], [])
    base = 0
    for side, drawn, then in steps:
        rows = [(word, base + at, value) if side == 0 else (base + at, word, value) for word, at, value in drawn]
        sides[side].extend(rows)
        got.process(side, rows)
        if then == "watermark":
            base += 5
            got.watermark(base - 1)
        elif then == "restart":
            got.restart()
    got.watermark(END)
    assert got.rows == joined(what, *sides)
    assert got.entries == 0
    assert got.earliest > 0, "a result is late for those behind the join"


def test_a_row_is_kept_as_long_as_a_match_may_come() -> None:
    """The left row of 10 fits right rows from 7 to 12."""
    got = Vectorised(spec("LEFT"))
    got.process(0, [("a", 10, 1)])
    got.watermark(12)
    assert (got.entries, got.rows) == (1, Counter())
    got.watermark(13)
    assert (got.entries, got.rows) == (0, Counter([("a", 10, 1, None, None, None)]))


def test_a_late_row_meets_what_is_still_kept_and_is_not_kept_itself() -> None:
    got = Vectorised(spec("FULL"))
    got.process(0, [("a", 10, 1)])
    got.watermark(12)
    got.process(1, [(7, "a", 5), (2, "a", 6)])
    assert got.entries == 1
    assert got.rows == Counter([("a", 10, 1, 7, "a", 5), (None, None, None, 2, "a", 6)])


def test_a_batch_that_is_done_again_gives_the_same() -> None:
    got = Vectorised(spec("LEFT"))
    got.process(0, [("a", 10, 1)])
    got.stub.end_batch()
    for _ in range(2):
        got.rows.clear()
        got.stub.read_again()
        got.watermark(20)
        assert got.rows == Counter([("a", 10, 1, None, None, None)])


def test_in_processing_time_the_clock_decides() -> None:
    what = IntervalJoin("LEFT", (0,), (1,), LEFT, RIGHT, BOTH, (1, 0), -2, 3, None, processing_time=True)
    got = Vectorised(what)
    got.stub.now = 100
    got.process(0, [("a", 0, 1)])
    got.stub.now = 102
    got.process(1, [(0, "a", 1)])
    got.stub.now = 103
    got.process(1, [(0, "a", 2)])
    assert got.rows == Counter([("a", 0, 1, 0, "a", 1)])


def of_both(stream: DataStream) -> DataStream:
    """Left and right rows come in one stream, told apart by their length."""

    def rows(length: int, schema: pa.Schema, time: int) -> DataStream:
        chosen = stream.filter(lambda row: len(row) == length).uid(f"only {length}").set_parallelism(1)
        part = chosen.map(lambda row: row[:3]).uid(f"rows {length}").set_parallelism(1)
        return timed_columns(part, schema, Behind(time, 5), f" {length}")

    pair = rows(3, LEFT, 1).connect(rows(4, RIGHT, 0))
    keyed = pair.key_by(KeyColumns((0,)), KeyColumns((1,)))
    both = keyed.transform("Join", spec("FULL"), ColumnsType(BOTH)).uid("join")
    return both.transform("Rows", ColumnsToRows(BOTH)).uid("out")


@pytest.mark.parametrize(("before", "after"), [(2, 2), (1, 3)])
def test_an_interval_join_of_a_job_comes_back_from_a_savepoint(tmp_path: Path, before: int, after: int) -> None:
    rows: list[Any] = []
    for n in range(60):
        rows += [(f"w{n % 9}", n, n), (n, f"w{n % 13}", n, "right")]
    halves = Halves(tmp_path)

    got = halves.save(of_both, [rows[:40], rows[40:60]], before)
    got += halves.resume(of_both, [rows[:40], rows[40:60], rows[60:]], after)

    left = [row for row in rows if len(row) == 3]
    right = [row[:3] for row in rows if len(row) == 4]
    assert Counter(map(tuple, got)) == joined(spec("FULL"), left, right)
