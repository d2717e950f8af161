"""Event time in running jobs: watermarks from strategies, across stages and subtasks, and in BATCH mode.

What a function sees of them, step by step, is in the transcripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kit import BATCH, FOREVER, NO_TIME, TimerLog, ascending, first

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkGenerator, WatermarkOutput
from firesteel.datastream import (
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimeDomain,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import Crash, ListSource, OneInputHarness, ProcessingTime, Record, run_pipeline

ONE_BY_ONE = {"firesteel.batch.max-records": "1"}


def log_of(records: list[Any], function: KeyedProcessFunction, strategy: Any = None, interval: int = 200) -> Any:
    def build(env: StreamExecutionEnvironment) -> Any:
        env.get_config().set_auto_watermark_interval(interval)
        stream = env.from_collection(records)
        # One subtask makes the watermark, whatever the parallelism of those that see it.
        timed = stream.assign_timestamps_and_watermarks(strategy or ascending()).set_parallelism(1)
        return timed.key_by(first).process(function)

    return build


@pytest.mark.both_engines
def test_the_last_watermark_fires_every_timer(run: Any, parallelism: int) -> None:
    records = [(key, 1, [50, 10, FOREVER, -5, 10]) for key in "abcde"]
    log = run(log_of(records, TimerLog()), parallelism)
    for key in "abcde":
        fired = [entry[2:] for entry in log if entry[:2] == ("timer", key)]
        assert fired == [(time, FOREVER) for time in (-5, 10, 50, FOREVER)]


def test_within_a_batch_the_watermark_stands_still(run: Any) -> None:
    records = [("a", 100, [50]), ("a", 200, [])]
    assert run(log_of(records, TimerLog())) == [
        ("element", "a", 100, NO_TIME),
        ("element", "a", 200, NO_TIME),
        ("timer", "a", 50, FOREVER),
    ]


def test_a_watermark_after_every_record_where_the_interval_is_one(run: Any) -> None:
    records = [("a", 100, [150]), ("a", 200, []), ("a", 150, []), ("a", 201, [])]
    assert run(log_of(records, TimerLog(), interval=1)) == [
        ("element", "a", 100, NO_TIME),
        ("element", "a", 200, 99),
        ("timer", "a", 150, 199),
        ("element", "a", 150, 199),
        ("element", "a", 201, 199),
    ]


def test_an_interval_of_zero_leaves_only_the_last_watermark(run: Any) -> None:
    records = [("a", 100, [50]), ("a", 200, []), ("a", 300, [])]
    assert run(log_of(records, TimerLog(), interval=0), config=ONE_BY_ONE) == [
        ("element", "a", 100, NO_TIME),
        ("element", "a", 200, NO_TIME),
        ("element", "a", 300, NO_TIME),
        ("timer", "a", 50, FOREVER),
    ]


def test_out_of_orderness_holds_the_watermark_back(run: Any) -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))
    records = [("a", 100, [49]), ("a", 90, []), ("a", 101, [])]
    log = run(
        log_of(records, TimerLog(), strategy.with_timestamp_assigner(ascending().timestamp_assigner)),
        config=ONE_BY_ONE,
    )
    assert log == [
        ("element", "a", 100, NO_TIME),
        ("timer", "a", 49, 49),
        ("element", "a", 90, 49),
        ("element", "a", 101, 49),
    ]


def test_without_watermarks_time_stands_still_until_the_end(run: Any) -> None:
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(ascending().timestamp_assigner)
    records = [("a", 100, [10]), ("a", 200, [20])]
    assert run(log_of(records, TimerLog(), strategy), config=ONE_BY_ONE) == [
        ("element", "a", 100, NO_TIME),
        ("element", "a", 200, NO_TIME),
        ("timer", "a", 10, FOREVER),
        ("timer", "a", 20, FOREVER),
    ]


class OwnTime(KeyedProcessFunction):
    """Registers its own moment once more, and one that is earlier still, from inside on_timer."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.fired = runtime_context.get_state(ValueStateDescriptor("fired", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(100)
        ctx.timer_service().register_event_time_timer(200)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        count = (self.fired.value() or 0) + 1
        self.fired.update(count)
        if count == 1:
            ctx.timer_service().register_event_time_timer(100)
            ctx.timer_service().register_event_time_timer(40)
        yield timestamp, ctx.timestamp(), ctx.time_domain() is TimeDomain.EVENT_TIME


