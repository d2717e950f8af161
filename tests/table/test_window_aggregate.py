"""Windows of event time: the vectorised operator gives what a dict of lists gives."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings
from operatorkit import Behind, OperatorRun, batch_of, timed_columns
from savepointkit import Halves

from firesteel.datastream import DataStream
from firesteel.datastream.operators import Records
from firesteel.datastream.time_domain import TimeDomain
from firesteel.errors import ProgramError
from firesteel.runtime.operators.table import (
    AggregateCall,
    ColumnsToRows,
    ColumnsType,
    KeyColumns,
    Window,
    WindowAggregate,
    WindowAggregateOperator,
    rows_of,
)

INPUT = pa.schema([("word", pa.string()), ("number", pa.int64()), ("at", pa.timestamp("ms"))])
PLAIN = pa.schema([("word", pa.string()), ("number", pa.int64()), ("at", pa.int64())])
RESULT = pa.schema(
    [
        ("word", pa.string()),
        ("rows", pa.int64()),
        ("sum", pa.int64()),
        ("kinds", pa.int64()),
        ("start", pa.timestamp("ms")),
        ("end", pa.timestamp("ms")),
        ("time", pa.timestamp("ms")),
    ]
)
CALLS = (
    AggregateCall("COUNT", None, pa.int64()),
    AggregateCall("SUM", 1, pa.int64()),
    AggregateCall("COUNT", 1, pa.int64(), distinct=True),
)
WINDOWS = [
    Window("TUMBLE", 10),
    Window("TUMBLE", 10, offset=3),
    Window("HOP", 10, 5),
    Window("HOP", 10, 4, offset=1),
    Window("CUMULATE", 12, 4),
]
Row = tuple[str | None, int | None, int]


def spans(window: Window, at: int) -> list[tuple[int, int]]:
    """All windows of a moment, looked for one by one."""
    found = []
    for start in range(at - 3 * window.size, at + 1):
        aligned = (start - window.offset) % (window.slide if window.kind == "HOP" else window.size) == 0
        lengths = range(window.slide, window.size + 1, window.slide) if window.kind == "CUMULATE" else [window.size]
        found += [(start, start + length) for length in lengths if aligned and start <= at < start + length]
    return found


class Reference:
    def __init__(self, window: Window) -> None:
        self._window = window
        self._open: dict[tuple[int, Any], list[tuple[int, int | None]]] = {}
        self._watermark = -(1 << 60)
        self.results: list[tuple[Any, ...]] = []

    def process(self, rows: Sequence[Row]) -> None:
        for word, number, at in rows:
            for start, end in spans(self._window, at):
                if end - 1 > self._watermark:
                    self._open.setdefault((end, word), []).append((start, number))

    def watermark(self, value: int) -> None:
        self._watermark = max(self._watermark, value)
        for end, word in [key for key in self._open if key[0] - 1 <= value]:
            content = self._open.pop((end, word))
            numbers = [number for _, number in content if number is not None]
            total = sum(numbers) if numbers else None
            self.results.append((word, len(content), total, len(set(numbers)), content[0][0], end, end - 1))


class SessionReference:
    """Sessions of each word in a list, one row at a time."""

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._open: dict[Any, list[tuple[int, int, list[int | None]]]] = {}
        self._watermark = -(1 << 60)
        self.results: list[tuple[Any, ...]] = []

    def process(self, rows: Sequence[Row]) -> None:
        for word, number, at in rows:
            known = self._open.setdefault(word, [])
            start, end, numbers = at, at + self._gap, [number]
            touching = [one for one in known if one[0] <= end and start <= one[1]]
            for one in touching:
                start, end, numbers = min(start, one[0]), max(end, one[1]), one[2] + numbers
            if end - 1 > self._watermark:
                self._open[word] = [one for one in known if one not in touching] + [(start, end, numbers)]

    def watermark(self, value: int) -> None:
        self._watermark = max(self._watermark, value)
        for word, known in self._open.items():
            for start, end, content in [one for one in known if one[1] - 1 <= value]:
                numbers = [number for number in content if number is not None]
                results = (sum(numbers), max(numbers)) if numbers else (None, None)
                self.results.append((word, len(content), *results, start, end, end - 1))
            self._open[word] = [one for one in known if one[1] - 1 > value]


class Vectorised(OperatorRun):
    def __init__(self, window: Window) -> None:
        calls = (*CALLS[:2], AggregateCall("MAX", 1, pa.int64())) if window.kind == "SESSION" else CALLS
        super().__init__(WindowAggregateOperator, WindowAggregate((0,), calls, window, 2, INPUT, RESULT))

    def process(self, rows: Sequence[Row]) -> None:
        if rows:
            plain = batch_of([(0, row) for row in rows], PLAIN)
            self.operator.process(Records([plain.cast(INPUT)]))

    @property
    def results(self) -> list[tuple[Any, ...]]:
        emitted = [batch for stub in self._stubs for batch in stub.emitted]
        plain = pa.schema([f.with_type(pa.int64()) if pa.types.is_timestamp(f.type) else f for f in RESULT])
        return [tuple(row) for batch in emitted for row in rows_of(batch.cast(plain))]


ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, -7, None]), st.integers(-15, 60)), max_size=12
)
STEPS = st.lists(st.one_of(ROWS, st.integers(-10, 70), st.just("restart")), max_size=8)


@pytest.mark.parametrize("window", [*WINDOWS, Window("SESSION", 4), Window("SESSION", 1)], ids=str)
@given(steps=STEPS)
@settings(max_examples=60)
def test_windows(window: Window, steps: list[Any]) -> None:
    expected = SessionReference(window.size) if window.kind == "SESSION" else Reference(window)
    got = Vectorised(window)
    for step in [*steps, 1 << 40]:
        if step == "restart":
            got.restart()
        elif isinstance(step, int):
            expected.watermark(step)
            got.watermark(step)
            assert sorted(got.results, key=str) == sorted(expected.results, key=str)
        else:
            expected.process(step)
            got.process(step)
    assert got.entries == 0
    ends = [row[5] for row in got.results]
    words = {row[0] for row in got.results}
    assert all(
        [row[5] for row in got.results if row[0] == word] == sorted(row[5] for row in got.results if row[0] == word)
        for word in words
    ), ends


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window("TUMBLE", 10), [("a", 2, 0, 10), ("b", 1, 0, 10), ("a", 1, 10, 20)]),
        (Window("HOP", 10, 5), [("a", 1, -5, 5), ("a", 2, 0, 10), ("b", 1, 0, 10), ("a", 2, 5, 15), ("b", 1, 5, 15)]),
        (Window("SESSION", 4), [("a", 1, 3, 7), ("a", 1, 8, 12), ("b", 1, 8, 12), ("a", 1, 14, 18)]),
    ],
    ids=str,
)
def test_windows_of_processing_time_end_by_the_clock(window: Window, expected: list[tuple[Any, ...]]) -> None:
    fields = [INPUT.field(0), pa.field("rows", pa.int64()), pa.field("start", pa.int64()), pa.field("end", pa.int64())]
    spec = WindowAggregate((0,), CALLS[:1], window, None, INPUT, pa.schema(fields), ("start", "end"))
    got = OperatorRun(WindowAggregateOperator, spec)
    for now in range(25):
        got.stub.now = now
        for moment in sorted(moment for moment in got.stub.timers if moment < now):
            for _ in got.stub.timers.pop(moment):
                got.operator.on_timer(moment, TimeDomain.PROCESSING_TIME)
        words = {3: ["a"], 8: ["a", "b"], 14: ["a"]}.get(now, [])
        for word in words:
            got.take([(0, (word, 1, None))], INPUT)
        got.operator.on_watermark(1 << 40)
    assert got.changes[: len(expected)] == [(0, row) for row in expected]


def test_a_row_without_a_time_is_refused() -> None:
    got = Vectorised(Window("TUMBLE", 10))
    with pytest.raises(ProgramError, match="The event time of a row is NULL"):
        got.process([("a", 1, None)])  # type: ignore[list-item]


def windowed(stream: DataStream) -> DataStream:
    timed = timed_columns(stream, PLAIN, Behind(2, 20))
    spec = WindowAggregate((0,), CALLS, Window("HOP", 10, 5), 2, PLAIN, RESULT)
    windows = timed.key_by(KeyColumns((0,))).transform("Windows", spec, ColumnsType(RESULT)).uid("windows")
    return windows.transform("Rows", ColumnsToRows(RESULT)).uid("rows")


@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 1)])
def test_windows_of_a_job_come_back_from_a_savepoint(tmp_path: Path, before: int, after: int) -> None:
    rows = [(f"w{n % 7}", n % 4, n) for n in range(300)]
    halves = Halves(tmp_path)
    expected = Reference(Window("HOP", 10, 5))
    expected.process(rows)
    expected.watermark(1 << 40)

    got = halves.save(windowed, [rows[:100], rows[100:150]], before)
    early = len(got)
    got += halves.resume(windowed, [rows[:100], rows[100:150], rows[150:]], after)

    plain = [tuple(_plain(value) for value in row) for row in got]
    assert sorted(plain, key=str) == sorted(expected.results, key=str)
    assert 0 < early < len(got)


def _plain(value: Any) -> Any:
    return round(value.replace(tzinfo=UTC).timestamp() * 1000) if isinstance(value, datetime) else value
