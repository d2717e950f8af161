"""Watermark generators of users': called for every record, and when a micro-batch ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kit import BATCH, NO_TIME, Field, TimerLog, ascending, first

from firesteel.common import WatermarkStrategy
from firesteel.common.watermark_strategy import Watermark, WatermarkGenerator, WatermarkOutput
from firesteel.datastream import StreamExecutionEnvironment

ONE_BY_ONE = {"firesteel.batch.max-records": "1"}


class Quiet(WatermarkGenerator):
    """Emits nothing; others override what they need."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Punctuated(Quiet):
    """A watermark behind each record whose timers are a number: that one."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if len(event) > 3:
            output.emit_watermark(event[3])


class Periodic(WatermarkGenerator):
    """A delay of 5 behind the highest timestamp, as a user would write it."""

    def __init__(self) -> None:
        self.highest = NO_TIME

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self.highest > NO_TIME:
            output.emit_watermark(Watermark(self.highest - 5))


def log_of(records: list[Any], generator: Callable[[], WatermarkGenerator], interval: int = 200) -> Any:
    def build(env: StreamExecutionEnvironment) -> Any:
        env.get_config().set_auto_watermark_interval(interval)
        strategy = WatermarkStrategy.for_generator(generator).with_timestamp_assigner(Field())
        timed = env.from_collection(records).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
        return timed.key_by(first).process(TimerLog())

    return build


@pytest.mark.both_engines
def test_a_watermark_of_on_event_stands_behind_its_record(run: Any, parallelism: int) -> None:
    records = [("a", 1, [15]), ("a", 2, [], 20), ("a", 3, []), ("a", 4, [], 10), ("a", 5, [25]), ("a", 6, [], 30)]
    expected = [
        ("element", "a", 1, NO_TIME),
        ("element", "a", 2, NO_TIME),
        ("timer", "a", 15, 20),
        ("element", "a", 3, 20),
        ("element", "a", 4, 20),
        ("element", "a", 5, 20),
        ("element", "a", 6, 20),
        ("timer", "a", 25, 30),
    ]
    for config in ({}, ONE_BY_ONE):
        assert run(log_of(records, Punctuated), parallelism, config) == expected


def test_a_periodic_one_is_asked_when_a_batch_ends(run: Any) -> None:
    records = [("a", 100, []), ("a", 90, []), ("a", 120, [110]), ("a", 121, []), ("a", 122, [])]
    log = run(log_of(records, Periodic), config={"firesteel.batch.max-records": "2"})
    assert log == [
        ("element", "a", 100, NO_TIME),
        ("element", "a", 90, NO_TIME),
        ("element", "a", 120, 95),
        ("element", "a", 121, 95),
        ("timer", "a", 110, 116),
        ("element", "a", 122, 116),
    ]


def test_its_fields_last_from_batch_to_batch(run: Any) -> None:
    records = [("a", 100, []), ("a", 50, []), ("a", 60, [])]
    log = run(log_of(records, Periodic), config=ONE_BY_ONE)
    assert [entry[3] for entry in log] == [NO_TIME, 95, 95]


def test_with_an_interval_of_one_it_is_asked_after_every_record(run: Any) -> None:
    records = [("a", 100, []), ("a", 110, [103]), ("a", 111, [])]
    assert run(log_of(records, Periodic, interval=1)) == [
        ("element", "a", 100, NO_TIME),
        ("element", "a", 110, 95),
        ("timer", "a", 103, 105),
        ("element", "a", 111, 105),
    ]


def test_with_an_interval_of_zero_it_is_never_asked(run: Any) -> None:
    log = run(log_of([("a", 100, []), ("a", 110, [])], Periodic, interval=0), config=ONE_BY_ONE)
    assert [entry[3] for entry in log] == [NO_TIME, NO_TIME]


class Twice(Quiet):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp)
        output.emit_watermark(event_timestamp - 50)


def test_the_highest_counts_of_several(run: Any) -> None:
    assert [entry[3] for entry in run(log_of([("a", 100, []), ("a", 70, [])], Twice))] == [NO_TIME, 100]


def test_nothing_of_it_is_heard_in_batch(run: Any, parallelism: int) -> None:
    records = [("a", 3, [], 100), ("a", 1, [2])]
    log = run(log_of(records, Punctuated), parallelism, mode=BATCH)
    assert [entry[:3] for entry in log] == [("element", "a", 1), ("element", "a", 3), ("timer", "a", 2)]
    assert [entry[3] for entry in log[:2]] == [NO_TIME, NO_TIME]


class Mute(Quiet):
    """Says of itself that nobody need wait for it."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.mark_idle()


class Wavering(Mute):
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.mark_active()


@pytest.mark.parametrize(("generator", "heard"), [(Mute, 99), (Wavering, NO_TIME)], ids=["idle", "active again"])
def test_an_idle_one_does_not_hold_back_the_others(run: Any, generator: Any, heard: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        busy = env.from_collection([("a", 100, []), ("a", 101, [])]).assign_timestamps_and_watermarks(ascending())
        strategy = WatermarkStrategy.for_generator(generator).with_timestamp_assigner(Field())
        mute = env.from_collection([("b", n, []) for n in range(4)]).assign_timestamps_and_watermarks(strategy)
        return busy.union(mute).key_by(first).process(TimerLog())

    log = run(build, config={"firesteel.batch.max-records": "2"})
    assert ("element", "a", 101, heard) in log


class Broken(Quiet):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        raise ValueError("no idea what time it is")


class BrokenLater(Quiet):
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        raise ValueError("no idea what time it is")


@pytest.mark.parametrize("generator", [Broken, BrokenLater])
def test_a_failure_names_the_operator(run: Any, generator: Any) -> None:
    with pytest.raises(Exception, match="no idea what time it is") as caught:
        run(log_of([("a", 100, [])], generator))
    assert "Timestamps/Watermarks" in str(caught.value)


def test_what_is_no_generator_is_refused(run: Any) -> None:
    with pytest.raises(Exception, match=r"for_generator\(\) needs .* got <class 'object'> without on_event and on_per"):
        WatermarkStrategy.for_generator(object)  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"needs what makes a WatermarkGenerator, got 5 without on_event and on_p"):
        run(log_of([("a", 100, [])], lambda: 5))  # type: ignore[arg-type, return-value]
