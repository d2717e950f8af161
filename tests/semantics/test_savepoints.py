"""Savepoints on the engine in memory: all that comes back, and at which parallelism."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from everykind import END, every_kind, steps_of
from kit import first
from savepointkit import Halves

from firesteel.common import Time, Types
from firesteel.datastream import (
    CheckpointedFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.errors import JobExecutionError
from firesteel.testing import Record, Watermark

BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
RESCALED = pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 1), (1, 2)])


@BACKENDS
@RESCALED
def test_every_kind_of_state_comes_back(halves: Halves, backend: str, before: int, after: int) -> None:
    begin, end = steps_of(400), [[(f"k{n % 7}", n) for n in range(400, 480)], *END]
    settings = {"state_backend_type": backend}
    expected = halves.whole(every_kind, [*begin, *end], 2, **settings)

    found = halves.save(every_kind, begin, before, **settings)
    found += halves.resume(every_kind, [*begin, *end], after, **settings)

    assert sorted(map(str, found)) == sorted(map(str, expected))
    for key in ("k0", "k3"):
        assert [one for one in found if one[0] == key and one[1] != "timer"] == [
            one for one in expected if one[0] == key and one[1] != "timer"
        ]


def test_collections_in_blocks_come_back(halves: Halves) -> None:
    begin, end = steps_of(2000, keys=2), [[("k0", 1), ("k1", 2)], *END]
    expected = halves.whole(every_kind, [*begin, *end])

    found = halves.save(every_kind, begin) + halves.resume(every_kind, [*begin, *end], 3)

    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize(("one", "other"), [("hashmap", "rocksdb"), ("rocksdb", "hashmap")])
def test_another_backend_takes_over(halves: Halves, one: str, other: str) -> None:
    begin, end = steps_of(200), [[("k1", 7)], *END]
    expected = halves.whole(every_kind, [*begin, *end])

    found = halves.save(every_kind, begin, state_backend_type=one)
    found += halves.resume(every_kind, [*begin, *end], state_backend_type=other)

    assert sorted(map(str, found)) == sorted(map(str, expected))


# Windows


class Told(ProcessWindowFunction):
    """Counts the firings of a key, and of a window, in state."""

    def __init__(self, merging: bool = False) -> None:
        self.merging = merging

    def process(self, key: Any, context: ProcessWindowFunction.Context, elements: Any) -> Iterator[Any]:
        fired = context.global_state().get_state(ValueStateDescriptor("fired", Types.LONG()))
        fired.update((fired.value() or 0) + 1)
        window = context.window()
        yield key, getattr(window, "start", None), list(elements), fired.value(), self.again(context)

    def again(self, context: ProcessWindowFunction.Context) -> Any:
        if self.merging:
            return None
        again = context.window_state().get_state(ValueStateDescriptor("again", Types.LONG()))
        again.update((again.value() or 0) + 1)
        return again.value()


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


WINDOWS = {
    "tumbling, folded": lambda keyed: keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).reduce(add),
    "tumbling, lateness": lambda keyed: (
        keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).allowed_lateness(200).reduce(add, Told())
    ),
    "sliding, folded": lambda keyed: keyed.window(
        SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(50))
    ).reduce(add),
    "elements": lambda keyed: keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).process(Told()),
    "sessions, folded": lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(30))).reduce(add),
    "sessions, elements": lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(30))).process(
        Told(merging=True)
    ),
    "counted": lambda keyed: keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(3)).process(Told()),
}


@BACKENDS
@pytest.mark.parametrize("windows", WINDOWS)
def test_windows_go_on(halves: Halves, windows: str, backend: str) -> None:
    def build(stream: DataStream) -> DataStream:
        return WINDOWS[windows](stream.key_by(first)).uid("windows")

    times = [5, 20, 130, 60, 140, 210, 95, 300, 250, 330, 180, 360]
    records = [[Record((f"k{n % 3}", n), time) for n in range(at, at + 3)] for at, time in enumerate(times)]
    steps = [part for pair in zip(records, map(Watermark, range(0, 360, 30)), strict=True) for part in pair]
    expected = halves.whole(build, steps, state_backend_type=backend)
    for cut in (4, 11):
        found = halves.save(build, steps[:cut], 2, state_backend_type=backend)
        found += halves.resume(build, steps, 3, state_backend_type=backend)
        assert sorted(map(str, found)) == sorted(map(str, expected)), cut


def test_an_interval_join_goes_on(halves: Halves) -> None:
    def build(stream: DataStream) -> DataStream:
        from firesteel.datastream.functions import ProcessJoinFunction

        class Pair(ProcessJoinFunction):
            def process_element(self, left: Any, right: Any, context: Any) -> Iterator[Any]:
                yield left, right

        left, right = stream.filter(lambda r: r[1] % 2 == 0), stream.filter(lambda r: r[1] % 2 == 1)
        joined = (
            left.key_by(first).interval_join(right.key_by(first)).between(Time.milliseconds(-20), Time.milliseconds(20))
        )
        return joined.process(Pair()).uid("join")

    steps = [[Record((f"k{n % 2}", n // 2), 10 * n)] for n in range(12)]
    expected = halves.whole(build, steps)
    found = halves.save(build, steps[:6], 2) + halves.resume(build, steps, 3)
    assert sorted(found) == sorted(expected)
    assert len(expected) > 5


def test_windows_of_another_kind_are_refused(halves: Halves) -> None:
    def sessions(stream: DataStream) -> DataStream:
        return WINDOWS["sessions, folded"](stream.key_by(first)).uid("windows")

    def elements(stream: DataStream) -> DataStream:
        return WINDOWS["elements"](stream.key_by(first)).uid("windows")

    halves.save(sessions, [[Record(("a", 1), 10)]])
    with pytest.raises(
        JobExecutionError, match=r"saved as 'sessions of reduced values'.*keeps 'windows of elements' now"
    ):
        halves.resume(elements, [[Record(("a", 1), 10)]])


# State without keys


class Lists(MapFunction, CheckpointedFunction):
    """Keeps the records it saw in a list of each mode, and says once what it began with."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.split = store.get_list_state(ListStateDescriptor("split", Types.LONG()))
        self.union = store.get_union_list_state(ListStateDescriptor("union", Types.LONG()))
        raw = [piece.decode() for piece in context.get_raw_operator_states()]
        self.began: Any = (context.is_restored(), list(self.split.get()), sorted(self.union.get()), raw)
        self.saw: list[int] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.union.update(list(self.union.get()) if self.subtask == 0 else [])

    def map(self, value: Any) -> Any:
        began, self.began = self.began, None
        self.split.add(value)
        self.union.add(value)
        self.saw.append(value)
        return self.subtask, value, began

    def snapshot_state(self, context: Any) -> None:
        context.set_raw_operator_state(f"{self.subtask}:{self.saw}".encode())


