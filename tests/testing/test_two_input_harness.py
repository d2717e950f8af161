"""The harness with functions of connected and broadcast streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.datastream import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    RuntimeContext,
    RuntimeExecutionMode,
)
from firesteel.datastream.state import MapStateDescriptor, ValueStateDescriptor
from firesteel.errors import JobExecutionError, ProgramError
from firesteel.testing import Record, TwoInputHarness

BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
COUNT = ValueStateDescriptor("count", Types.INT())
LATE = OutputTag("late", Types.STRING())


def first(record: Any) -> Any:
    return record[0]


class Even(CoMapFunction):
    def map1(self, value: int) -> Any:
        return value if value % 2 == 0 else None

    def map2(self, value: int) -> Any:
        return -value


class Twice(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> list[Any]:
        return [value, value]

    def flat_map2(self, value: Any) -> None:
        return None


def test_co_map_and_co_flat_map() -> None:
    harness = TwoInputHarness(Even())
    harness.process_elements1([1, 2])
    harness.process_element2(3, 7)
    assert harness.records == [(2, None), (-3, 7)]
    harness = TwoInputHarness(Twice())
    harness.process_element1("a")
    harness.process_elements2(["b"])
    assert harness.output == ["a", "a"]


class Late(CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield LATE, value


def test_the_slower_input_decides_and_side_outputs_are_lists() -> None:
    harness = TwoInputHarness(Late())
    harness.process_watermark1(10)
    assert harness.watermarks == []
    harness.process_watermark2(5)
    harness.process_element1("a", 8)
    harness.process_element2("b", 9)
    harness.process_watermark(20)
    assert harness.output == [("a", 8, 5)]
    assert harness.side_output(LATE) == ["b"]
    assert harness.watermarks == [5, 20]


class Matching(KeyedCoProcessFunction):
    """A request waits for its answer, for ten milliseconds of event time or processing time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(COUNT)

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None:
        self.count.update(value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        yield ctx.get_current_key(), self.count.value(), value[1]
        self.count.clear()

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Any]:
        if self.count.value() is not None:
            yield ctx.get_current_key(), ctx.time_domain().name, timestamp


@BACKENDS
def test_both_inputs_share_the_state_and_timers_of_a_key(backend: str) -> None:
    harness = TwoInputHarness(Matching(), first, first, backend=backend)
    harness.process_elements1([Record(("a", 1), 5), Record(("b", 2), 6), Record(("c", 3), 7)])
    harness = harness.restore(harness.snapshot())
    assert harness.num_keyed_state_entries == 3
    harness.process_element2(("b", 20), 8)
    assert harness.take_output() == [("b", 2, 20)]
    assert harness.num_keyed_state_entries == 2
    harness.process_watermark(16)
    assert harness.take_output() == [("a", "EVENT_TIME", 15)]
    assert harness.event_time_timers == [(17, "c")]
    assert harness.state(COUNT, "c").value() == 3
    harness.advance_processing_time(10)
    assert sorted(harness.take_output()) == [("a", "PROCESSING_TIME", 10), ("c", "PROCESSING_TIME", 10)]


def test_batch_mode_merges_both_inputs_by_time() -> None:
    harness = TwoInputHarness(Matching(), first, first, mode=RuntimeExecutionMode.BATCH)
    harness.process_element2(("a", 20), 8)
    harness.process_element1(("a", 1), 5)
    assert harness.output == []
    harness.end_input()
    assert harness.output == [("a", 1, 20)]


class Limits(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.get_broadcast_state(RULES).get("limit")

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(*value)


def test_broadcast() -> None:
    harness = TwoInputHarness(Limits(), broadcast_states=[RULES])
    harness.process_element1("a")
    harness.process_broadcast_element(("limit", 5))
    harness.process_element1("b")
    harness = harness.restore(harness.snapshot())
    assert harness.broadcast_state(RULES) == {"limit": 5}
    harness.process_element1("c")
    assert harness.output == [("c", 5)]


class CountUnder(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10)
        yield ctx.get_current_key(), self.count.value(), dict(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value, 1)
        ctx.apply_to_keyed_state(COUNT, lambda key, state: state.update(state.value() * 10))

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield "timer", ctx.get_current_key(), list(ctx.get_broadcast_state(RULES).keys())


@BACKENDS
def test_keyed_broadcast(backend: str) -> None:
    harness = TwoInputHarness(CountUnder(), first, broadcast_states=[RULES], backend=backend)
    harness.process_elements1(["a", "b", "a"])
    harness = harness.restore(harness.snapshot())
    harness.process_broadcast_element("x")
    harness.process_element1("a")
    harness.process_watermark1(10)
    assert harness.take_output() == [("a", 21, {"x": 1})]
    harness.process_watermark2(10)
    assert harness.take_output() == [("timer", "a", ["x"]), ("timer", "b", ["x"])]


def test_what_is_refused() -> None:
    with pytest.raises(ProgramError, match="TwoInputHarness takes an instance of one of CoMapFunction"):
        TwoInputHarness(lambda value: value)
    with pytest.raises(ProgramError, match=r"Pass an instance: Even\(\)"):
        TwoInputHarness(Even)
    with pytest.raises(ProgramError, match="KeyedCoProcessFunction needs two keyed streams"):
        TwoInputHarness(Matching(), first)
    with pytest.raises(ProgramError, match="Limits needs broadcast_states"):
        TwoInputHarness(Limits())
    with pytest.raises(ProgramError, match="takes an instance of KeyedBroadcastProcessFunction"):
        TwoInputHarness(Limits(), first, broadcast_states=[RULES])
    with pytest.raises(ProgramError, match=r"Even has no broadcast input\. Use process_element2"):
        TwoInputHarness(Even()).process_broadcast_element(1)
    with pytest.raises(ProgramError, match="Even has no broadcast state"):
        TwoInputHarness(Even()).broadcast_state(RULES)


def test_a_failure_names_the_element() -> None:
    with pytest.raises(JobExecutionError, match="TypeError") as caught:
        TwoInputHarness(Even()).process_element2("x")
    assert caught.value.element == "'x'"
    with pytest.raises(JobExecutionError, match="Broadcast state 'rules'"):
        TwoInputHarness(Limits(), broadcast_states=[RULES]).process_broadcast_element(("limit", "x"))
