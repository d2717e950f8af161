"""What the engine counts of operators, subtasks and batches: in the memory engine, through the facade."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import kit
import pytest
from kit import ascending, first

from firesteel.common import Configuration, Time, WatermarkStrategy
from firesteel.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.engine.facade import JobMetrics, OperatorMetrics, SubtaskMetrics
from firesteel.runtime import task
from firesteel.runtime.stopwatch import Stopwatch
from firesteel.testing import CollectionSink, Crash, ListSource


def environment(parallelism: int = 1, **settings: str) -> StreamExecutionEnvironment:
    config = {"firesteel.master": "memory", **settings}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config))
    env.set_parallelism(parallelism)
    return env


def run(env: StreamExecutionEnvironment) -> Any:
    job: Any = env.execute_async("measured")
    job.get_job_execution_result().result()
    return job


def operators(job: Any) -> dict[str, OperatorMetrics]:
    metrics: JobMetrics = job.facade.metrics()
    return {operator.name: operator for operator in metrics.operators}


def only(operator: OperatorMetrics) -> SubtaskMetrics:
    (subtask,) = operator.subtasks
    return subtask


ODD = OutputTag("odd")


class Sort(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield (ODD, value) if value % 2 else value


def test_records_in_and_out_of_chained_operators_and_side_outputs() -> None:
    env = environment()
    sorted_ = env.from_collection(list(range(10))).process(Sort()).name("sort")
    sorted_.filter(lambda n: n > 4).name("large").print()
    sorted_.get_side_output(ODD).flat_map(lambda n: [n, n]).name("twice").print()
    found = operators(run(env))
    counts = {name: (found[name].records_in, found[name].records_out) for name in ("sort", "large", "twice")}
    assert counts == {"sort": (10, 10), "large": (5, 2), "twice": (5, 10)}


def test_records_bytes_and_frames_between_tasks() -> None:
    env = environment(2)
    env.from_collection(list(range(1000))).key_by(lambda n: n).map(lambda n: n).name("keyed").print()
    found = operators(run(env))
    (source,) = [one for one in found.values() if one.kind == "source"]
    keyed = found["keyed"]
    assert (source.records_in, source.records_out, keyed.records_in) == (1000, 1000, 1000)
    assert sum(one.frames_out for one in source.subtasks) == sum(one.frames_in for one in keyed.subtasks) > 0
    sent, got = (sum(one.bytes_out for one in source.subtasks), sum(one.bytes_in for one in keyed.subtasks))
    # What is received has a header for each frame.
    assert 1000 < sent < got
    assert (keyed.kind, [one.kind for one in found.values()].count("sink")) == ("operator", 1)
    assert source.chain == source.id


def test_two_inputs_of_one_operator_are_both_counted() -> None:
    env = environment()
    left, right = env.from_collection([1, 2, 3]), env.from_collection([4, 5])
    left.union(right).rebalance().map(lambda n: n).name("both").print()
    assert operators(run(env))["both"].records_in == 5


@pytest.fixture
def held_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy time is what functions say that it is, however busy the machine is."""
    monkeypatch.setattr(kit, "busy_seconds", 0.0)
    monkeypatch.setattr(task, "Stopwatch", partial(Stopwatch, clock=lambda: kit.busy_seconds))


def work_100_ms(value: Any) -> Any:
    kit.busy_seconds += 0.1
    return value


@pytest.mark.usefixtures("held_clock")
def test_busy_time_belongs_to_the_operator_that_worked() -> None:
    env = environment()
    env.from_collection(range(5)).map(lambda n: n).name("quick").map(work_100_ms).name("slow").print()
    job = run(env)
    found = operators(job)
    # It is no time of the one that calls it.
    assert only(found["slow"]).busy_ms == pytest.approx(500)
    assert only(found["quick"]).busy_ms == 0
    (whole,) = job.facade.metrics().tasks
    assert whole.busy_ms == pytest.approx(500)
    assert only(found["slow"]).per_second.busy_ms > 0


@pytest.mark.usefixtures("held_clock")
def test_busy_time_of_what_a_watermark_sets_off() -> None:
    env = environment()
    stream = env.from_collection([("a", 1), ("a", 2)]).assign_timestamps_and_watermarks(ascending())
    keyed = stream.key_by(first).window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(lambda a, b: a)
    keyed.name("window").map(work_100_ms).name("after").print()
    found = operators(run(env))
    # The map is called when the window fires, which the watermark makes it do.
    assert only(found["after"]).busy_ms == pytest.approx(100)
    assert only(found["window"]).busy_ms == 0


@dataclass(frozen=True)
class Watch:
    """The spec of an operator that takes its time when event time moves."""


