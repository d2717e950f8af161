"""Snapshot and restore: keyed state of every kind, timers, time to live, operator state, on both backends."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Time, Types
from firesteel.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from firesteel.datastream.functions import CheckpointedFunction
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.errors import ProgramError
from firesteel.testing import OneInputHarness, Record

BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])

COUNT = ValueStateDescriptor("count", Types.INT())
SEEN = ListStateDescriptor("seen", Types.INT())
LAST = MapStateDescriptor("last", Types.STRING(), Types.INT())
SUM = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())


def first(record: Any) -> Any:
    return record[0]


class Everything(KeyedProcessFunction):
    """Keeps a key's numbers in every kind of state, sets a timer per record, counts calls in an attribute."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(COUNT)
        self.seen = runtime_context.get_list_state(SEEN)
        self.last = runtime_context.get_map_state(LAST)
        self.sum = runtime_context.get_reducing_state(SUM)
        self.attempt = runtime_context.get_attempt_number()
        self.calls = 0

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        key, number = value
        self.calls += 1
        self.count.update((self.count.value() or 0) + 1)
        self.seen.add(number)
        self.last.put("number", number)
        self.sum.add(number)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10)
        yield key, self.calls, *self._all()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), ctx.time_domain().name, timestamp, self.sum.get()

    def _all(self) -> tuple[Any, ...]:
        return self.count.value(), list(self.seen.get()), dict(self.last.items()), self.sum.get()


@BACKENDS
def test_all_comes_back_except_attributes(backend: str) -> None:
    harness = OneInputHarness(Everything(), first, backend=backend)
    harness.set_processing_time(1000)
    harness.process_elements([Record(("a", 1), 5), Record(("b", 2), 6), Record(("a", 3), 7)])
    harness.process_watermark(15)
    snapshot = pickle.loads(pickle.dumps(harness.snapshot()))
    expected = ("a", 4, 3, [1, 3, 5], {"number": 5}, 9)
    harness.take_output()
    harness.process_element(("a", 5), 20)
    assert harness.take_output() == [expected], "it goes on"

    for _ in range(2):
        restored = harness.restore(snapshot)
        assert (restored.processing_time, restored.watermark) == (1000, 15)
        assert restored.event_time_timers == [(16, "b"), (17, "a")]
        assert restored.processing_time_timers == [(1010, "a"), (1010, "b")]
        assert restored.num_keyed_state_entries == 8, "four states of two keys"
        assert restored.open().function.attempt == 1
        restored.process_element(("a", 5), 20)
        assert restored.take_output() == [("a", 1, *expected[2:])]
        restored.set_processing_time(1010)
        restored.process_watermark(17)
        assert restored.take_output() == [
            ("a", "PROCESSING_TIME", 1010, 9),
            ("b", "PROCESSING_TIME", 1010, 2),
            ("b", "EVENT_TIME", 16, 2),
            ("a", "EVENT_TIME", 17, 9),
        ]


@BACKENDS
def test_state_can_be_looked_at_and_changed(backend: str) -> None:
    harness = OneInputHarness(Everything(), first, backend=backend)
    harness.process_elements([Record(("a", 1), 5), Record(("a", 3), 7)])
    assert harness.state(COUNT, "a").value() == 2
    assert list(harness.state(SEEN, "a").get()) == [1, 3]
    assert harness.state(COUNT, "b").value() is None
    harness.state(COUNT, "b").update(10)
    harness.process_element(("b", 1), 8)
    assert harness.output[-1][2] == 11
    harness.end_batch()
    assert harness.state(COUNT, "b").value() == 11
    assert harness.num_keyed_state_entries == 8


@BACKENDS
def test_a_snapshot_of_a_restored_harness(backend: str) -> None:
    harness = OneInputHarness(Everything(), first, backend=backend)
    for number in range(40):
        harness.process_element((f"key-{number % 5}", number), number)
        harness = harness.restore(harness.snapshot())
    assert harness.num_event_time_timers == 40
    harness.process_element(("key-0", 100), 100)
    assert harness.output[0][2] == 9
    assert harness.function.attempt == 40


