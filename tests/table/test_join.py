"""Joins of two changing streams: after every batch the changelog leads to the table that a nested loop gives."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from operatorkit import Change, OperatorRun
from savepointkit import Halves

from firesteel.common import Row, RowKind
from firesteel.datastream import DataStream
from firesteel.runtime.operators.table import (
    ColumnsToRows,
    ColumnsType,
    Join,
    JoinOperator,
    KeyColumns,
    RowsToColumns,
)

LEFT = pa.schema([("word", pa.string()), ("number", pa.int64())])
RIGHT = pa.schema([("value", pa.int64()), ("name", pa.string())])
BOTH = pa.schema([*LEFT, *RIGHT])
KINDS = ["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"]


@dataclass(frozen=True)
class NumberBelowValue:
    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        return pc.less(batch.column(1), batch.column(2))


def spec(kind: str, condition: bool, null_equal: bool = False) -> Join:
    schema = LEFT if kind in ("SEMI", "ANTI") else BOTH
    equal = (True,) if null_equal else ()
    checked = NumberBelowValue() if condition else None
    return Join(kind, (0,), (1,), LEFT, RIGHT, schema, checked, null_equal=equal)


def joined(what: Join, left: Counter[Any], right: Counter[Any]) -> Counter[Any]:
    """The table, by a nested loop."""

    def fits(one: Any, other: Any) -> bool:
        if one[0] != other[1] or (one[0] is None and not what.null_equal):
            return False
        return what.condition is None or (one[1] is not None and other[0] is not None and one[1] < other[0])

    found: Counter[Any] = Counter()
    for one, count in left.items():
        partners = {other: times for other, times in right.items() if fits(one, other)}
        if what.kind in ("SEMI", "ANTI"):
            if bool(partners) == (what.kind == "SEMI"):
                found[one] += count
            continue
        for other, times in partners.items():
            found[one + other] += count * times
        if not partners and what.kind in ("LEFT", "FULL"):
            found[(*one, None, None)] += count
    if what.kind in ("RIGHT", "FULL"):
        for other, times in right.items():
            if not any(fits(one, other) for one in left):
                found[(None, None, *other)] += times
    return +found


class Vectorised(OperatorRun):
    def __init__(self, what: Join) -> None:
        super().__init__(JoinOperator, what)
        self.table: Counter[Any] = Counter()

    def process(self, side: int, rows: list[Change]) -> None:
        self.take(rows, (LEFT, RIGHT)[side], side)
        for kind, row in self.taken():
            self.table[row] += 1 if kind in (0, 2) else -1
            assert self.table[row] >= 0, f"{row} is taken back and was not there"
        self.table = +self.table


ROWS = (
    st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None])),
    st.tuples(st.sampled_from([1, 2, 3, None]), st.sampled_from(["a", "b", None])),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just(0), st.lists(st.tuples(st.integers(0, 3), ROWS[0], st.integers(0, 9)), min_size=1, max_size=6)
        ),
        st.tuples(
            st.just(1), st.lists(st.tuples(st.integers(0, 3), ROWS[1], st.integers(0, 9)), min_size=1, max_size=6)
        ),
        st.sampled_from(["batch", "restart"]),
    ),
    max_size=8,
)


@pytest.mark.parametrize("condition", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@given(steps=STEPS)
@settings(max_examples=40)
def test_joins(kind: str, condition: bool, steps: list[Any]) -> None:
    check(spec(kind, condition), steps)


@pytest.mark.parametrize("kind", KINDS)
@given(steps=STEPS)
@settings(max_examples=20)
def test_joins_where_null_equals_null(kind: str, steps: list[Any]) -> None:
    check(spec(kind, False, null_equal=True), steps)


def check(what: Join, steps: list[Any]) -> None:
    got = Vectorised(what)
    sides: tuple[list[Any], list[Any]] = ([], [])
    for step in steps:
        if step == "batch":
            got.end_batch()
        elif step == "restart":
            got.restart()
        else:
            side, drawn = step
            there = sides[side]
            rows: list[Change] = []
            for change, row, back in drawn:
                if change in (0, 2):
                    there.append(row)
                    rows.append((change, row))
                elif there:
                    rows.append((change, there.pop(back % len(there))))
            if rows:
                got.process(side, rows)
            assert got.table == joined(what, Counter(sides[0]), Counter(sides[1]))


def test_an_update_of_the_right_side_of_a_left_join() -> None:
    """As Flink tells it: -U of the old one, +I with NULLs, -D of that, +I of the new one."""
    got = OperatorRun(JoinOperator, spec("LEFT", False))
    got.take([(0, ("a", 1))], LEFT)
    got.take([(0, (7, "a"))], RIGHT, 1)
    got.take([(1, (7, "a")), (2, (8, "a"))], RIGHT, 1)
    got.take([(1, ("a", 1)), (2, ("a", 2))], LEFT)
    assert got.changes == [
        (0, ("a", 1, None, None)),
        (3, ("a", 1, None, None)),
        (0, ("a", 1, 7, "a")),
        (1, ("a", 1, 7, "a")),
        (0, ("a", 1, None, None)),
        (3, ("a", 1, None, None)),
        (0, ("a", 1, 8, "a")),
        (3, ("a", 1, 8, "a")),
        (0, ("a", 2, 8, "a")),
    ]


def of_both(stream: DataStream) -> DataStream:
    """Left and right rows come in one stream, told apart by their length."""

    def rows(length: int, schema: pa.Schema) -> DataStream:
        chosen = stream.filter(lambda row: len(row) == length).uid(f"only {length}").set_parallelism(1)
        part = chosen.map(lambda row: row[:2]).uid(f"rows {length}").set_parallelism(1)
        return part.transform("Columns", RowsToColumns(schema), ColumnsType(schema)).uid(f"columns {length}")

    left, right = rows(2, LEFT).set_parallelism(1), rows(3, RIGHT).set_parallelism(1)
    keyed = left.connect(right).key_by(KeyColumns((0,)), KeyColumns((1,)))
    both = keyed.transform("Join", spec("FULL", False), ColumnsType(BOTH)).uid("join")
    return both.transform("Rows", ColumnsToRows(BOTH)).uid("out")


def table_of(rows: list[Row]) -> Counter[Any]:
    table: Counter[Any] = Counter()
    for row in rows:
        table[tuple(row)] += 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
    return +table


@pytest.mark.parametrize(("before", "after"), [(2, 2), (1, 3)])
def test_a_join_of_a_job_comes_back_from_a_savepoint(tmp_path: Path, before: int, after: int) -> None:
    rows: list[Any] = []
    for n in range(60):
        rows += [(f"w{n % 9}", n), (n, f"w{n % 13}", "right")]
    halves = Halves(tmp_path)

    got = halves.save(of_both, [rows[:40], rows[40:60]], before)
    got += halves.resume(of_both, [rows[:40], rows[40:60], rows[60:]], after)

    left = Counter(row for row in rows if len(row) == 2)
    right = Counter(row[:2] for row in rows if len(row) == 3)
    assert table_of(got) == joined(spec("FULL", False), left, right)