@handles(Watch)
class WatchOperator(StreamOperator[Watch]):
    def process(self, records: Records) -> None:
        """Nothing comes of them."""

    def on_watermark(self, watermark: int) -> None:
        kit.busy_seconds += 0.1


@pytest.mark.usefixtures("held_clock")
def test_busy_time_of_a_watermark_in_a_chain() -> None:
    env = environment()
    stream = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(ascending()).rebalance()
    stream.map(lambda one: one).name("before").transform("watch", Watch()).print()
    found = operators(run(env))
    assert found["before"].stage == found["watch"].stage
    assert only(found["watch"]).busy_ms >= 100
    assert only(found["before"]).busy_ms == 0


def test_busy_time_can_be_left_out() -> None:
    env = environment(**{"firesteel.metrics.busy-time": "false"})
    env.from_collection(range(5)).map(lambda n: n).name("slow").print()
    found = operators(run(env))
    assert (only(found["slow"]).busy_ms, found["slow"].records_in) == (0.0, 5)


def test_late_records_state_and_watermarks() -> None:
    env = environment()
    source = ListSource([[("a", 1_000), ("b", 5_000)], [("a", 1_001), ("c", 9_000)]])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "script")
    strategy = ascending()
    windows = stream.assign_timestamps_and_watermarks(strategy).name("times").key_by(first)
    windows.window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(lambda a, b: a).name("window").print()
    job: Any = env.execute_async("late")
    job.get_job_execution_result().result()
    window = only(operators(job)["window"])
    assert window.values["numLateRecordsDropped"] == 1
    assert window.records_in == 4
    assert window.watermark == 2**63 - 1
    assert window.state_size > 0


def test_entries_of_state() -> None:
    env = environment()
    env.from_collection([(n, n) for n in range(30)]).key_by(first).reduce(lambda a, b: a).name("state").print()
    assert only(operators(run(env))["state"]).state_entries == 30


def test_what_waits_in_sources() -> None:
    env = environment(**{"firesteel.batch.max-records": "10"})
    env.from_collection(list(range(25))).name("bounded").print()
    endless = DataGeneratorSource(lambda n: n, 10**9, 1000)
    env.from_source(endless, WatermarkStrategy.no_watermarks(), "paced").filter(lambda n: False).print()
    job: Any = env.execute_async("waiting")
    try:
        deadline = time.monotonic() + 120
        while not job.facade.batches().batches and time.monotonic() < deadline:
            time.sleep(0.01)
        first_batch = job.facade.batches().batches[0]
        # Five records of a batch's ten are the collection's.
        assert first_batch.pending is not None
        assert first_batch.pending >= 20
        found = operators(job)
        assert [type(one.pending) for one in found.values() if one.kind == "source"] == [int, int]
        assert {one.pending for one in found.values() if one.kind != "source"} == {None}
        assert job.facade.metrics().pending is not None
    finally:
        job.cancel()


def test_batches_are_known_with_their_parts() -> None:
    env = environment(**{"firesteel.batch.max-records": "10"})
    sink = CollectionSink()
    env.from_collection(list(range(25))).map(lambda n: n).sink_to(sink)
    job = run(env)
    batches = job.facade.batches().batches
    assert [(one.number, one.records, one.completed) for one in batches] == [(1, 10, True), (2, 10, True), (3, 5, True)]
    assert [one.pending for one in batches] == [15, 5, 0]
    for one in batches:
        assert set(one.parts) == {"latest_offset", "planning", "tasks", "results", "sink_commit"}
        assert one.duration_ms >= one.parts["tasks"] + one.parts["results"]
        assert one.bytes > 0
    assert [one.number for one in job.facade.batches(after=1).batches] == [2, 3]


def test_a_batch_that_failed_is_one_of_them() -> None:
    env = environment(
        **{
            "firesteel.batch.max-records": "10",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1",
            "restart-strategy.fixed-delay.delay": "1 ms",
        }
    )
    crash = Crash(times=1)

    def picky(value: int) -> int:
        if value == 12:
            crash.hit()
        return value

    env.from_collection(list(range(20))).map(picky).print()
    job = run(env)
    assert job.facade.metrics().restarts == 1
    numbered = [(one.number, one.attempt, one.completed) for one in job.facade.batches().batches]
    assert numbered == [(1, 0, True), (2, 0, False), (2, 1, True)]


def test_uptime_stands_still_when_the_job_has_ended() -> None:
    def slowly(value: int) -> int:
        time.sleep(0.02)
        return value

    env = environment()
    env.from_collection([1]).map(slowly).print()
    job = run(env)
    uptime = job.facade.metrics().uptime_ms
    time.sleep(0.02)
    assert job.facade.metrics().uptime_ms == uptime >= 19
