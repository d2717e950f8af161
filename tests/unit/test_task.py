"""Tasks by themselves: a replay gives the same frames, and frames stay bounded."""

from __future__ import annotations

import ast
import asyncio
import copy
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessJoinFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.functions import PassThroughWindowFunction
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import CountTrigger, EventTimeSessionWindows, SlidingEventTimeWindows
from firesteel.durable.cells import HEADER
from firesteel.durable.header_codec import decode_header
from firesteel.engine.coordinator import Coordinator
from firesteel.engine.pickling import pickle_job
from firesteel.engine.processing_time import ProcessingClock
from firesteel.engine.settings import Settings
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.frames import DRIVER, Frame, decode
from firesteel.runtime.job_spec import JobSpec, SourceShare
from firesteel.runtime.stage_loop import run_stages
from firesteel.runtime.state.store import MemoryStore, StateStore
from firesteel.runtime.task import StageTask


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


class Timed(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value + 5)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield timestamp


class Numbering(MapFunction, CheckpointedFunction):
    """Keeps a count in a field of its own."""

    def initialize_state(self, context: Any) -> None:
        self.saved = context.get_operator_state_store().get_list_state(ListStateDescriptor("count", Types.INT()))
        self.count = sum(self.saved.get())

    def map(self, value: int) -> Any:
        self.count += 1
        return value, self.count

    def snapshot_state(self, context: Any) -> None:
        self.saved.update([self.count])


class Both(ProcessJoinFunction):
    def process_element(self, left: int, right: int, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        yield left, right


class Slow(AsyncFunction):
    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(random.random() / 100)
        return [value]


class Run:
    """A job whose tasks are called by hand."""

    def __init__(self, build: Any, parallelism: int = 2, batch: int = 10) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        build(env)
        graph = build_job_graph(build_stream_graph(env.program, parallelism))
        self.job = JobSpec("id", "job", graph)
        self.payload = pickle_job(self.job)
        ticks = iter(range(1000, 10**6, 1000))
        self.coordinator = Coordinator(
            graph, Settings(max_records=batch), "", clock=ProcessingClock(lambda: next(ticks))
        )
        self.stores: dict[tuple[int, int], MemoryStore] = {}
        self.tasks: dict[tuple[int, int], StageTask] = {}

    def kept(self) -> dict[tuple[int, int], dict[bytes, Any]]:
        """All that the stores hold, without the token that is another one for every attempt."""
        return {
            place: {
                key: decode_header(value).operators if key == HEADER else value for key, value in store.content.items()
            }
            for place, store in self.stores.items()
        }

    def task(self, stage: int, subtask: int) -> StageTask:
        if (stage, subtask) not in self.tasks:
            self.tasks[stage, subtask] = StageTask(self.payload.load(), stage, subtask)
        return self.tasks[stage, subtask]

    def batch(self, start: Any, end: Any, backwards: bool = False) -> list[Frame]:
        """All frames that a batch made. ``backwards``: they arrive in another order, as Spark may deliver them."""
        every: list[Frame] = []

        def recorded(stage: int, subtask: int) -> Recorded:
            if stage and self.task(stage, subtask).outdated(self.store(stage, subtask)):
                # As a worker does it.
                del self.tasks[stage, subtask]
            return Recorded(self.task(stage, subtask), every, backwards)

        run_stages(self.job.graph, self.coordinator.plan(start, end), recorded, self.store)
        return every

    def store(self, stage: int, subtask: int) -> MemoryStore:
        return self.stores.setdefault((stage, subtask), MemoryStore())


class Recorded:
    """A task whose frames are noted."""

    def __init__(self, task: StageTask, every: list[Frame], backwards: bool) -> None:
        self.task = task
        self.every = every
        self.step = -1 if backwards else 1

    def run_source(self, share: SourceShare) -> Iterator[Frame]:
        return self._noted(self.task.run_source(share))

    def run(self, cells: Iterable[bytes], store: StateStore) -> Iterator[Frame]:
        return self._noted(self.task.run(list(cells)[:: self.step], store))

    def _noted(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        for frame in frames:
            self.every.append(frame)
            yield frame


def programs() -> dict[str, Any]:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())

    def keyed(env: StreamExecutionEnvironment) -> None:
        timed = env.from_collection(list(range(40))).assign_timestamps_and_watermarks(strategy)
        timed.key_by(lambda n: n % 5).process(Timed()).key_by(lambda n: n % 3).process(Timed()).print()

    def shipped(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection(list(range(40))).map(lambda n: n)
        numbers.rebalance().map(lambda n: n).shuffle().map(lambda n: n).rescale().print()

    def asked(env: StreamExecutionEnvironment) -> None:
        timed = env.from_collection(list(range(40))).assign_timestamps_and_watermarks(strategy)
        answered = AsyncDataStream.ordered_wait(timed, Slow(), Time.seconds(300), 4)
        answered.key_by(lambda n: n % 5).process(Timed()).print()

    def numbered(env: StreamExecutionEnvironment) -> None:
        env.from_collection(list(range(40))).rebalance().map(Numbering()).print()

    def windowed(env: StreamExecutionEnvironment) -> None:
        timed = env.from_collection([n * 7 % 40 for n in range(40)]).assign_timestamps_and_watermarks(strategy)
        by_key = timed.key_by(lambda n: n % 5)
        by_key.window(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))).reduce(max).print()
        sessions = by_key.window(EventTimeSessionWindows.with_gap(Time.milliseconds(4)))
        sessions.reduce(max).print()
        sessions.trigger(CountTrigger.of(2)).apply(PassThroughWindowFunction()).print()

    def joined(env: StreamExecutionEnvironment) -> None:
        numbers = [n * 7 % 40 for n in range(20)]
        left, right = (
            env.from_collection(numbers).assign_timestamps_and_watermarks(strategy).key_by(lambda n: n % 2)
            for _ in range(2)
        )
        left.interval_join(right).between(Time.milliseconds(-3), Time.milliseconds(3)).process(Both()).print()

    return {
        "keyed": keyed,
        "shipped": shipped,
        "asked": asked,
        "numbered": numbered,
        "windowed": windowed,
        "joined": joined,
    }


