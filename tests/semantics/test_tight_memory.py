"""Timers and state that does not fit into memory: what a timer needs is read again, whoever set it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kit import Field

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.datastream import (
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import ContinuousEventTimeTrigger, EventTimeSessionWindows, TumblingEventTimeWindows
from firesteel.runtime.operators.keyed import TIMERS_AT_ONCE

BACKENDS = {
    "hashmap": {"state.backend.type": "hashmap"},
    "rocksdb": {"state.backend.type": "rocksdb"},
    "tight": {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "1kb"},
}
MANY = TIMERS_AT_ONCE + 10


@pytest.fixture(params=BACKENDS)
def config(request: pytest.FixtureRequest) -> dict[str, str]:
    return BACKENDS[request.param]


class Chain(KeyedProcessFunction):
    """The first key's timer sets another one, for a moment between those of all the others."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        self.value.update(value * 10)
        ctx.timer_service().register_event_time_timer(100 + value)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        key = ctx.get_current_key()
        if key == 0 and timestamp == 100:
            ctx.timer_service().register_event_time_timer(100_000)
            self.value.update(7)
        elif key in (0, MANY):
            yield key, timestamp, self.value.value()


def test_a_timer_that_was_set_meanwhile_finds_the_state_of_its_key(run: Any, config: dict[str, str]) -> None:
    """Timers fire in stretches, and the memory of one stretch is let go for the next: that of key 0 with it."""

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([*range(MANY), 200_000]).key_by(lambda n: min(n, MANY)).process(Chain())

    assert run(build, 1, config) == [(0, 100_000, 7), (MANY, 200_100, 2_000_000)]


def test_a_window_that_fires_again_finds_its_contents(run: Any, config: dict[str, str]) -> None:
    """Each firing of a continuous trigger sets the next one. That at 60 s comes when the memory of those before it,
    which were known from the start, is let go."""
    records = [(key, 10 * key) for key in range(MANY)]
    later = [(MANY, 60_002), (MANY, 60_003)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field())

    def build(env: StreamExecutionEnvironment) -> Any:
        timed = env.from_collection(records + later).assign_timestamps_and_watermarks(strategy)
        windows = TumblingEventTimeWindows.of(Time.seconds(70))
        windowed = timed.key_by(lambda record: record[0]).window(windows)
        often = windowed.trigger(ContinuousEventTimeTrigger.of(Time.seconds(10)))
        return often.reduce(lambda one, other: (one[0], one[1] + other[1]))

    found = run(build, 1, {**config, "firesteel.batch.max-records": str(MANY + 1)})
    expected = [record for record in records for _ in range(record[1] // 10_000, 7)]
    assert sorted(found) == [*sorted(expected), (MANY, 120_005)]


class Totals(ProcessWindowFunction):
    """Numbers the firings of a key in state that all its windows share."""

    def process(self, key: int, context: ProcessWindowFunction.Context, elements: Any) -> Iterator[Any]:
        firings = context.global_state().get_state(ValueStateDescriptor("firings", Types.LONG()))
        firings.update((firings.value() or 0) + 1)
        yield key, firings.value(), sum(n for _, n in elements)


def test_a_session_that_fires_again_finds_its_contents_under_the_first_ones_name(run: Any) -> None:
    records = [(key, 10 * key + late) for key in range(MANY) for late in (5, 0)]
    later = [(MANY, 60_002), (MANY, 60_003)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field())

    def build(env: StreamExecutionEnvironment) -> Any:
        timed = env.from_collection(records + later).assign_timestamps_and_watermarks(strategy)
        sessions = timed.key_by(lambda record: record[0]).window(EventTimeSessionWindows.with_gap(Time.seconds(100)))
        return sessions.trigger(ContinuousEventTimeTrigger.of(Time.seconds(10))).process(Totals())

    size = {"firesteel.batch.max-records": str(2 * MANY + 1)}
    expected = run(build, 1, {**BACKENDS["hashmap"], **size})
    assert [entry for entry in expected if entry[0] == 0][:6] == [(0, n, 5) for n in range(1, 7)]
    assert sorted(run(build, 1, {**BACKENDS["tight"], **size})) == sorted(expected)
