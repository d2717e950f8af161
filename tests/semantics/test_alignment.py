"""Watermark alignment: who is far ahead waits for the slowest of the group, and nobody waits for an idle one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kit import NO_TIME

from firesteel.common import Duration, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment
from firesteel.engine.alignment import Alignment, Member
from firesteel.testing import ListSource, ProcessingTime, Record, run_pipeline

ASCENDING = WatermarkStrategy.for_monotonous_timestamps()


def grouped(idleness: int | None = None) -> WatermarkStrategy:
    strategy = ASCENDING if idleness is None else ASCENDING.with_idleness(Duration.of_millis(idleness))
    return strategy.with_watermark_alignment("group", Duration.of_millis(50))


def at(*moments: int) -> list[Record]:
    return [Record(moment, moment) for moment in moments]


class When(ProcessFunction):
    """Each record with the processing time at which it was read."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_processing_time()


def ahead_and_clock(clock: list[Any], strategy: WatermarkStrategy, on_a_stream: bool = False) -> Any:
    """Reads 1000, 2000, … beside a slow source of the same group, which is the clock as well."""
    ahead = [at(moment) for moment in (1000, 2000, 3000, 4000)]

    def build(env: StreamExecutionEnvironment) -> Any:
        found = []
        for steps in (clock, ahead):
            if on_a_stream:
                stream = env.from_source(ListSource(steps), WatermarkStrategy.no_watermarks(), "steps")
                found.append(stream.assign_timestamps_and_watermarks(strategy).process(When()))
            else:
                found.append(env.from_source(ListSource(steps), strategy, "steps").process(When()))
        return tuple(found)

    return build


CLOCK = [at(10), ProcessingTime(100), ProcessingTime(600), ProcessingTime(700), ProcessingTime(800), at(20)]


@pytest.mark.parametrize("on_a_stream", [False, True])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_nobody_waits_for_an_idle_source(on_a_stream: bool, parallelism: int) -> None:
    _, ahead = run_pipeline(ahead_and_clock(CLOCK, grouped(500), on_a_stream), parallelism=parallelism)
    # At 600 the slow one has been silent for 500 ms. At 800 it speaks again, and the fast one waits for its end.
    assert [when for _, when in ahead][:3] == [0, 700, 800]


@pytest.mark.both_engines
@pytest.mark.spark_sample
def test_engines_tell_each_other_who_is_idle(run: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        slow, ahead = ahead_and_clock(CLOCK, grouped(500))(env)
        return slow.union(ahead).filter(lambda entry: entry[0] >= 1000)

    assert [when for _, when in run(build)][:3] == [0, 700, 800]


def test_without_idleness_it_is_waited_for() -> None:
    _, ahead = run_pipeline(ahead_and_clock(CLOCK, grouped()))
    assert ahead == [(1000, 0), (2000, 800), (3000, 800), (4000, 800)]


def test_a_source_that_was_never_heard_is_left_out_once_it_is_idle() -> None:
    clock = [[], ProcessingTime(100), ProcessingTime(600), ProcessingTime(700)]
    _, ahead = run_pipeline(ahead_and_clock(clock, grouped(500)))
    assert [when for _, when in ahead][:2] == [0, 700]


class Seen(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


def test_a_source_that_waits_is_not_idle() -> None:
    """It has records and may not read them: its event time still holds back that of others."""
    third = [at(5000), [], [], [], [], [], at(5001), []]
    clock = [at(10), ProcessingTime(100), at(11), ProcessingTime(600), ProcessingTime(1100), at(12), at(13), at(14)]

    def build(env: StreamExecutionEnvironment) -> Any:
        slow = env.from_source(ListSource(clock), grouped(), "slow")
        ahead = env.from_source(ListSource([at(1000), at(2000)]), grouped(500), "ahead")
        other = env.from_source(ListSource(third), ASCENDING, "other")
        return slow, ahead.union(other).key_by(lambda _: 0).process(Seen())

    _, seen = run_pipeline(build)
    assert seen[:3] == [(1000, NO_TIME), (5000, NO_TIME), (5001, 999)]


def test_behind_a_shuffle_nobody_waits() -> None:
    """A strategy there belongs to no group, as in Flink: it could not stop its source."""

    def build(env: StreamExecutionEnvironment) -> Any:
        slow = env.from_source(ListSource([at(n) for n in range(5)]), WatermarkStrategy.no_watermarks(), "slow")
        shuffled = slow.rebalance().assign_timestamps_and_watermarks(grouped())
        ahead = env.from_source(ListSource([at(n * 1000) for n in range(5)]), grouped(), "ahead")
        return shuffled.union(ahead)

    assert len(run_pipeline(build)) == 10


def of(*nodes: int, subtasks: int = 1) -> Alignment:
    return Alignment({node: Member("g", 50, frozenset({str(node)}), subtasks) for node in nodes})


@pytest.mark.parametrize(
    ("kept", "paused"),
    [
        ({}, set()),
        ({"1/0": {"own": 100}, "2/0": {"own": 150}}, set()),
        ({"1/0": {"own": 100}, "2/0": {"own": 151}}, {"2"}),
        ({"1/0": {"own": 100}}, {"1"}),
        ({"1/0": {"own": 100}, "2/0": {"since": 5}}, {"1"}),
        ({"1/0": {"own": 100}, "2/0": {"idle": True}}, set()),
        ({"1/0": {"own": 100, "idle": True}, "2/0": {"own": 900}}, set()),
        ({"1/0": {"own": 900, "idle": True}, "2/0": {"own": 100}}, {"1"}),
        ({"1/0": {"own": 900, "idle": True}, "2/0": {"own": 100, "idle": True}}, set()),
    ],
)
def test_who_is_paused(kept: dict[str, Any], paused: set[str]) -> None:
    assert of(1, 2).paused(kept) == paused


def test_a_source_is_as_far_as_its_slowest_subtask_that_is_not_idle() -> None:
    group = of(1, 2, subtasks=2)
    far = {"2/0": {"own": 100}, "2/1": {"own": 120}}
    assert group.paused({"1/0": {"own": 900}, "1/1": {"own": 100}, **far}) == set()
    assert group.paused({"1/0": {"own": 900}, "1/1": {"own": 100, "idle": True}, **far}) == {"1"}
    # Half of it idle, half of it not heard of: it has just begun.
    assert group.paused({"1/1": {"idle": True}, **far}) == {"2"}