def test_a_timer_may_register_its_own_and_an_earlier_moment() -> None:
    harness = OneInputHarness(OwnTime(), first)
    harness.process_element(("a", 1))
    harness.process_watermark(200)
    assert harness.output == [(time, time, True) for time in (100, 40, 100, 200)]


def test_subtasks_without_data_see_the_watermark(run: Any) -> None:
    """One key, so one of three subtasks has records; the timers of the second operator's other keys fire too."""
    keys = [f"key-{n}" for n in range(12)]
    records = [*((key, 1, [50]) for key in keys), *(("key-0", 100 + n, []) for n in range(5))]
    log = run(log_of(records, TimerLog()), 3, ONE_BY_ONE)
    fired = {entry[1]: entry[3] for entry in log if entry[0] == "timer"}
    assert fired == dict.fromkeys(keys, 99)


def test_a_slow_stream_brings_all_subtasks_of_its_source_forward(run: Any) -> None:
    """One record a batch: they go to the source's subtasks by turns, so that none holds back event time for ever."""

    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection([("a", n, [1]) for n in range(20)])
        return stream.assign_timestamps_and_watermarks(ascending()).key_by(first).process(TimerLog())

    log = run(build, 3, ONE_BY_ONE)
    marks = [entry[3] for entry in log if entry[0] == "element"]
    # The watermark is that of the subtask that read least recently.
    assert marks == [NO_TIME] * 3 + [n - 1 for n in range(17)]


def test_the_slowest_channel_decides(run: Any) -> None:
    """Two sources, one ahead of the other: event time is that of the one behind."""

    def build(env: StreamExecutionEnvironment) -> Any:
        fast = env.from_collection([("a", 1000, [5]), ("a", 1001, [])])
        slow = env.from_collection([("b", 10, []), ("b", 20, [])])
        streams = [s.assign_timestamps_and_watermarks(ascending()) for s in (fast, slow)]
        return streams[0].union(streams[1]).key_by(first).process(TimerLog())

    log = run(build, config={"firesteel.batch.max-records": "2"})
    # Two sources share a batch of two: one record each.
    assert log == [
        ("element", "a", 1000, NO_TIME),
        ("element", "b", 10, NO_TIME),
        ("timer", "a", 5, 9),
        ("element", "a", 1001, 9),
        ("element", "b", 20, 9),
    ]


