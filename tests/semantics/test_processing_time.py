"""Processing-time timers in running jobs: they fire without data, are dropped at the end, and fire in BATCH.

What a function sees of them, moment by moment, is in the transcripts.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kit import BATCH, LineServer, ascending, eventually, first, slow_numbers
from savepointkit import Halves

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment, TimeDomain
from firesteel.datastream.state import ValueStateDescriptor

NONE = WatermarkStrategy.no_watermarks()


class After(KeyedProcessFunction):
    """Fires so many milliseconds after a key's first record."""

    def __init__(self, delay: int) -> None:
        self.delay = delay

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.STRING()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        if self.seen.value() is None:
            self.seen.update(str(value))
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + self.delay)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        late = ctx.timer_service().current_processing_time() - timestamp
        yield self.seen.value(), ctx.time_domain(), ctx.timestamp() == timestamp, late >= 0


@pytest.mark.both_engines
def test_a_timer_fires_although_no_data_comes(make_env: Any, parallelism: int) -> None:
    with LineServer(b"only line\n") as server:
        env = make_env(parallelism)
        lines = env.socket_text_stream("127.0.0.1", server.port)
        fired = lines.key_by(lambda line: line).process(After(150))
        with fired.execute_and_collect() as records:
            assert next(records) == ("only line", TimeDomain.PROCESSING_TIME, True, True)


def test_timers_of_an_endless_source_fire_while_it_runs(make_env: Any, parallelism: int) -> None:
    env = make_env(parallelism)
    numbers = env.from_source(slow_numbers(40), NONE, "numbers")
    with numbers.key_by(lambda n: n % 3).process(After(50)).execute_and_collect() as records:
        assert {next(records)[0] for _ in range(3)} == {"0", "1", "2"}


def test_they_are_dropped_at_the_end_of_a_bounded_stream(run: Any, parallelism: int) -> None:
    assert run(lambda env: env.from_collection(["a", "b"]).key_by(first).process(After(0)), parallelism) == []


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=2)
def test_they_fire_in_batch(run: Any, parallelism: int) -> None:
    log = run(
        lambda env: env.from_collection(["a", "b"]).key_by(first).process(After(3_600_000)), parallelism, mode=BATCH
    )
    assert sorted(entry[0] for entry in log) == ["a", "b"]
    assert {entry[1] for entry in log} == {TimeDomain.PROCESSING_TIME}


class Periodic(KeyedProcessFunction):
    """A timer that sets the next one, as a heartbeat does."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.beats = runtime_context.get_state(ValueStateDescriptor("beats", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        if self.beats.value() is None:
            self.beats.update(0)
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + 10)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[int]:
        beat = self.beats.value() + 1
        self.beats.update(beat)
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 10)
        yield beat


def test_a_heartbeat_goes_on(make_env: Any) -> None:
    env = make_env()
    beats = env.from_source(slow_numbers(5), NONE, "numbers").key_by(lambda n: 0).process(Periodic())
    with beats.execute_and_collect() as records:
        assert [next(records) for _ in range(4)] == [1, 2, 3, 4]


class Moments(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        yield ctx.timer_service().current_processing_time()


def test_processing_time_is_the_wall_clock(run: Any) -> None:
    before = int(time.time() * 1000)
    (moment,) = run(lambda env: env.from_collection([1]).key_by(lambda n: 0).process(Moments()))
    assert before <= moment <= time.time() * 1000


class Noon(KeyedProcessFunction):
    """A timer of a fixed time, like that of a window's end, and the time at which it and each record came."""

    TIME = 1_700_000_000_000

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[Any, int]]:
        timers = ctx.timer_service()
        if timers.current_processing_time() < self.TIME:
            timers.register_processing_time_timer(self.TIME)
        yield value, timers.current_processing_time()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[Any, int]]:
        yield "noon", ctx.timer_service().current_processing_time()


def test_a_timer_does_not_fire_again_where_the_clock_was_set_back_before_a_restart(
    halves: Halves, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(time=lambda: next(seconds), monotonic=time.monotonic)
    monkeypatch.setattr("firesteel.engine.processing_time.time", clock)
    noon, script = Noon.TIME // 1000, [["a"], ["b"], ["c"], ["d"]]

    seconds = itertools.chain([noon - 1], itertools.repeat(noon + 1))
    before = halves.save(lambda stream: stream.key_by(lambda value: 0).process(Noon()), script[:2])
    seconds = itertools.repeat(noon - 3600)
    after = halves.resume(lambda stream: stream.key_by(lambda value: 0).process(Noon()), script)

    assert [what for what, _ in before] == ["a", "noon", "b"]
    assert [what for what, _ in after] == ["c", "d"]
    moments = [moment for _, moment in [*before, *after]]
    assert moments == sorted(moments)
    assert after[0][1] > before[-1][1]


class Watching(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        if value[0] == "a":
            ctx.timer_service().register_event_time_timer(5)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp


def idle_and_busy(env: StreamExecutionEnvironment, strategy: WatermarkStrategy, port: int) -> Any:
    """A busy source and one that says one line and falls silent."""
    busy = env.from_source(slow_numbers(200), NONE, "numbers").map(lambda n: ("a", n * 10))
    silent = env.socket_text_stream("127.0.0.1", port).map(lambda line: ("b", int(line)))
    timed = [busy.assign_timestamps_and_watermarks(ascending()), silent.assign_timestamps_and_watermarks(strategy)]
    return timed[0].union(timed[1]).key_by(first).process(Watching())


def test_an_idle_source_does_not_hold_back_the_others(make_env: Any) -> None:
    with LineServer(b"1\n") as server:
        env = make_env()
        strategy = ascending().with_idleness(Duration.of_millis(100))
        with idle_and_busy(env, strategy, server.port).execute_and_collect() as records:
            assert next(records) == ("a", 5)


@pytest.mark.parametrize("stages", ["exchange", "same task"])
def test_idleness_passes_through_keyed_stages(make_env: Any, stages: str) -> None:
    """An operator whose inputs are all idle is idle itself, to operators behind an exchange and in its own task."""
    with LineServer(b"1\n") as server:
        env = make_env()
        strategy = ascending().with_idleness(Duration.of_millis(100))
        busy = env.from_source(slow_numbers(200), NONE, "numbers").map(lambda n: ("a", n * 10))
        silent = env.socket_text_stream("127.0.0.1", server.port).map(lambda line: ("b", int(line)))
        timed = [s.assign_timestamps_and_watermarks(strategy).key_by(first).process(Passing()) for s in (busy, silent)]
        merged = timed[0].union(timed[1])
        if stages == "same task":
            merged = merged.map(lambda record: record)
        with merged.key_by(first).process(Watching()).execute_and_collect() as records:
            assert next(records) == ("a", 5)


class Passing(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value


def test_without_idleness_a_silent_source_holds_back_the_others(make_env: Any) -> None:
    with LineServer(b"1\n") as server:
        env = make_env()
        job = idle_and_busy(env, ascending(), server.port)
        job.print()
        client = env.execute_async()
        assert eventually(lambda: client.inbox.progress.records > 10)
        watermark = client.inbox.progress.watermark
        client.cancel().result()
        assert watermark is not None
        assert watermark <= 0
