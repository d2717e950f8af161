"""Joins with the version of a table at a time: the same rows as a search among all versions."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from operatorkit import Behind, Change, OperatorRun, timed_columns
from savepointkit import Halves

from firesteel.datastream import DataStream
from firesteel.runtime.operators.table import (
    ColumnsToRows,
    ColumnsType,
    KeyColumns,
    TemporalJoin,
    TemporalJoinOperator,
)
from firesteel.runtime.operators.table import temporal_join as module

LEFT = pa.schema([("word", pa.string()), ("at", pa.int64())])
RIGHT = pa.schema([("time", pa.int64()), ("name", pa.string()), ("value", pa.int64())])
BOTH = pa.schema([*LEFT, *RIGHT])
END = 1 << 61


@dataclass(frozen=True)
class ValueAbove:
    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        return pc.greater(batch.column(4), 1)


def spec(kind: str, condition: bool = False) -> TemporalJoin:
    return TemporalJoin(kind, (0,), (1,), LEFT, RIGHT, BOTH, (1, 0), ValueAbove() if condition else None)


def joined(what: TemporalJoin, left: list[Change], right: list[Change]) -> list[Change]:
    """What each left row meets, by a search among all versions."""
    found = []
    for kind, row in left:
        versions = [
            (other[0], at, k, other)
            for at, (k, other) in enumerate(right)
            if k != 1 and row[0] is not None and row[0] == other[1]
        ]
        latest = max((one for one in versions if one[0] <= row[1]), default=None)
        match = latest[3] if latest is not None and latest[2] != 3 else None
        if match is not None and what.condition is not None and not match[2] > 1:
            match = None
        if match is not None:
            found.append((kind, row + match))
        elif what.kind == "LEFT":
            found.append((kind, (*row, None, None, None)))
    return found


class Vectorised(OperatorRun):
    def __init__(self, what: TemporalJoin) -> None:
        super().__init__(TemporalJoinOperator, what)

    def process(self, side: int, rows: list[Change]) -> None:
        self.take(rows, (LEFT, RIGHT)[side], side)

    def kept(self, side: str) -> int:
        return int(self.stub.tables[side].entries)


WORDS = st.sampled_from(["a", "b", None])
STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.lists(st.tuples(st.integers(0, 3), WORDS, st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=5),
        st.sampled_from(["nothing", "watermark", "restart"]),
    ),
    max_size=8,
)


@pytest.mark.parametrize("condition", [False, True])
@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
@given(steps=STEPS)
@settings(max_examples=60)
def test_temporal_joins(kind: str, condition: bool, steps: list[Any]) -> None:
    what = spec(kind, condition)
    # State is cleaned at every watermark.
    worth, module._WORTH_CLEANING = module._WORTH_CLEANING, 0
    try:
        got = Vectorised(what)
        sides: tuple[list[Change], list[Change]] = ([], [])
        base = 0
        for side, drawn, then in steps:
            rows: list[Change] = [
                (change, (word, base + at) if side == 0 else (base + at, word, value))
                for change, word, at, value in drawn
            ]
            sides[side].extend(rows)
            got.process(side, rows)
            if then == "watermark":
                base += 5
                got.watermark(base - 1)
            elif then == "restart":
                got.restart()
        got.watermark(END)
    finally:
        module._WORTH_CLEANING = worth
    expected = joined(what, *sides)
    assert Counter(got.changes) == Counter(expected)
    assert got.kept("left") == 0


def test_versions_that_nobody_can_ask_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORTH_CLEANING", 0)
    got = Vectorised(spec("INNER"))
    got.process(1, [(0, (1, "a", 1)), (0, (5, "a", 2)), (0, (9, "a", 3)), (0, (2, "b", 4)), (3, (3, "b", 4))])
    got.watermark(6)
    # The one of 1 was replaced at 5, and b is no more.
    assert got.kept("right") == 2
    got.process(0, [(0, ("a", 7)), (0, ("b", 7))])
    got.watermark(8)
    assert got.changes == [(0, ("a", 7, 5, "a", 2))]


def test_rows_wait_for_the_watermark_and_come_out_as_they_came() -> None:
    got = Vectorised(spec("LEFT"))
    got.process(0, [(0, ("a", 5)), (1, ("b", 4)), (2, ("b", 4))])
    got.watermark(4)
    assert got.changes == [(1, ("b", 4, None, None, None)), (2, ("b", 4, None, None, None))]
    got.process(1, [(0, (3, "a", 7))])
    got.watermark(5)
    assert got.changes[2:] == [(0, ("a", 5, 3, "a", 7))]


def test_a_batch_that_is_done_again_gives_the_same() -> None:
    got = Vectorised(spec("LEFT"))
    got.process(0, [(0, ("a", 5))])
    got.stub.end_batch()
    for _ in range(2):
        got.taken()
        got.stub.read_again()
        # Of one time the version that came last is valid.
        got.process(1, [(0, (3, "a", 7))])
        got.process(1, [(0, (3, "a", 8))])
        got.watermark(5)
        assert got.changes == [(0, ("a", 5, 3, "a", 8))]


def of_both(stream: DataStream) -> DataStream:
    """Left and right rows come in one stream, told apart by their length."""

    def rows(length: int, schema: pa.Schema, time: int) -> DataStream:
        chosen = stream.filter(lambda row: len(row) == length).uid(f"only {length}").set_parallelism(1)
        return timed_columns(chosen, schema, Behind(time, 5), f" {length}")

    keyed = rows(2, LEFT, 1).connect(rows(3, RIGHT, 0)).key_by(KeyColumns((0,)), KeyColumns((1,)))
    both = keyed.transform("Join", spec("LEFT"), ColumnsType(BOTH)).uid("join")
    return both.transform("Rows", ColumnsToRows(BOTH)).uid("out")


@pytest.mark.parametrize(("before", "after"), [(2, 2), (1, 3)])
def test_a_temporal_join_of_a_job_comes_back_from_a_savepoint(tmp_path: Path, before: int, after: int) -> None:
    rows: list[Any] = []
    for n in range(60):
        rows += [(f"w{n % 9}", n), (n, f"w{n % 13}", n)]
    halves = Halves(tmp_path)

    got = halves.save(of_both, [rows[:40], rows[40:60]], before)
    got += halves.resume(of_both, [rows[:40], rows[40:60], rows[60:]], after)

    left = [(0, row) for row in rows if len(row) == 2]
    right = [(0, row) for row in rows if len(row) == 3]
    assert Counter(map(tuple, got)) == Counter(row for _, row in joined(spec("LEFT"), left, right))