def lists(stream: DataStream) -> DataStream:
    return stream.rebalance().map(Lists()).uid("lists")


@pytest.mark.parametrize("after", [1, 2, 3])
def test_lists_of_operators_are_shared_out(halves: Halves, after: int) -> None:
    begin, end = [[0, 1, 2, 3, 4]], [list(range(10, 10 + after))]
    first_half = halves.save(lists, begin, 2)
    assert [reports for _, _, reports in first_half if reports is not None] == [(False, [], [], [])] * 2
    former = [[value for subtask, value, _ in first_half if subtask == number] for number in (0, 1)]
    order = former[0] + former[1]

    found = halves.resume(lists, [*begin, *end], after)
    reports = {subtask: reports for subtask, _, reports in found if reports is not None}

    assert set(reports) == set(range(after))
    assert all(restored for restored, _, _, _ in reports.values())
    assert all(union == [0, 1, 2, 3, 4] for _, _, union, _ in reports.values())
    splits = [split for _, (_, split, _, _) in sorted(reports.items())]
    assert splits == {1: [order], 2: former, 3: [order[:2], order[2:4], order[4:]]}[after]
    pieces = sorted(piece for _, _, _, raw in reports.values() for piece in raw)
    assert pieces == [f"{number}:{former[number]}" for number in (0, 1)]


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Ruled(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, sorted(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.get_broadcast_state(RULES).put(value[1], value[2])
        yield from ()


def test_broadcast_state_is_copied_to_all(halves: Halves) -> None:
    def build(stream: DataStream) -> DataStream:
        rules = stream.filter(lambda r: r[0] == "rule").broadcast(RULES)
        return stream.filter(lambda r: r[0] != "rule").key_by(first).connect(rules).process(Ruled()).uid("ruled")

    begin = [[("rule", "a", 1), ("rule", "b", 2)]]
    end = [[(f"k{n}", n) for n in range(8)]]
    halves.save(build, begin, 2)
    found = halves.resume(build, [*begin, *end], 3)
    assert len(found) == 8
    assert all(rules == [("a", 1), ("b", 2)] for _, rules in found)


# Event time


def test_event_time_goes_on(halves: Halves) -> None:
    """Records that are late before the savepoint are late after it, too, whatever the parallelism."""

    class Told(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            yield value, ctx.timer_service().current_watermark()

    def build(stream: DataStream) -> DataStream:
        return stream.key_by(first).process(Told()).uid("told")

    begin = [[Record(("a", 1), 10)], Watermark(50)]
    halves.save(build, begin, 2)
    found = halves.resume(build, [*begin, [Record((f"k{n}", n), 20) for n in range(9)]], 3)
    assert {watermark for _, watermark in found} == {50}


def test_event_time_does_not_go_back_with_another_source(halves: Halves) -> None:
    """A source that the savepoint does not know begins at the beginning; windows that have fired do not fire again."""

    def build(stream: DataStream) -> DataStream:
        return WINDOWS["tumbling, folded"](stream.key_by(first)).uid("windows")

    def other(stream: DataStream) -> DataStream:
        return build(stream.uid("another"))

    halves.save(build, [[Record(("a", 1), 10)], Watermark(150)])
    found = halves.resume(other, [[Record(("a", 5), 20), Record(("a", 7), 160)]], lenient=True)
    assert found == [("a", 7)]