def short_lived(backend: str) -> Any:
    config = StateTtlConfig.new_builder(Time.milliseconds(100)).set_update_type(
        StateTtlConfig.UpdateType.OnCreateAndWrite
    )
    clean = (
        config.cleanup_incrementally(10, True) if backend == "hashmap" else config.cleanup_in_rocksdb_compact_filter(1)
    )
    descriptor = ValueStateDescriptor("seen", Types.STRING())
    descriptor.enable_time_to_live(clean.build())
    return descriptor


class Visits(KeyedProcessFunction):
    """Tells what it knew of a key before."""

    def __init__(self, descriptor: ValueStateDescriptor) -> None:
        self.descriptor = descriptor

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(self.descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value, self.seen.value()
        if value != "look":
            self.seen.update(value[1])


@BACKENDS
def test_time_to_live_goes_by_the_harness_clock(backend: str) -> None:
    harness = OneInputHarness(Visits(short_lived(backend)), first, backend=backend)
    harness.process_element(("a", "x"))
    harness.set_processing_time(99)
    harness.process_element(("a", "y"))
    snapshot = harness.snapshot()
    harness.set_processing_time(199)
    harness.process_element(("a", "z"))
    assert [before for _, before in harness.output] == [None, "x", None]

    restored = harness.restore(snapshot)
    restored.set_processing_time(198)
    restored.process_element(("a", "z"))
    assert [before for _, before in restored.output] == ["y"]


@BACKENDS
def test_expired_state_is_cleaned_up_although_nobody_reads_it(backend: str) -> None:
    harness = OneInputHarness(Visits(short_lived(backend)), first, backend=backend)
    harness.process_elements([(key, "x") for key in "abcdef"])
    harness.end_batch()
    assert harness.num_keyed_state_entries == 6
    harness.set_processing_time(100)
    for _ in range(10):
        harness.process_element(("z", "x"))
        harness.end_batch()
    assert harness.num_keyed_state_entries == 1


class Numbering(MapFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        self.saved = context.get_operator_state_store().get_list_state(ListStateDescriptor("number", Types.INT()))
        self.number = sum(self.saved.get())
        self.restored = context.is_restored()

    def snapshot_state(self, context: Any) -> None:
        self.saved.update([self.number])

    def map(self, value: str) -> Any:
        self.number += 1
        return self.number, value


def test_operator_state() -> None:
    harness = OneInputHarness(Numbering())
    harness.process_elements(["a", "b"])
    assert not harness.function.restored
    snapshot = harness.snapshot()
    harness.process_element("lost")
    restored = harness.restore(snapshot)
    restored.process_element("c")
    assert restored.output == [(3, "c")]
    assert restored.function.restored


class NewVersion(Everything):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield "new", self.count.value()


def test_a_new_version_of_a_function_reads_an_old_snapshot() -> None:
    harness = OneInputHarness(Everything(), first)
    harness.process_elements([Record(("a", 1), 5), Record(("a", 3), 7)])
    newer = OneInputHarness(NewVersion(), first, snapshot=harness.snapshot())
    newer.process_element(("a", 9), 8)
    assert newer.output == [("new", 2)]


class Retyped(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("count", Types.STRING()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        return None


def test_what_does_not_fit_a_snapshot_is_refused() -> None:
    harness = OneInputHarness(Everything(), first)
    harness.process_element(("a", 1), 5)
    snapshot = harness.snapshot()
    with pytest.raises(ProgramError, match="taken with the backend 'hashmap', but the harness has 'rocksdb'"):
        OneInputHarness(Everything(), first, backend="rocksdb", snapshot=snapshot)
    with pytest.raises(ProgramError, match="taken of operator 'Keyed Process', but the harness runs 'Map'"):
        OneInputHarness(Numbering(), snapshot=snapshot)
    with pytest.raises(ProgramError, match="of subtask 0 of 1, but the harness is subtask 1 of 2"):
        OneInputHarness(Everything(), first, parallelism=2, subtask=1, snapshot=snapshot)
    with pytest.raises(Exception, match="what was saved of it is value state of INT"):
        OneInputHarness(Retyped(), first, snapshot=snapshot).open()


def test_state_without_keys() -> None:
    harness = OneInputHarness(Numbering())
    assert harness.num_keyed_state_entries == harness.num_event_time_timers == 0
    with pytest.raises(ProgramError, match="'Map' has no keyed state: pass a key_selector"):
        harness.state(COUNT, "a")