@pytest.mark.parametrize("program", list(programs()))
@pytest.mark.parametrize("crashed", [True, False], ids=["new tasks", "the same tasks"])
def test_a_replayed_batch_is_identical(program: str, crashed: bool) -> None:
    """After a crash tasks know the store and the offsets only. Tasks that lived on must not trust their memory."""
    run = Run(programs()[program])
    offsets = [run.coordinator.initial()]
    while not offsets[-1]["last"]:
        offsets.append(run.coordinator.next(offsets[-1]))
    assert len(offsets) == 5
    for start, end in itertools.pairwise(offsets):
        before = copy.deepcopy({key: store.content for key, store in run.stores.items()})
        first = run.batch(start, end)
        after = run.kept()
        run.stores = {key: MemoryStore(content) for key, content in before.items()}
        if crashed:
            run.tasks = {}
        again = run.batch(start, end, backwards=True)
        assert run.kept() == after
        assert _contents(again) == _contents(first)


class FailsOnce(KeyedProcessFunction):
    """Counts per key; the first attempt at the number 15 fails when part of its batch was counted."""

    failed = False

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        if value == 15 and not self.failed:
            self.failed = True
            raise ValueError("once")
        yield self.count.value()


def test_a_task_that_failed_in_the_middle_of_a_batch_forgets_what_it_had_in_memory() -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection(list(range(30))).key_by(lambda n: 0).process(FailsOnce()).print()

    run = Run(build, 1)
    start = run.coordinator.initial()
    middle = run.coordinator.next(start)
    run.batch(start, middle)
    end = run.coordinator.next(middle)
    before = copy.deepcopy({key: store.content for key, store in run.stores.items()})
    with pytest.raises(OperatorFailure, match="once"):
        run.batch(middle, end)
    run.stores = {key: MemoryStore(content) for key, content in before.items()}
    shown = [decode(f.to_bytes()) for f in run.batch(middle, end) if f.stage == DRIVER]
    assert [text for kind, _, text in shown if kind == "stdout"] == ["".join(f"{n}\n" for n in range(11, 21))]


