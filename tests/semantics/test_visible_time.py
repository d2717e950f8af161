"""Wherever Flink shows a function the time, it sees the record's timestamp, the watermark and the batch's moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import NO_TIME

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    SinkFunction,
)
from firesteel.datastream.state import MapStateDescriptor
from firesteel.datastream.window import (
    CountTrigger,
    Evictor,
    GlobalWindow,
    GlobalWindows,
    Trigger,
    TriggerResult,
)
from firesteel.testing import ListSource, ProcessingTime, Record, Watermark, run_pipeline

STEPS = [[Record("a", 5)], Watermark(7), ProcessingTime(100), [Record("b", 9), "c"]]
RULES = MapStateDescriptor("rules", Types.STRING(), Types.STRING())
SEEN = [("a", 5, NO_TIME, 0), ("b", 9, 7, 100), ("c", NO_TIME, 7, 100)]
"""A record, its timestamp, the watermark, the processing time."""
OF_WINDOWS = [(value, mark, now) for value, _, mark, now in SEEN]


def of_timers(value: Any, ctx: Any) -> Any:
    return (
        value,
        ctx.timestamp(),
        ctx.timer_service().current_watermark(),
        ctx.timer_service().current_processing_time(),
    )


def of_context(value: Any, ctx: Any) -> Any:
    return value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()


class Plain(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield of_timers(value, ctx)


class Keyed(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield of_timers(value, ctx)


class Connected(CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield of_timers(value, ctx)

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield of_timers(value, ctx)


class ConnectedByKey(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        yield of_timers(value, ctx)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        yield of_timers(value, ctx)


class Broadcast(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield of_context(value, ctx)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield of_context(value, ctx)


class BroadcastByKey(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield of_context(value, ctx)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield of_context(value, ctx)


def key(value: str) -> str:
    return "one"


ONE_INPUT: dict[str, Callable[[DataStream], DataStream]] = {
    "process": lambda stream: stream.process(Plain()),
    "keyed process": lambda stream: stream.key_by(key).process(Keyed()),
}
TWO_INPUTS: dict[str, Callable[[DataStream], DataStream]] = {
    "connected": lambda stream: stream.connect(stream).process(Connected()),
    "connected by key": lambda s: s.key_by(key).connect(s.key_by(key)).process(ConnectedByKey()),
    "broadcast": lambda stream: stream.connect(stream.broadcast(RULES)).process(Broadcast()),
    "broadcast by key": lambda s: s.key_by(key).connect(s.broadcast(RULES)).process(BroadcastByKey()),
}


def seen(build: Callable[[DataStream], Any]) -> list[Any]:
    def program(env: Any) -> Any:
        return build(env.from_source(ListSource(STEPS), WatermarkStrategy.no_watermarks(), "steps"))

    found: list[Any] = run_pipeline(program)
    return found


@pytest.mark.parametrize("name", ONE_INPUT)
def test_functions_with_one_input(name: str) -> None:
    assert seen(ONE_INPUT[name]) == SEEN


@pytest.mark.parametrize("name", TWO_INPUTS)
def test_functions_with_two_inputs(name: str) -> None:
    assert sorted(seen(TWO_INPUTS[name])) == sorted(SEEN * 2)


class Asking(Trigger[Any, GlobalWindow]):
    """Fires where it sees the time that it should."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        noticed = (element, timestamp, ctx.get_current_watermark(), ctx.get_current_processing_time())
        return TriggerResult.FIRE_AND_PURGE if noticed in SEEN else TriggerResult.PURGE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        pass


class Looking(Evictor[Any, Any]):
    """Leaves the latest element alone if it sees the time of it, and nothing otherwise."""

    def evict_before(self, elements: list[Any], size: int, window: Any, evictor_context: Any) -> None:
        seen = evictor_context.get_current_watermark(), evictor_context.get_current_processing_time()
        elements[:] = elements[-1:] if (elements[-1].value, *seen) in OF_WINDOWS else []

    def evict_after(self, elements: list[Any], size: int, window: Any, evictor_context: Any) -> None:
        self.evict_before(elements, size, window, evictor_context)


class Window(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        for element in elements:
            yield element, context.current_watermark(), context.current_processing_time()


class ByTheClock(GlobalWindows):
    """An assigner sees the clock alone."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        assert context.get_current_processing_time() == {"a": 0, "b": 100, "c": 100}[element]
        return super().assign_windows(element, timestamp, context)


def test_all_that_makes_a_window() -> None:
    windows = ByTheClock()
    assert seen(lambda s: s.key_by(key).window(windows).trigger(Asking()).process(Window())) == OF_WINDOWS
    each = CountTrigger.of(1)
    found = seen(lambda s: s.key_by(key).window(windows).trigger(each).evictor(Looking()).process(Window()))
    assert found == OF_WINDOWS


class Noting(SinkFunction):
    def __init__(self, file: Path) -> None:
        self.file = str(file)

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        with open(self.file, "a", encoding="utf-8") as file:
            file.write(f"{of_context(value, context)}\n")


def test_a_sink(tmp_path: Path) -> None:
    def build(stream: DataStream) -> None:
        stream.add_sink(Noting(tmp_path / "seen"))

    seen(build)
    # A sink says None where a process function says -2^63: as in Flink's two interfaces.
    expected = [(value, None if time == NO_TIME else time, mark, now) for value, time, mark, now in SEEN]
    assert (tmp_path / "seen").read_text().splitlines() == [str(entry) for entry in expected]
