"""Whole programs in memory: results as lists, scripts of batches and time, crashes and restarts."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SinkFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import JobExecutionError, ProgramError, SerializationError
from firesteel.testing import (
    Crash,
    CrashError,
    ListSource,
    ProcessingTime,
    Record,
    Watermark,
    collect,
    memory_environment,
    run_pipeline,
)

BATCH = RuntimeExecutionMode.BATCH
NONE = WatermarkStrategy.no_watermarks()


def stream_of(env: StreamExecutionEnvironment, steps: list[Any]) -> Any:
    return env.from_source(ListSource(steps), NONE, "steps")


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
        self.attempt = runtime_context.get_attempt_number()

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value(), self.attempt


# Results as lists


def test_several_streams_from_one_run() -> None:
    odd = OutputTag("odd", Types.INT())

    class Sides(ProcessFunction):
        def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
            yield (odd, value) if value % 2 else value

    def build(env: StreamExecutionEnvironment) -> Any:
        main = env.from_collection(list(range(2000))).process(Sides())
        return main, main.get_side_output(odd)

    config = {"firesteel.batch.max-records": "2"}
    assert run_pipeline(build, config=config) == (list(range(0, 2000, 2)), list(range(1, 2000, 2)))
    named = run_pipeline(lambda env: dict(zip(["even", "odd"], build(env), strict=True)))
    assert named == {"even": list(range(0, 2000, 2)), "odd": list(range(1, 2000, 2))}


class ToFile(SinkFunction):
    def __init__(self, path: Path) -> None:
        self.path = path

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        with self.path.open("a") as file:
            file.write(f"{value}\n")


def test_a_program_with_sinks_of_its_own(tmp_path: Path) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection([1, 2]).add_sink(ToFile(tmp_path / "out"))

    assert run_pipeline(build) is None
    assert (tmp_path / "out").read_text() == "1\n2\n"
    with pytest.raises(ProgramError, match="returns a stream, a tuple or dict of streams, or None; got 5"):
        run_pipeline(lambda env: 5)


def test_a_failure_is_raised() -> None:
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        run_pipeline(lambda env: env.from_collection([1, 0]).map(lambda n: 1 / n))


def test_an_environment_can_be_used_again() -> None:
    env = memory_environment(parallelism=2)
    numbers = env.from_collection([1, 2, 3])
    assert sorted(collect(numbers.map(lambda n: n + 1))) == [2, 3, 4]
    assert collect(numbers.filter(lambda n: n > 2)) == [3]


# Scripts


class Log(KeyedProcessFunction):
    """Tells of elements with all clocks, and of the timers that elements ("event" or "processing", time) set."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        timers = ctx.timer_service()
        if value[0] == "event":
            timers.register_event_time_timer(value[1])
        if value[0] == "processing":
            timers.register_processing_time_timer(value[1])
        yield value, timers.current_watermark(), timers.current_processing_time()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        timers = ctx.timer_service()
        yield ctx.time_domain().name, timestamp, timers.current_watermark(), timers.current_processing_time()


SCRIPT = [
    [("processing", 50), ("event", 5)],
    ProcessingTime(49),
    Watermark(4),
    ["x", Watermark(5), "y"],
    ProcessingTime(60),
    [("processing", 1000), ("event", 1000)],
]
NO_TIME, FOREVER = -(2**63), 2**63 - 1


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_script_sets_all_clocks(parallelism: int) -> None:
    log = run_pipeline(lambda env: stream_of(env, SCRIPT).key_by(lambda _: 0).process(Log()), parallelism=parallelism)
    expected = [
        (("processing", 50), NO_TIME, 0),
        (("event", 5), NO_TIME, 0),
        ("x", 4, 49),
        ("EVENT_TIME", 5, 5, 49),
        ("y", 5, 49),
        ("PROCESSING_TIME", 50, 5, 60),
        (("processing", 1000), 5, 60),
        (("event", 1000), 5, 60),
        ("EVENT_TIME", 1000, FOREVER, 60),
    ]
    if parallelism == 1:
        assert log == expected
    else:
        # The second watermark of a batch waits for all subtasks of the source.
        assert sorted(map(repr, log)) == sorted(map(repr, [*expected[:4], ("y", 4, 49), *expected[5:]]))


def test_a_script_in_batch_mode() -> None:
    log = run_pipeline(lambda env: stream_of(env, SCRIPT).key_by(lambda _: 0).process(Log()), mode=BATCH)
    assert [entry[0] for entry in log] == [
        *(("processing", 50), ("event", 5), "x", "y", ("processing", 1000), ("event", 1000)),
        *("EVENT_TIME", "EVENT_TIME", "PROCESSING_TIME", "PROCESSING_TIME"),
    ]
    assert {entry[-1] for entry in log} == {60}