class Counting(AsyncFunction):
    """Emits how many requests are under way: the even ones wait for long."""

    def __init__(self) -> None:
        self.under_way = 0

    async def async_invoke(self, value: int) -> list[tuple[int, int]]:
        self.under_way += 1
        try:
            await asyncio.sleep(0 if value % 2 else 0.2)
            return [(value, self.under_way)]
        finally:
            self.under_way -= 1


class BreaksOnce(MapFunction):
    broken = False

    def map(self, value: Any) -> Any:
        if not self.broken:
            self.broken = True
            raise ValueError("once")
        return value


def test_requests_of_a_batch_that_broke_off_are_not_those_of_the_next_attempt() -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection(list(range(1000)))
        AsyncDataStream.unordered_wait(numbers, Counting(), Time.seconds(300), 400).map(BreaksOnce()).print()

    run = Run(build, 1, 1000)
    start = run.coordinator.initial()
    end = run.coordinator.next(start)
    with pytest.raises(OperatorFailure, match="once"):
        run.batch(start, end)
    shown = [decode(f.to_bytes()) for f in run.batch(start, end) if f.stage == DRIVER]
    lines = "".join(text for kind, _, text in shown if kind == "stdout").splitlines()
    pairs = [ast.literal_eval(line) for line in lines]
    assert sorted(number for number, _ in pairs) == list(range(1000))
    assert max(under_way for _, under_way in pairs) <= 400


def _contents(frames: list[Frame]) -> list[bytes]:
    """All that a batch sent on, prints and commits; not the reports, which tell of the attempt."""
    cells = [frame.to_bytes() for frame in frames]
    return sorted(cell for cell in cells if decode(cell)[0] != "report")


def test_watermarks_after_every_record_fill_frames_too() -> None:
    """They wait with the records; a frame goes out when it is full, not when the batch ends."""

    def build(env: StreamExecutionEnvironment) -> None:
        env.get_config().set_auto_watermark_interval(1)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
        stream = env.from_collection(list(range(20_000))).assign_timestamps_and_watermarks(strategy)
        stream.key_by(lambda n: 0).map(lambda n: n).print()

    run = Run(build, 1, 100_000)
    start = run.coordinator.initial()
    (share,) = run.coordinator.plan(start, run.coordinator.next(start))
    frames = [frame for frame in run.task(0, 0).run_source(share) if frame.stage == 1]
    assert len(frames) > 1
    values = [v for frame in frames for element in decode(frame.to_bytes()) if len(element) == 3 for v in element[1]]
    assert values == list(range(20_000))


def test_every_task_gets_a_mark_and_reports_in_every_batch() -> None:
    run = Run(programs()["keyed"], parallelism=3, batch=1)
    start = run.coordinator.initial()
    frames = run.batch(start, run.coordinator.next(start))
    reports = [frame for frame in frames if frame.stage == DRIVER and decode(frame.to_bytes())[0] == "report"]
    assert Counter((frame.edge, frame.upstream) for frame in reports) == {
        (stage, subtask): 1 for stage in range(3) for subtask in range(3)
    }


def test_frames_for_others_are_passed_on_as_they_are() -> None:
    run = Run(programs()["keyed"])
    foreign = [Frame(9, 1, 2, 3, n, 4, b"anything") for n in range(40)]
    made = list(run.task(1, 0).run([f.to_bytes() for f in foreign], MemoryStore()))
    assert [frame for frame in made if frame.stage == 9] == foreign