def test_a_watermark_crosses_all_stages_in_one_batch(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection([("a", 10, [1]), ("a", 20, []), ("a", 30, [])])
        timed = stream.assign_timestamps_and_watermarks(ascending()).set_parallelism(1)
        passed = timed.key_by(first).process(Passing()).key_by(first).process(Passing())
        return passed.key_by(first).process(TimerLog())

    log = run(build, parallelism, ONE_BY_ONE)
    assert log == [
        ("element", "a", 10, NO_TIME),
        ("timer", "a", 1, 9),
        ("element", "a", 20, 9),
        ("element", "a", 30, 19),
    ]


class Passing(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value


class Stamps(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timestamp()


def test_timestamps_travel_with_records_and_timers_give_theirs(run: Any, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection([("a", 10, [77]), ("b", 20, [])])
        timed = stream.assign_timestamps_and_watermarks(ascending())
        logged = timed.rebalance().filter(lambda r: True).flat_map(lambda r: [r]).key_by(first).process(TimerLog())
        return logged.map(lambda entry: entry[:3]).rebalance().process(Stamps())

    assert sorted(run(build, parallelism)) == [
        (("element", "a", 10), 10),
        (("element", "b", 20), 20),
        (("timer", "a", 77), 77),
    ]


def test_records_without_an_assigner_have_no_timestamp(run: Any) -> None:
    assert run(lambda env: env.from_collection([1]).process(Stamps())) == [(1, NO_TIME)]


def test_a_second_assignment_replaces_the_first(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection([("a", 10, 500, [])]).assign_timestamps_and_watermarks(ascending(1))
        return stream.assign_timestamps_and_watermarks(ascending(2)).process(Stamps())

    assert run(build) == [(("a", 10, 500, []), 500)]


class Batched(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.seen.update((self.seen.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[1] + 1)
        yield ctx.get_current_key(), ctx.timestamp(), self.seen.value()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), f"timer {timestamp}", self.seen.value()


@pytest.mark.both_engines
def test_batch_brings_a_keys_records_in_order_of_time_and_then_its_timers(run: Any, parallelism: int) -> None:
    records = [("a", 300), ("b", 50), ("a", 100), ("a", 200), ("b", 40)]
    log = run(log_of(records, Batched()), parallelism, mode=BATCH)
    assert [entry for entry in log if entry[0] == "a"] == [
        ("a", 100, 1),
        ("a", 200, 2),
        ("a", 300, 3),
        ("a", "timer 101", 3),
        ("a", "timer 201", 3),
        ("a", "timer 301", 3),
    ]
    assert [entry[1:] for entry in log if entry[0] == "b"] == [(40, 1), (50, 2), ("timer 41", 2), ("timer 51", 2)]


def test_batch_takes_records_with_and_without_timestamps(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        timed = env.from_collection([("a", 20), ("a", 10)]).assign_timestamps_and_watermarks(ascending())
        plain = env.from_collection([("a", 15)])
        return timed.union(plain).key_by(first).process(Batched())

    log = run(build, mode=BATCH)
    assert [entry[1] for entry in log[:3]] == [NO_TIME, 10, 20]
    assert [entry[1] for entry in log[3:]] == ["timer 11", "timer 16", "timer 21"]


def test_batch_ignores_timers_that_a_timer_sets(run: Any) -> None:
    """As in Flink: an endless chain of timers would never let the job end."""

    class Chain(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            ctx.timer_service().register_event_time_timer(10)
            ctx.timer_service().register_processing_time_timer(20)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
            ctx.timer_service().register_event_time_timer(timestamp + 1)
            ctx.timer_service().register_processing_time_timer(timestamp + 1)
            yield timestamp, ctx.time_domain()

    log = run(log_of([("a", 1), ("b", 1)], Chain()), mode=BATCH)
    assert log == [(10, TimeDomain.EVENT_TIME), (20, TimeDomain.PROCESSING_TIME)] * 2


def test_a_timer_must_be_a_whole_number(run: Any) -> None:
    class Half(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            ctx.timer_service().register_event_time_timer(value[1] + 0.5)  # type: ignore[arg-type]

    with pytest.raises(Exception, match=r"A timer takes an int \(milliseconds\), got float 1\.5") as caught:
        run(log_of([("a", 1)], Half()))
    assert "Keyed Process" in str(caught.value)


class Times(TimestampAssigner):
    """A number times a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * self.step


class SeesWatermark(ProcessFunction):
    """Chained to its source, in the stage that keeps no state."""

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


@pytest.mark.both_engines
@pytest.mark.spark_sample
def test_a_function_chained_to_a_source_sees_event_time_go_on(run: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times(1))

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([5, 7, 6, 20]).assign_timestamps_and_watermarks(strategy).process(SeesWatermark())

    assert run(build, 1, ONE_BY_ONE) == [(5, NO_TIME), (7, 4), (6, 6), (20, 6)]


class Failing(SeesWatermark):
    def __init__(self, crash: Crash, at: int) -> None:
        self.crash, self.at = crash, at

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        if value == self.at:
            self.crash.hit()
        yield from super().process_element(value, ctx)


@pytest.mark.parametrize("at", [5, 7, 6, 20])
@pytest.mark.parametrize("on_a_source", [True, False])
def test_event_time_goes_on_after_a_failure(at: int, on_a_source: bool) -> None:
    crash = Crash()
    steps = [[5], [7], [6], [20]]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times(1))

    def build(env: StreamExecutionEnvironment) -> Any:
        given = strategy if on_a_source else WatermarkStrategy.no_watermarks()
        stream = env.from_source(ListSource(steps), given, "steps")
        if not on_a_source:
            stream = stream.assign_timestamps_and_watermarks(strategy)
        return stream.process(Failing(crash, at))

    assert run_pipeline(build, restarts=1) == [(5, NO_TIME), (7, 4), (6, 6), (20, 6)]
    assert crash.count == 1


class EveryThird(WatermarkGenerator):
    """Punctuated: a watermark after each number that three divides."""

    def on_event(self, event: int, event_timestamp: int, output: WatermarkOutput) -> None:
        if event % 3 == 0:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Nothing from time to time."""


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_generator_that_emits_with_an_event_stands_between_records(run: Any, size: int) -> None:
    strategy = WatermarkStrategy.for_generator(EveryThird).with_timestamp_assigner(Times(1))

    def build(env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection([1, 2, 3, 4, 5, 6, 7]).assign_timestamps_and_watermarks(strategy)
        return numbers.process(SeesWatermark())

    config = {"firesteel.batch.max-records": str(size)}
    assert run(build, 1, config) == [(1, NO_TIME), (2, NO_TIME), (3, NO_TIME), (4, 3), (5, 3), (6, 3), (7, 6)]


class HighestSoFar(WatermarkGenerator):
    """Periodic."""

    highest = 0

    def on_event(self, event: int, event_timestamp: int, output: WatermarkOutput) -> None:
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(self.highest - 1)


def test_a_generator_that_emits_from_time_to_time_does_so_after_a_batch(run: Any) -> None:
    strategy = WatermarkStrategy.for_generator(HighestSoFar).with_timestamp_assigner(Times(1))

    def build(env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection([1, 9, 3, 4]).assign_timestamps_and_watermarks(strategy)
        return numbers.process(SeesWatermark())

    assert run(build, 1, {"firesteel.batch.max-records": "2"}) == [(1, NO_TIME), (9, NO_TIME), (3, 8), (4, 8)]


def test_a_source_that_is_far_ahead_waits_for_its_group(run: Any) -> None:
    def strategy(step: int) -> WatermarkStrategy:
        aligned = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times(step))
        return aligned.with_watermark_alignment("group", Duration.of_millis(50))

    def build(env: StreamExecutionEnvironment) -> Any:
        slow = env.from_source(NumberSequenceSource(0, 99), strategy(1), "slow").map(lambda n: ("slow", n))
        fast = env.from_source(NumberSequenceSource(0, 99), strategy(100), "fast").map(lambda n: ("fast", n))
        return slow.union(fast).key_by(lambda _: 0).map(lambda record: record)

    seen = run(build, 1, {"firesteel.batch.max-records": "20"})
    assert sorted(seen) == sorted([(name, n) for name in ("slow", "fast") for n in range(100)])
    # Ten records of each in the first batch; then the fast one is 900 ms ahead and waits for the slow one's end.
    assert [name for name, _ in seen[20:110]] == ["slow"] * 90


@pytest.mark.both_engines
@pytest.mark.spark_sample(on_a_source=True)
@pytest.mark.parametrize("on_a_source", [True, False])
def test_ingestion_time_is_when_a_record_came_in(run: Any, on_a_source: bool) -> None:
    steps = [[Record("a", 5), "b"], ProcessingTime(100), ["c"], ProcessingTime(250), ["d"]]
    strategy = WatermarkStrategy.for_ingestion_time()

    def build(env: StreamExecutionEnvironment) -> Any:
        if on_a_source:
            stream = env.from_source(ListSource(steps), strategy, "steps")
        else:
            stream = env.from_source(ListSource(steps), WatermarkStrategy.no_watermarks(), "steps")
            stream = stream.assign_timestamps_and_watermarks(strategy)
        return stream.key_by(lambda _: 0).process(SeesBoth())

    # Every moment is a micro-batch of its own, before the records that come then.
    assert run(build) == [("a", 0, NO_TIME), ("b", 0, NO_TIME), ("c", 100, 99), ("d", 250, 249)]


class SeesBoth(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_ingestion_time_windows(run: Any, parallelism: int) -> None:
    steps = [["a", "b"], ProcessingTime(60), ["c"], ProcessingTime(120), ["d"]]

    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_source(ListSource(steps), WatermarkStrategy.for_ingestion_time(), "steps")
        windows = TumblingEventTimeWindows.of(Time.milliseconds(100))
        return stream.key_by(lambda _: 0).window(windows).reduce(lambda one, other: one + other)

    assert run(build, parallelism) == ["abc", "d"]


def test_ingestion_time_goes_on_while_nothing_comes_in(run: Any, parallelism: int) -> None:
    steps = [["a"], ProcessingTime(99), ProcessingTime(100), ProcessingTime(150)]

    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_source(ListSource(steps), WatermarkStrategy.for_ingestion_time(), "steps")
        windows = TumblingEventTimeWindows.of(Time.milliseconds(100))
        counted = stream.key_by(lambda _: 0).window(windows).reduce(lambda one, other: one + other)
        return counted.process(WhenItCame())

    assert run(build, parallelism) == [("a", 100)]


class WhenItCame(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_processing_time()