def test_without_moments_the_clock_is_the_wall_clock() -> None:
    ((_, _, now),) = run_pipeline(lambda env: stream_of(env, [["x"]]).key_by(lambda _: 0).process(Log()))
    assert now > 1_600_000_000_000


class Stamps(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timestamp()


def test_elements_keep_order_and_timestamps() -> None:
    steps = [[Record("a", 1), "b", Record("c", 3)], [], ["d"]]
    found = run_pipeline(lambda env: stream_of(env, steps).process(Stamps()), parallelism=2)
    assert found == [("a", 1), ("b", NO_TIME), ("c", 3), ("d", NO_TIME)]


def test_two_scripts_go_step_by_step_together() -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        one = stream_of(env, [["a"], Watermark(10), ["b"], ["c"]])
        two = stream_of(env, [[], Watermark(7), [], Watermark(8)])
        return one.union(two).key_by(lambda _: 0).process(Log())

    assert [entry[:2] for entry in run_pipeline(build)] == [("a", NO_TIME), ("b", 7), ("c", 7)]


def test_steps_that_are_none_are_refused() -> None:
    with pytest.raises(ProgramError, match="A step is a list of elements, a Watermark or a ProcessingTime, got 'ab'"):
        ListSource(["ab"])
    with pytest.raises(ProgramError, match="not in one: time stands still in a micro-batch"):
        ListSource([[1, ProcessingTime(5)]])
    with pytest.raises(SerializationError, match="a step cannot be pickled"):
        stream_of(memory_environment(), [[lambda n: n]])


def test_batch_mode_waits_for_a_source_of_limited_speed() -> None:
    source = DataGeneratorSource(lambda index: index, count=5, records_per_second=100)
    assert run_pipeline(lambda env: env.from_source(source, NONE, "slow"), mode=BATCH) == [0, 1, 2, 3, 4]


# Crashes


def test_a_crash_in_the_source_fails_the_job() -> None:
    crash = Crash()
    with pytest.raises(JobExecutionError, match=r"CrashError: failed on purpose \(1\)"):
        run_pipeline(lambda env: stream_of(env, [["a"], ["b", crash]]))
    assert crash.count == 1


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_after_a_restart_nothing_is_lost_or_counted_twice(parallelism: int, backend: str) -> None:
    crash = Crash(times=2)

    class Fragile(Count):
        """Fails when part of the batch is in its state already."""

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            yield from super().process_element(value, ctx)
            if value == "a3":
                crash.hit()

    steps = [["a1", "b1"], ["b2", "a2", "a3", "b3"], ["a4"]]
    found = run_pipeline(
        lambda env: stream_of(env, steps).key_by(lambda word: word[0]).process(Fragile()),
        parallelism=parallelism,
        config={"state.backend.type": backend},
        restarts=2,
    )
    assert crash.count == 2
    assert sorted((value, count) for value, count, _ in found) == [
        *(("a1", 1), ("a2", 2), ("a3", 3), ("a4", 4)),
        *(("b1", 1), ("b2", 2), ("b3", 3)),
    ]
    assert {value: attempt for value, _, attempt in found} == {
        **dict.fromkeys(["a1", "b1"], 0),
        **dict.fromkeys(["a2", "a3", "a4", "b2", "b3"], 2),
    }


def test_what_a_failed_attempt_wrote_is_gone() -> None:
    """The first stage has written its state when the second one fails."""
    crash = Crash()

    def fail(value: Any) -> Any:
        if value[0] == "c":
            crash.hit()
        return value

    def build(env: StreamExecutionEnvironment) -> Any:
        counted = stream_of(env, [["a", "b"], ["c", "d"]]).key_by(lambda _: 0).process(Count())
        return counted.rebalance().map(fail).key_by(lambda _: 0).process(Count())

    assert [(value[0], value[1], count) for value, count, _ in run_pipeline(build, restarts=1)] == [
        *(("a", 1, 1), ("b", 2, 2), ("c", 3, 3), ("d", 4, 4))
    ]
    assert crash.count == 1


def test_a_crash_that_never_ends_uses_up_the_restarts() -> None:
    crash = Crash(times=None)
    with pytest.raises(JobExecutionError, match=r"failed on purpose \(3\)"):
        run_pipeline(lambda env: stream_of(env, [["a", crash]]), restarts=2)
    assert crash.count == 3


def test_a_crash_cleans_up_after_itself() -> None:
    crash = Crash()
    copy = pickle.loads(pickle.dumps(crash))
    with pytest.raises(CrashError):
        copy.hit()
    copy.hit()
    assert (crash.count, copy.count) == (1, 1)
    path = Path(crash._path)
    del copy
    gc.collect()
    assert path.exists()
    del crash
    gc.collect()
    assert not path.exists()
    with pytest.raises(ProgramError, match="at least 1, or None for always; got 0"):
        Crash(times=0)
