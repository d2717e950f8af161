"""Savepoints on the engine in memory: what comes back, in the same program or a changed one, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from kit import first
from savepointkit import Halves

from firesteel.common import Encoder, Row, Time, Types
from firesteel.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.engine.savepoints.taking import dispose
from firesteel.errors import JobExecutionError, SavepointError
from firesteel.testing import ProcessingTime, Record, Watermark

BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
RESCALED = pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 1), (1, 2)])


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    return Halves(tmp_path)


class Total(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class EveryKind(KeyedProcessFunction):
    """A state of each kind, some with a time to live, one big list and one big map, and timers of both kinds."""

    def open(self, runtime_context: RuntimeContext) -> None:
        ttl = StateTtlConfig.new_builder(Time.seconds(1000)).build()
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        stamped = ValueStateDescriptor("stamped", Types.PICKLED_BYTE_ARRAY())
        stamped.enable_time_to_live(ttl)
        marks = MapStateDescriptor("marks", Types.LONG(), Types.STRING())
        marks.enable_time_to_live(ttl)
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.stamped = runtime_context.get_state(stamped)
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.squares = runtime_context.get_map_state(MapStateDescriptor("squares", Types.LONG(), Types.STRING()))
        self.marks = runtime_context.get_map_state(marks)
        self.most = runtime_context.get_reducing_state(ReducingStateDescriptor("most", max, Types.LONG()))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Total(), pair))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        _, number = value
        self.count.update((self.count.value() or 0) + 1)
        self.stamped.update({"last": number})
        self.seen.add(number)
        self.squares.put(number, str(number * number))
        self.marks.put(number % 3, f"m{number}")
        self.most.add(number)
        self.mean.add(number)
        ctx.timer_service().register_event_time_timer(1000 + number)
        ctx.timer_service().register_processing_time_timer(5000 + number % 5)
        yield (
            ctx.get_current_key(),
            self.count.value(),
            self.stamped.value()["last"],
            sum(self.seen.get()),
            len(list(self.squares.items())),
            sorted(self.marks.items()),
            self.most.get(),
            self.mean.get(),
        )

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), "timer", timestamp, ctx.time_domain().name


def every_kind(stream: DataStream) -> DataStream:
    return stream.key_by(first, key_type=Types.STRING()).process(EveryKind()).uid("every").name("every kind")


def steps_of(records: int, keys: int = 7) -> list[Any]:
    numbers = [[(f"k{n % keys}", n) for n in range(at, min(at + 40, records))] for at in range(0, records, 40)]
    return [ProcessingTime(1000), *numbers]


END = [ProcessingTime(6000), [Record(("k0", 5000), 1100)], Watermark(3000)]


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
    with pytest.raises(JobExecutionError, match=r"was saved as that of 'sessions'.*keeps 'windows' now"):
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
    assert [told for _, _, told in first_half if told is not None] == [(False, [], [], [])] * 2
    former = [[value for subtask, value, _ in first_half if subtask == number] for number in (0, 1)]
    order = former[0] + former[1]

    found = halves.resume(lists, [*begin, *end], after)
    told = {subtask: told for subtask, _, told in found if told is not None}

    assert set(told) == set(range(after))
    assert all(restored for restored, _, _, _ in told.values())
    assert all(union == [0, 1, 2, 3, 4] for _, _, union, _ in told.values())
    splits = [split for _, (_, split, _, _) in sorted(told.items())]
    assert splits == {1: [order], 2: former, 3: [order[:2], order[2:4], order[4:]]}[after]
    pieces = sorted(piece for _, _, _, raw in told.values() for piece in raw)
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


# What is in it


def test_declared_keys_and_values_are_columns(halves: Halves) -> None:
    halves.save(every_kind, [[("a", 1), ("b", 2), ("a", 3)]], 2)
    states = {state["name"]: state for op in halves.manifest()["operators"] for state in op["states"]}

    def table(name: str) -> list[dict[str, Any]]:
        files = [Path(halves.path) / file["path"] for file in states[name]["files"]]
        return sorted((row for file in files for row in pq.read_table(file).to_pylist()), key=str)

    assert table("count") == [{"key": "a", "value": 2}, {"key": "b", "value": 1}]
    assert table("mean") == [{"key": "a", "value": {"f0": 4, "f1": 2}}, {"key": "b", "value": {"f0": 2, "f1": 1}}]
    assert table("seen")[0] == {"key": "a", "position": 0, "value": 1}
    assert table("squares")[0] == {"key": "a", "map_key": 1, "value": "1"}
    assert sorted(table("stamped")[0]) == ["key", "last_used", "value_pickle"]
    assert table("event-time timers") == [
        {"key": "a", "time": 1001},
        {"key": "a", "time": 1003},
        {"key": "b", "time": 1002},
    ]
    assert states["count"]["type"] == "LONG"


def test_a_key_that_is_not_declared_can_be_looked_for(halves: Halves) -> None:
    def build(stream: DataStream) -> DataStream:
        return stream.key_by(lambda record: (record[0], 1)).process(EveryKind()).uid("every")

    halves.save(build, [[("a", 1)]], 1)
    (file,) = Path(halves.path).glob("operators/every/count/*.parquet")
    assert pq.read_table(file).to_pydict()["key"] == ["('a', 1)"]


def test_the_manifest_knows_positions_and_watermarks(halves: Halves) -> None:
    halves.save(every_kind, [[Record(("a", 1), 5)], Watermark(7)], 2)
    operators = {op["uid"]: op for op in halves.manifest()["operators"]}
    assert operators["script"]["position"] == 2
    assert operators["every"]["watermark"] == 7
    assert operators["every"]["parallelism"] == 2


# Changed programs


def test_a_removed_operator_is_refused_unless_it_is_allowed(halves: Halves) -> None:
    halves.save(every_kind, [[("a", 1)]])

    def other(stream: DataStream) -> DataStream:
        return stream.map(str)

    with pytest.raises(SavepointError, match=r"has state of 'every kind' .uid every., which no operator.*takes over"):
        halves.resume(other, [[("a", 1)], [("b", 2)]])
    assert halves.resume(other, [[("a", 1)], [("b", 2)]], lenient=True) == ["('b', 2)"]


def test_operators_may_be_added_and_moved(halves: Halves) -> None:
    def more(stream: DataStream) -> DataStream:
        doubled = stream.map(lambda record: (record[0], record[1] * 2))
        keyed = doubled.key_by(first).reduce(lambda a, b: (a[0], a[1] + b[1]))
        return keyed.key_by(first, key_type=Types.STRING()).process(EveryKind()).uid("every")

    halves.save(every_kind, [[("a", 1), ("a", 2)]])
    found = halves.resume(more, [[("a", 1), ("a", 2)], [("a", 5)]], 3)
    assert found[0][:4] == ("a", 3, 10, 1 + 2 + 10)


class Valued(KeyedProcessFunction):
    def __init__(self, declared: Any, value: Any) -> None:
        self.declared, self.next = declared, value

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("held", self.declared))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield self.state.value()
        self.state.update(self.next)


def valued(declared: Any, value: Any) -> Any:
    return lambda stream: stream.key_by(first).process(Valued(declared, value)).uid("valued")


def test_a_changed_type_is_refused(halves: Halves) -> None:
    halves.save(valued(Types.LONG(), 1), [[("a", 1)]])
    with pytest.raises(JobExecutionError, match=r"value state of STRING in this program, but.*value state of LONG"):
        halves.resume(valued(Types.STRING(), "x"), [[("a", 1)], [("a", 2)]])


@dataclass
class Account:
    name: str


def test_a_dataclass_may_get_fields_with_defaults(halves: Halves, monkeypatch: pytest.MonkeyPatch) -> None:
    anything = Types.PICKLED_BYTE_ARRAY()
    halves.save(valued(anything, Account("ada")), [[("a", 1)]])

    @dataclass
    class Newer:
        name: str
        balance: int = 5
        notes: list[str] = field(default_factory=list)

    Newer.__qualname__ = Newer.__name__ = "Account"
    monkeypatch.setattr(f"{__name__}.Account", Newer)
    (found,) = halves.resume(valued(anything, None), [[("a", 1)], [("a", 2)]])
    assert (found.name, found.balance, found.notes) == ("ada", 5, [])


def test_a_field_without_a_default_is_refused(halves: Halves, monkeypatch: pytest.MonkeyPatch) -> None:
    anything = Types.PICKLED_BYTE_ARRAY()
    halves.save(valued(anything, Account("ada")), [[("a", 1)]])

    @dataclass
    class Newer:
        name: str
        balance: int

    Newer.__qualname__ = Newer.__name__ = "Account"
    monkeypatch.setattr(f"{__name__}.Account", Newer)
    with pytest.raises(SavepointError, match=r"Account has got a field 'balance' without a default"):
        halves.resume(valued(anything, None), [[("a", 1)], [("a", 2)]])


def test_a_row_may_get_fields(halves: Halves) -> None:
    before = Types.ROW_NAMED(["name"], [Types.STRING()])
    after = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    halves.save(valued(before, Row(name="ada")), [[("a", 1)]])
    assert halves.resume(valued(after, Row(name="b", age=1)), [[("a", 1)], [("a", 2)]]) == [Row(name="ada", age=None)]


def test_a_row_that_loses_a_field_is_refused(halves: Halves) -> None:
    before = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    after = Types.ROW_NAMED(["name"], [Types.STRING()])
    halves.save(valued(before, Row(name="ada", age=1)), [[("a", 1)]])
    with pytest.raises(JobExecutionError, match=r"what was saved of it is value state of ROW<name STRING, age INT>"):
        halves.resume(valued(after, Row(name="b")), [[("a", 1)], [("a", 2)]])


# Life


def test_the_job_goes_on_after_a_savepoint(halves: Halves) -> None:
    found = halves.save(every_kind, [[("a", 1)], [("a", 2)]], stop=False)
    assert [one[1] for one in found if one[1] != "timer"] == [1, 2]
    assert halves.resume(every_kind, [[("a", 1)], [("a", 2)], [("a", 3)]])[0][1] == 3


def test_draining_fires_all_timers_first(halves: Halves) -> None:
    found = halves.save(every_kind, [[("a", 1)]], drain=True)
    assert ("a", "timer", 1001, "EVENT_TIME") in found
    assert halves.manifest()["drained"]
    # What comes later is not late: a drained savepoint can be gone on from all the same.
    assert halves.resume(every_kind, [[("a", 1)], [("a", 3)]])[0][:2] == ("a", 2)


def test_two_jobs_may_begin_with_one_savepoint(halves: Halves) -> None:
    halves.save(every_kind, [[("a", 1)]])
    twice = [halves.resume(every_kind, [[("a", 1)], [("a", number)]])[0] for number in (5, 7)]
    assert [(one[1], one[3]) for one in twice] == [(2, 6), (2, 8)]


def test_what_is_no_savepoint_is_told(halves: Halves, tmp_path: Path) -> None:
    halves.path = str(tmp_path / "nowhere")
    with pytest.raises(SavepointError, match=r"nowhere is no savepoint: it has no manifest.json. It is not there"):
        halves.resume(every_kind, [])
    (tmp_path / "nowhere").mkdir()
    with pytest.raises(SavepointError, match=r"a savepoint was never completed in it"):
        halves.resume(every_kind, [])
    (tmp_path / "nowhere" / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(SavepointError, match=r"it has format 99, of a newer Firesteel"):
        halves.resume(every_kind, [])


def test_a_damaged_file_is_told(halves: Halves) -> None:
    halves.save(every_kind, [[("a", 1), ("a", 2)]], 1)
    (one,) = Path(halves.path).glob("operators/every/count/*.parquet")
    (other,) = Path(halves.path).glob("operators/every/seen/*.parquet")
    shutil.copy(other, one)
    with pytest.raises(SavepointError, match=r"is damaged: operators/every/count/.* has 2 rows, its manifest says 1"):
        halves.resume(every_kind, [[("a", 1), ("a", 2)]])


def test_only_a_savepoint_is_disposed_of(halves: Halves, tmp_path: Path) -> None:
    halves.save(every_kind, [[("a", 1)]])
    dispose(halves.path)
    assert not Path(halves.path).exists()
    with pytest.raises(SavepointError, match=r"is no savepoint.*Nothing was deleted"):
        dispose(str(tmp_path))
    assert tmp_path.exists()


def test_a_savepoint_needs_a_directory(halves: Halves) -> None:
    job, _, _ = halves.start(every_kind, [[("a", 1)]], False, 1, {})
    with pytest.raises(SavepointError, match=r"Where should the savepoint go"):
        job.trigger_savepoint()
    job.cancel()
    with pytest.raises(SavepointError, match=r"the job was cancelled"):
        job.trigger_savepoint(str(halves.folder))


def test_checkpoints_know_the_size_of_each_operators_state(halves: Halves) -> None:
    """What is written again, or removed, does not count twice."""

    class Held(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            self.text.update("x" * value[1] if value[1] else None)
            yield value

    def build(stream: DataStream) -> DataStream:
        return stream.key_by(first).process(Held()).uid("held").name("held")

    full = [[(f"k{n}", 1000) for n in range(100)], [("k0", 1000)]]
    smaller = [[(f"k{n}", 0) for n in range(90)], [("k99", 1000)]]
    for backend in ("hashmap", "rocksdb"):
        for steps, low, high in ((full, 90_000, 150_000), ([*full, *smaller], 9_000, 110_000)):
            job, _, reader = halves.start(build, steps, True, 2, {"state.backend.type": backend})
            job.get_job_execution_result().result()
            reader.join()
            last = job.get_checkpoint_statistics().result().latest_completed
            assert last is not None
            assert low < last.operator_state_sizes["held"] < high, (backend, last)


def test_a_file_sink_goes_on_after_a_savepoint(halves: Halves, tmp_path: Path) -> None:
    """A part that is still written to when the job stops becomes visible then, and the next job begins others."""

    def build(stream: DataStream) -> DataStream:
        texts = stream.map(str).uid("texts")
        sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
        texts.sink_to(sink.with_rolling_policy(RollingPolicy.default_rolling_policy()).build()).uid("files")
        return texts

    steps = [[10 * n + m for m in range(10)] for n in range(6)]
    halves.save(build, steps[:3], 2)
    halves.resume(build, steps, 3)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [path for path in files if path.name.startswith((".", "_"))]
    assert sorted(int(line) for path in files for line in path.read_text().split()) == list(range(60))
