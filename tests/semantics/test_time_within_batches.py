"""Event time moves while a batch is worked on: in steps of so many records, the same ones in a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from kit import NO_TIME, Field, ascending, first

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkGenerator, WatermarkOutput
from firesteel.connectors.partitions import PartitionEnumerator
from firesteel.connectors.source import Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.datastream import (
    BroadcastProcessFunction,
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.base import Source
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import MapStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.engine.coordinator import LEAST_STEP, STEPS
from firesteel.testing import Crash, run_pipeline

SECOND, MINUTE = 1000, 60_000
TEN_MINUTES = [("k", second * SECOND) for second in range(600)]
STEP = 600 // STEPS
"""Records between two watermarks of one subtask, where all of these are one batch."""


class CountPerMinute(KeyedProcessFunction):
    """Of the getting-started page."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        if self.count.value() is None:
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + MINUTE)
        self.count.update((self.count.value() or 0) + 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield self.count.value()
        self.count.clear()


class SeesWatermark(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


def timed(env: StreamExecutionEnvironment, records: list[Any], width: int = 1) -> DataStream:
    return env.from_collection(records).assign_timestamps_and_watermarks(ascending()).set_parallelism(width)


@pytest.mark.both_engines
@pytest.mark.spark_sample
def test_timers_fire_while_ten_minutes_are_read_in_one_batch(run: Any) -> None:
    counts = run(lambda env: timed(env, TEN_MINUTES).key_by(first).process(CountPerMinute()))
    assert sum(counts) == 600
    # Each is a minute, and what was left of the step in which it ended.
    assert all(60 <= count <= 60 + STEP for count in counts[:-1])
    assert len(counts) > 6


def test_a_window_has_no_more_than_its_records(run: Any) -> None:
    """The state of windows does not pile up until the batch ends: at any moment few are open."""

    class Open(KeyedProcessFunction):
        open_at_once: Counter[int]

        def open(self, runtime_context: RuntimeContext) -> None:
            self.seen: set[int] = set()

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            window = ctx.timestamp() // MINUTE
            self.seen.add(window)
            ctx.timer_service().register_event_time_timer((window + 1) * MINUTE - 1)
            yield len(self.seen)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
            self.seen.remove(timestamp // MINUTE)

    assert max(run(lambda env: timed(env, TEN_MINUTES).key_by(first).process(Open()))) == 2


LATE = OutputTag("late")


def late_ones(env: StreamExecutionEnvironment) -> DataStream:
    records: list[Any] = list(TEN_MINUTES)
    # Behind each of 25 records one that is five minutes old.
    for place in range(590, 590 - 25 * 5, -5):
        records.insert(place, ("k", (place - 300) * SECOND))
    minutes = timed(env, records).key_by(first).window(TumblingEventTimeWindows.of(Time.minutes(1)))
    return minutes.side_output_late_data(LATE).reduce(lambda one, other: one).get_side_output(LATE)


def test_late_records_are_late(run: Any) -> None:
    assert len(run(late_ones)) == 25


def test_the_records_of_a_step_are_not_late_to_each_other(run: Any) -> None:
    backwards = [("k", (LEAST_STEP - number) * MINUTE) for number in range(LEAST_STEP)]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        minutes = timed(env, backwards).key_by(first).window(TumblingEventTimeWindows.of(Time.minutes(1)))
        return minutes.side_output_late_data(LATE).reduce(lambda one, other: one).get_side_output(LATE)

    assert run(build) == []


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value) * SECOND


def seconds(env: StreamExecutionEnvironment, name: str = "k") -> DataStream:
    """Ten minutes again, with as many subtasks as the job has, each of which reads a part of a batch."""
    numbers = env.from_source(
        NumberSequenceSource(0, 599),
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds()),
        name,
    )
    return numbers.map(lambda second: (name, second * SECOND))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_senders_take_turns(run: Any, width: int) -> None:
    """Each subtask of the source reads a part of its own; time moves by the slowest, from the first steps on."""
    log = run(lambda env: seconds(env).key_by(first).process(SeesWatermark()), width)
    seen = [watermark for _, watermark in log if watermark != NO_TIME]
    assert seen == sorted(seen)
    share = 600 // width
    step = max(-(-share // STEPS), LEAST_STEP)
    slowest = [time for (_, time), watermark in log if watermark != NO_TIME and time < share * SECOND]
    # The first subtask has the oldest records. Apart from its first step, each of them meets what the last step said.
    assert slowest == [second * SECOND for second in range(step, share)]
    assert len(set(seen)) >= -(-share // step) - 1


def test_stages_behind_see_the_same_steps(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        once = seconds(env).key_by(first).map(lambda record: record)
        return once.key_by(lambda record: record[1] % 7).process(SeesWatermark())

    log = run(build, 2)
    assert len({watermark for _, watermark in log}) > 5
    # Nothing overtakes a watermark: no record is as old as the one that it meets.
    assert all(time > watermark for (_, time), watermark in log)


def test_time_that_is_assigned_behind_a_shuffle_moves_too(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        shuffled = env.from_collection(TEN_MINUTES).rebalance().map(lambda record: record).set_parallelism(1)
        assigned = shuffled.assign_timestamps_and_watermarks(ascending())
        return assigned.key_by(first).process(CountPerMinute())

    counts = run(build, 2)
    assert sum(counts) == 600
    assert len(counts) > 3


class Highest(WatermarkGenerator):
    highest = NO_TIME

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(self.highest)


def test_a_generator_is_asked_after_each_step(run: Any) -> None:
    strategy = WatermarkStrategy.for_generator(Highest).with_timestamp_assigner(Field())

    def build(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_collection(TEN_MINUTES).assign_timestamps_and_watermarks(strategy)
        return stream.key_by(first).process(SeesWatermark())

    marks = {watermark for _, watermark in run(build)}
    assert marks == {NO_TIME, *((number * STEP - 1) * SECOND for number in range(1, STEPS))}


class Partitions(PartitionEnumerator[str]):
    bounded = True

    def __init__(self, contents: Mapping[str, list[int]]) -> None:
        self.contents = contents

    def discover(self) -> Mapping[str, str]:
        return {name: name for name in self.contents}

    def starts(self, splits: Mapping[str, str], initial: bool) -> Mapping[str, int]:
        return dict.fromkeys(splits, 0)

    def ends(self, splits: Mapping[str, str], positions: Mapping[str, int]) -> Mapping[str, int]:
        return {name: len(self.contents[name]) for name in splits}

    def finished(self, split: str, position: int) -> bool:
        return position == len(self.contents[split])


class PartitionReader(SourceReader[str, Any]):
    def __init__(self, contents: Mapping[str, list[int]], interleaves: bool) -> None:
        self.contents, self.interleaves = contents, interleaves

    def read(self, split: str, start: int, end: int) -> Iterator[Records[Any]]:
        # In uneven pieces: what is read at once is nobody's business.
        for begun in range(start, end, 17):
            times = self.contents[split][begun : min(begun + 17, end)]
            yield Records([(split, time) for time in times], times)


class Two(Source[str, Any]):
    def __init__(self, interleaves: bool) -> None:
        self.contents = {name: [number * SECOND for number in range(300)] for name in ("a", "b")}
        self.interleaves = interleaves

    def create_enumerator(self) -> Partitions:
        return Partitions(self.contents)

    def create_reader(self) -> PartitionReader:
        return PartitionReader(self.contents, self.interleaves)


@pytest.mark.parametrize("interleaves", [True, False])
def test_splits_of_a_subtask_are_read_in_turn(run: Any, interleaves: bool) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(Two(interleaves), WatermarkStrategy.for_monotonous_timestamps(), "two")
        return stream.key_by(lambda _: 0).process(SeesWatermark())

    log = run(build)
    assert Counter(record for record, _ in log) == Counter((n, s * SECOND) for n in "ab" for s in range(300))
    assert all(time > watermark for (_, time), watermark in log)
    of_first = {watermark for (name, _), watermark in log if name == "a"}
    # One after the other: while the first is read, nobody knows how far the second will be.
    assert len(of_first) == (-(-300 // (STEP // 2)) if interleaves else 1)


def test_two_sources_of_one_task_take_turns(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return seconds(env, "one").union(seconds(env, "two")).key_by(lambda _: 0).process(SeesWatermark())

    log = run(build)
    assert len(log) == 1200
    for name in ("one", "two"):
        assert len({watermark for (source, _), watermark in log if source == name}) == STEPS


class BatchEnumerator(SplitEnumerator[list[Any]]):
    """A batch for each list of records."""

    def __init__(self, batches: list[list[Any]]) -> None:
        self.batches = batches

    def initial(self) -> int:
        return 0

    def latest(self, position: int, max_records: int) -> int:
        return min(position + 1, len(self.batches))

    def ended(self, position: int) -> bool:
        return position == len(self.batches)

    def count(self, start: int, end: int) -> int:
        return sum(map(len, self.batches[start:end]))

    def processing_time(self, position: int) -> int:
        return 1000 * position

    def plan(self, start: int, end: int, parallelism: int) -> list[list[SplitRange[list[Any]]]]:
        whole = [SplitRange(batch, 0, len(batch)) for batch in self.batches[start:end]]
        return [whole, *([] for _ in range(parallelism - 1))]


class BatchReader(SourceReader[list[Any], Any]):
    def read(self, split: list[Any], start: int, end: int) -> Iterator[Records[Any]]:
        yield Records(split, [time for _, time in split])


class InBatches(Source[list[Any], Any]):
    def __init__(self, *batches: list[Any]) -> None:
        self.batches = list(batches)

    def create_enumerator(self) -> BatchEnumerator:
        return BatchEnumerator(self.batches)

    def create_reader(self) -> BatchReader:
        return BatchReader()


@pytest.mark.parametrize("wakes_up", [False, True])
def test_an_idle_source_holds_up_nobody_within_a_batch(run: Any, wakes_up: bool) -> None:
    """It is known from the batches before that it is idle, unless it has records again."""
    busy = InBatches([("busy", -1)], [], [], [("busy", time) for _, time in TEN_MINUTES], [])
    silent = InBatches([("silent", -1)], [], [], [("silent", 5)] * wakes_up, [("silent", MINUTE)])

    def build(env: StreamExecutionEnvironment) -> DataStream:
        one = env.from_source(busy, WatermarkStrategy.for_monotonous_timestamps(), "busy")
        two = env.from_source(
            silent, WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(1)), "silent"
        )
        return one.union(two).key_by(lambda _: 0).process(SeesWatermark())

    marks = {watermark for (source, time), watermark in run(build) if source == "busy" and time >= 0}
    assert marks == {-2, 4} if wakes_up else len(marks) == STEPS


class Fails(SeesWatermark):
    def __init__(self, crash: Crash) -> None:
        self.crash = crash

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        if value[1] == 400 * SECOND:
            self.crash.hit()
        yield from super().process_element(value, ctx)


def test_a_repeated_batch_moves_time_at_the_same_records() -> None:
    crash = Crash()

    def build(function: SeesWatermark) -> Any:
        return lambda env: seconds(env).key_by(first).process(function)

    undisturbed = run_pipeline(build(SeesWatermark()), parallelism=2)
    assert len({watermark for _, watermark in undisturbed}) > 5
    assert run_pipeline(build(Fails(crash)), parallelism=2, restarts=1) == undisturbed
    assert crash.count == 1


RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())


class WithRules(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        yield len(list(ctx.get_broadcast_state(RULES).keys()))

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(RULES).put(value[1], 1)


def test_the_broadcast_records_of_a_batch_come_before_the_others(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        rules = timed(env, TEN_MINUTES).broadcast(RULES)
        return timed(env, TEN_MINUTES).connect(rules).process(WithRules())

    assert set(run(build)) == {600}


class SeesInStageZero(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


def test_a_function_chained_to_the_assigner_sees_the_steps(run: Any) -> None:
    marks = {watermark for _, watermark in run(lambda env: timed(env, TEN_MINUTES).process(SeesInStageZero()))}
    assert marks == {NO_TIME, *((number * STEP - 1) * SECOND - 1 for number in range(1, STEPS))}


def test_an_interval_of_zero_leaves_the_last_watermark_only(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        env.get_config().set_auto_watermark_interval(0)
        return timed(env, TEN_MINUTES).key_by(first).process(SeesWatermark())

    assert {watermark for _, watermark in run(build)} == {NO_TIME}


def test_batch_mode_has_no_steps(run: Any) -> None:
    log = run(
        lambda env: timed(env, TEN_MINUTES).key_by(first).process(SeesWatermark()), mode=RuntimeExecutionMode.BATCH
    )
    assert {watermark for _, watermark in log} == {NO_TIME}
