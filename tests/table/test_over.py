"""OVER: the vectorised operator gives what one row at a time gives, whatever comes late and however rows are cut."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from operatorkit import Behind, Change, OperatorRun, timed_columns
from savepointkit import Halves

from firesteel.datastream import DataStream
from firesteel.runtime.operators.table import (
    AggregateCall,
    ColumnsToRows,
    ColumnsType,
    KeyColumns,
    Order,
    OverAggregate,
    OverAggregateOperator,
    SortedOver,
    SortedOverOperator,
)

LONG = pa.int64()
INPUT = pa.schema(
    [("word", pa.string()), ("number", LONG), ("ratio", pa.float64()), ("flag", pa.bool_()), ("at", LONG)]
)
Row = tuple[str | None, int | None, float | None, bool | None, int]
CALLS = (
    AggregateCall("COUNT", None, LONG),
    AggregateCall("SUM", 1, LONG),
    AggregateCall("AVG", 2, pa.float64()),
    AggregateCall("MIN", 1, LONG),
    AggregateCall("MAX", 2, pa.float64()),
    AggregateCall("COUNT", 1, LONG, distinct=True),
    AggregateCall("SUM", 1, LONG, filter=3),
    AggregateCall("FIRST_VALUE", 1, LONG),
    AggregateCall("LAST_VALUE", 0, pa.string()),
)
WITHOUT_FRAME = (
    AggregateCall("LAG", 1, LONG, options=(1, None)),
    AggregateCall("LAG", 0, pa.string(), options=(2, "none")),
    AggregateCall("RANK", 4, LONG),
    AggregateCall("DENSE_RANK", 4, LONG),
)
FRAMES = [(True, None), (False, None), (True, 0), (True, 2), (False, 0), (False, 5)]
"""Whether rows are counted, and how many of them, or how long before, a frame begins."""


def over(rows: bool, preceding: int | None, keys: tuple[int, ...] = (0,)) -> OverAggregate:
    calls = CALLS if preceding is not None else (*CALLS, *WITHOUT_FRAME)
    fields = [pa.field(f"r{n}", call.type) for n, call in enumerate(calls)]
    return OverAggregate(keys, calls, INPUT, pa.schema([*INPUT, *fields]), 4, rows, preceding)


def result(call: AggregateCall, frame: list[Row]) -> Any:
    counted = [row for row in frame if call.filter is None or row[call.filter] is True]
    values: list[Any] = [1 if call.argument is None else row[call.argument] for row in counted]
    if call.function == "LAG":
        offset, default = call.options
        return values[-1 - offset] if len(values) > offset else default
    if call.function == "RANK":
        return sum(value < values[-1] for value in values) + 1
    if call.function == "DENSE_RANK":
        return len(set(values))
    known = [value for value in values if value is not None]
    if call.function == "COUNT":
        return len(set(known)) if call.distinct else len(known)
    if not known:
        return None
    match call.function:
        case "SUM":
            return sum(known)
        case "AVG":
            return sum(known) / len(known)
        case "MIN":
            return min(known)
        case "MAX":
            return max(known)
        case "FIRST_VALUE":
            return known[0]
    return known[-1]


class Reference:
    """Keeps all rows in lists, and makes each frame of its own."""

    def __init__(self, spec: OverAggregate) -> None:
        self._spec = spec
        self._waiting: list[Row] = []
        self._done: dict[Any, list[Row]] = {}
        self._watermark = -(1 << 60)
        self.results: dict[Any, list[tuple[Any, ...]]] = {}

    def _key(self, row: Row) -> Any:
        return tuple(row[key] for key in self._spec.keys)

    def process(self, rows: Sequence[Row]) -> None:
        for row in rows:
            done = self._done.get(self._key(row), [])
            preceding = self._spec.preceding
            further = bool(done) and row[4] <= done[-1][4]
            if preceding is not None and not self._spec.rows:
                # So late that its key may be forgotten.
                further = further or row[4] < self._watermark - 2 * max(preceding, 1)
            if row[4] <= self._watermark and (preceding is None or further):
                continue
            self._waiting.append(row)

    def watermark(self, value: int) -> None:
        self._watermark = max(self._watermark, value)
        due = sorted((row for row in self._waiting if row[4] <= value), key=lambda row: row[4])
        self._waiting = [row for row in self._waiting if row[4] > value]
        for at, row in enumerate(due):
            done = self._done.setdefault(self._key(row), [])
            done.append(row)
            if self._spec.rows:
                self._tell(row, done)
                continue
            peers = [other for other in due if self._key(other) == self._key(row) and other[4] == row[4]]
            if peers[-1] is row and not any(other is row for other in due[at + 1 :]):
                for peer in peers:
                    self._tell(peer, done)

    def _tell(self, row: Row, done: list[Row]) -> None:
        spec = self._spec
        frame = done
        if spec.preceding is not None:
            frame = done[-spec.preceding - 1 :] if spec.rows else [r for r in done if r[4] >= row[4] - spec.preceding]
        told = (*row, *(result(call, frame) for call in spec.calls))
        self.results.setdefault(self._key(row), []).append(told)


class Vectorised(OperatorRun):
    def __init__(self, spec: OverAggregate) -> None:
        super().__init__(OverAggregateOperator, spec)

    def process(self, rows: Sequence[Row]) -> None:
        self.take([(0, row) for row in rows], INPUT)

    @property
    def results(self) -> dict[Any, list[tuple[Any, ...]]]:
        found: dict[Any, list[tuple[Any, ...]]] = {}
        for kind, row in self.changes:
            assert kind == 0
            found.setdefault(tuple(row[key] for key in self._spec.keys), []).append(row)
        return found


# Ratios are sums of powers of two: no order of additions rounds.
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from([1, 2, -7, None]),
        st.sampled_from([0.5, -3.25, 8.0, None]),
        st.sampled_from([True, False, None]),
        st.integers(0, 30),
    ),
    max_size=12,
)
STEPS = st.lists(st.one_of(ROWS, st.integers(-5, 35), st.just("restart")), max_size=9)


@pytest.mark.parametrize(("rows", "preceding"), FRAMES)
@given(steps=STEPS, keys=st.sampled_from([(0,), (0, 3), ()]))
@settings(max_examples=50)
@example(steps=[[("a", 1, 0.5, True, 0)], 11, [("a", 1, 0.5, True, 1)]], keys=(0,))
def test_frames(rows: bool, preceding: int | None, steps: list[Any], keys: tuple[int, ...]) -> None:
    expected, got = Reference(over(rows, preceding, keys)), Vectorised(over(rows, preceding, keys))
    for step in [*steps, 1 << 40]:
        if step == "restart":
            got.restart()
        elif isinstance(step, int):
            expected.watermark(step)
            got.watermark(step)
            assert got.results == expected.results
        else:
            expected.process(step)
            got.process(step)


def test_frames_of_time_are_forgotten_when_nothing_comes() -> None:
    got = Vectorised(over(False, 5))
    got.process([("a", 1, 0.5, True, 1), ("b", 1, 0.5, True, 2)])
    got.watermark(3)
    got.process([("b", 1, 0.5, True, 40)])
    got.watermark(100)
    assert got.entries == 0
    got.process([("a", 5, 0.5, True, 101)])
    got.watermark(101)
    assert got.results[("a",)][-1][5:7] == (1, 5)


def test_frames_without_a_begin_are_forgotten_after_a_time() -> None:
    got = Vectorised(replace(over(True, None), state_ttl=100))
    got.process([("a", 1, 0.5, True, 1), ("b", 1, 0.5, True, 1)])
    got.watermark(1)
    got.stub.now = 99
    got.process([("a", 2, 0.5, True, 2)])
    got.watermark(2)
    got.restart()
    got.stub.now = 150
    got.process([("a", 3, 0.5, True, 3), ("b", 3, 0.5, True, 3)])
    got.watermark(3)
    assert [row[6] for row in got.results[("a",)]] == [1, 3, 6]
    assert [row[6] for row in got.results[("b",)]] == [1, 3]


def test_processing_time_takes_rows_as_they_come() -> None:
    spec = over(True, 1)
    schema = pa.schema(list(spec.schema)[:7])
    for rows, preceding, sums in [(True, None, [1, 3, 6]), (False, None, [1, 3, 6]), (True, 1, [1, 3, 5])]:
        got = Vectorised(OverAggregate((0,), spec.calls[:2], INPUT, schema, None, rows, preceding))
        for number in (1, 2, 3):
            got.process([("a", number, 0.5, True, 0)])
        assert [row[6] for _, row in got.changes] == sums


SPEC = over(False, 15)


def framed(stream: DataStream) -> DataStream:
    timed = timed_columns(stream, INPUT, Behind(4, 20))
    frames = timed.key_by(KeyColumns((0,))).transform("Over", SPEC, ColumnsType(SPEC.schema)).uid("over")
    return frames.transform("Rows", ColumnsToRows(SPEC.schema)).uid("rows")


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_frames_of_a_job_come_back_from_a_savepoint(tmp_path: Path, before: int, after: int) -> None:
    rows: list[Row] = [(f"w{n % 7}", n % 4, n / 2, n % 3 == 0, n) for n in range(200)]
    halves = Halves(tmp_path)
    expected = Reference(SPEC)
    expected.process(rows)
    expected.watermark(1 << 40)

    got = halves.save(framed, [rows[:80], rows[80:120]], before)
    early = len(got)
    got += halves.resume(framed, [rows[:80], rows[80:120], rows[120:]], after)

    by_word: dict[Any, list[tuple[Any, ...]]] = {}
    for row in got:
        by_word.setdefault((row[0],), []).append(tuple(row))
    assert by_word == expected.results
    assert 0 < early < len(got)


class SortedReference:
    """OVER in the order of the numbers: all results anew after each change."""

    def __init__(self, spec: SortedOver) -> None:
        self._spec = spec
        self._rows: list[tuple[Any, ...]] = []

    def process(self, rows: Sequence[Change]) -> None:
        for kind, row in rows:
            if kind in (0, 2):
                place = sum(not self._ordered(row) < self._ordered(other) for other in self._rows)
                self._rows.insert(place, row)
            elif row in self._rows:
                self._rows.remove(row)

    @staticmethod
    def _ordered(row: tuple[Any, ...]) -> tuple[bool, int]:
        return row[1] is not None, row[1] or 0

    def _results(self) -> list[tuple[Any, ...]]:
        found = []
        for at, row in enumerate(self._rows):
            same = [other for other in self._rows if other[0] == row[0]]
            own = sum(other[0] == row[0] for other in self._rows[:at])
            place = sum(other[0] == row[0] for other in self._rows[: at + 1])
            if not self._spec.rows:
                place = sum(not self._ordered(row) < self._ordered(other) for other in same)
            found.append((*row, *(self._result(call, same, own, place) for call in self._spec.calls)))
        return found

    def _result(self, call: AggregateCall, rows: list[Any], own: int, end: int) -> Any:
        """``own`` is the place of the row among those of its key, in order."""
        if call.function == "LAG":
            back = own - call.options[0]
            return rows[back][call.argument or 0] if back >= 0 else call.options[1]
        smaller = [self._ordered(row) for row in rows if self._ordered(row) < self._ordered(rows[own])]
        if call.function == "RANK":
            return len(smaller) + 1
        if call.function == "DENSE_RANK":
            return len(set(smaller)) + 1
        return result(call, rows[:end])

    @property
    def table(self) -> Counter[tuple[Any, ...]]:
        return Counter(self._results())


@pytest.mark.parametrize("rows", [True, False])
@given(
    data=st.lists(
        st.tuples(
            st.integers(0, 5),
            st.tuples(st.sampled_from("ab"), st.sampled_from([1, 2, 5, None]), st.sampled_from([0.5, 8.0])),
        ),
        max_size=20,
    ),
    cut=st.integers(0, 20),
)
@settings(max_examples=60)
def test_another_order_than_that_of_time(rows: bool, data: list[Any], cut: int) -> None:
    schema = pa.schema(list(INPUT)[:3])
    calls = (
        AggregateCall("SUM", 1, LONG),
        AggregateCall("COUNT", None, LONG),
        AggregateCall("MAX", 2, pa.float64()),
        AggregateCall("COUNT", 1, LONG, distinct=True),
        AggregateCall("FIRST_VALUE", 2, pa.float64()),
        AggregateCall("RANK", 1, LONG),
        AggregateCall("DENSE_RANK", 1, LONG),
        AggregateCall("LAG", 2, pa.float64(), options=(1, None)),
        AggregateCall("LAG", 1, LONG, options=(2, -7)),
    )
    fields = [pa.field(f"r{n}", call.type) for n, call in enumerate(calls)]
    spec = SortedOver((0,), (Order(1),), calls, schema, pa.schema([*schema, *fields]), rows)
    there: list[Any] = []
    changes: list[Change] = []
    for kind, row in data:
        taken = kind > 3 and there
        changes.append((3, there.pop(kind % len(there))) if taken else (0, row))
        if not taken:
            there.append(row)
    reference = SortedReference(spec)
    reference.process(changes)
    run, got = OperatorRun(SortedOverOperator, spec), Counter[tuple[Any, ...]]()
    run.take(changes[:cut], schema)
    run.restart()
    run.take(changes[cut:], schema)
    for kind, row in run.changes:
        got[row] += 1 if kind in (0, 2) else -1
        assert got[row] >= 0
    assert +got == reference.table
