"""Joins and Top-N of windows: the vectorised operators give what lists of rows give."""

from collections.abc import Sequence
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
    KeyColumns,
    Order,
    WindowJoin,
    WindowJoinOperator,
    WindowRank,
    WindowRankOperator,
)

LONG = pa.int64()
ROWS = pa.schema([("word", pa.string()), ("number", LONG), ("end", LONG)])
Row = tuple[str | None, int | None, int]
KINDS = ["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"]


@dataclass(frozen=True)
class Smaller:
    """The left number is smaller than the right one."""

    def evaluate(self, batch: pa.RecordBatch, now: int) -> pa.Array:
        return pc.less(batch.column(1), batch.column(4))


def join(kind: str, conditional: bool) -> WindowJoin:
    left = list(ROWS)
    right = [field.with_name(f"{field.name}2") for field in ROWS]
    schema = pa.schema(left if kind in ("SEMI", "ANTI") else [*left, *right])
    condition = Smaller() if conditional else None
    return WindowJoin(kind, (0, 2), (0, 2), 2, 2, ROWS, pa.schema(right), schema, condition)


class JoinReference:
    def __init__(self, spec: WindowJoin) -> None:
        self._spec = spec
        self._rows: tuple[list[Row], list[Row]] = ([], [])
        self._watermark = -(1 << 60)
        self.results: list[tuple[Any, ...]] = []

    def process(self, side: int, rows: Sequence[Row]) -> None:
        self._rows[side].extend(row for row in rows if row[2] - 1 > self._watermark)

    def watermark(self, value: int) -> None:
        self._watermark = max(self._watermark, value)
        left, right = ([row for row in rows if row[2] - 1 <= value] for rows in self._rows)
        self._rows = tuple([row for row in rows if row[2] - 1 > value] for rows in self._rows)  # type: ignore[assignment]
        kind, met = self._spec.kind, set()
        for row in left:
            partners = [at for at, other in enumerate(right) if self._match(row, other)]
            met.update(partners)
            if (kind == "SEMI" and partners) or (kind == "ANTI" and not partners):
                self.results.append(row)
            if kind in ("SEMI", "ANTI"):
                continue
            self.results += [(*row, *right[at]) for at in partners]
            if kind in ("LEFT", "FULL") and not partners:
                self.results.append((*row, None, None, None))
        if kind in ("RIGHT", "FULL"):
            self.results += [(None, None, None, *row) for at, row in enumerate(right) if at not in met]

    def _match(self, one: Row, other: Row) -> bool:
        if one[0] is None or (one[0], one[2]) != (other[0], other[2]):
            return False
        if self._spec.condition is None:
            return True
        return one[1] is not None and other[1] is not None and one[1] < other[1]


class RankReference:
    def __init__(self, spec: WindowRank) -> None:
        self._spec = spec
        self._rows: list[Row] = []
        self._watermark = -(1 << 60)
        self.results: list[tuple[Any, ...]] = []

    def process(self, side: int, rows: Sequence[Row]) -> None:
        self._rows += [row for row in rows if row[2] - 1 > self._watermark]

    def watermark(self, value: int) -> None:
        self._watermark = max(self._watermark, value)
        due = [row for row in self._rows if row[2] - 1 <= value]
        self._rows = [row for row in self._rows if row[2] - 1 > value]
        order = self._spec.order[0]
        sign = 1 if order.ascending else -1
        null = -1 if order.nulls_first else 1
        for key in dict.fromkeys((row[0], row[2]) for row in due):
            rows = [row for row in due if (row[0], row[2]) == key]
            rows.sort(key=lambda row: (null, 0) if row[1] is None else (0, sign * row[1]))
            for place, row in enumerate(rows, 1):
                if self._spec.first <= place <= self._spec.last:
                    self.results.append((*row, place))


class Vectorised(OperatorRun):
    def process(self, side: int, rows: Sequence[Row]) -> None:
        self.take([(0, row) for row in rows], ROWS, side)

    @property
    def results(self) -> list[tuple[Any, ...]]:
        return [row for _, row in self.changes]


SOME = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, -7, None]), st.integers(1, 4).map(lambda n: 10 * n)
    ),
    max_size=8,
)
STEPS = st.lists(st.one_of(st.tuples(st.integers(0, 1), SOME), st.integers(0, 45), st.just("restart")), max_size=8)


def compare(expected: Any, got: Vectorised, steps: list[Any]) -> None:
    for step in [*steps, 1 << 40]:
        if step == "restart":
            got.restart()
        elif isinstance(step, int):
            expected.watermark(step)
            got.watermark(step)
            assert sorted(got.results, key=repr) == sorted(expected.results, key=repr)
        else:
            expected.process(*step)
            got.process(*step)
    assert got.entries == 0


@pytest.mark.parametrize("kind", KINDS)
@given(steps=STEPS, conditional=st.booleans())
@settings(max_examples=40)
def test_joins(kind: str, steps: list[Any], conditional: bool) -> None:
    spec = join(kind, conditional)
    compare(JoinReference(spec), Vectorised(WindowJoinOperator, spec), steps)


@given(
    steps=STEPS,
    order=st.builds(Order, st.just(1), st.booleans(), st.booleans()),
    bounds=st.sampled_from([(1, 1), (1, 2), (2, 3)]),
)
@settings(max_examples=100)
def test_ranks(steps: list[Any], order: Order, bounds: tuple[int, int]) -> None:
    first, last = bounds
    schema = pa.schema([*ROWS, ("place", LONG)])
    spec = WindowRank((0, 2), (order,), 2, ROWS, schema, last, first, True)
    compare(RankReference(spec), Vectorised(WindowRankOperator, spec), steps)


JOIN, RANK = join("FULL", False), WindowRank((0, 2), (Order(1, False),), 2, ROWS, ROWS, 2)


def joined(stream: DataStream) -> DataStream:
    timed = _timed(stream)
    pair = timed.connect(timed).key_by(KeyColumns((0, 2)), KeyColumns((0, 2)))
    found = pair.transform("Join", JOIN, ColumnsType(JOIN.schema)).uid("join")
    return found.transform("Rows", ColumnsToRows(JOIN.schema)).uid("rows")


def ranked(stream: DataStream) -> DataStream:
    found = _timed(stream).key_by(KeyColumns((0, 2))).transform("Rank", RANK, ColumnsType(ROWS)).uid("rank")
    return found.transform("Rows", ColumnsToRows(ROWS)).uid("rows")


def _timed(stream: DataStream) -> DataStream:
    return timed_columns(stream, ROWS, Behind(2, 20))


@pytest.mark.parametrize("program", [joined, ranked])
def test_windows_come_back_from_a_savepoint(tmp_path: Path, program: Any) -> None:
    rows: list[Row] = [(f"w{n % 3}", n % 5, n // 10 * 10 + 10) for n in range(120)]
    steps = [rows[:50], rows[50:75], rows[75:]]
    halves = Halves(tmp_path)
    whole = halves.whole(program, steps)

    got = halves.save(program, steps[:2], 2)
    early = len(got)
    got += halves.resume(program, steps, 3)

    assert sorted(map(tuple, got)) == sorted(map(tuple, whole))
    assert 0 < early < len(got)
