"""Transcripts of timers, event time, the clock, state and its time to live: what happens, and what comes out then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kit import FOREVER, NO_TIME, first

from firesteel.common import Time, Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.testing import ProcessingTime, Record, Step, Watermark


@dataclass(frozen=True)
class Transcript:
    """A function on a keyed stream, the steps of a run, and the results of each step."""

    function: Callable[[], KeyedProcessFunction]
    lines: list[tuple[Step, list[Any]]]
    end: list[Any]
    """What comes out when the input ends."""

    @property
    def steps(self) -> list[Step]:
        return [step for step, _ in self.lines]

    @property
    def results(self) -> list[Any]:
        return [result for _, results in self.lines for result in results] + self.end


class Timers(KeyedProcessFunction):
    """Follows elements (key, command, moment) and tells what fires, with both clocks."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        timers = ctx.timer_service()
        match value[1:]:
            case "event", moment:
                timers.register_event_time_timer(moment)
            case "processing", moment:
                timers.register_processing_time_timer(moment)
            case "no event", moment:
                timers.delete_event_time_timer(moment)
            case "no processing", moment:
                timers.delete_processing_time_timer(moment)
            case _:
                yield value[0], ctx.timestamp(), timers.current_watermark(), timers.current_processing_time()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        timers = ctx.timer_service()
        now = timers.current_watermark(), timers.current_processing_time()
        yield ctx.get_current_key(), ctx.time_domain().name.lower(), timestamp, *now


class Meddling(KeyedProcessFunction):
    """A timer that sets an earlier and a later one, and deletes one."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        for moment in (1000, 2000, 3000, 4000):
            ctx.timer_service().register_event_time_timer(moment)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[int]:
        if timestamp == 1000:
            ctx.timer_service().register_event_time_timer(1500)
            ctx.timer_service().register_event_time_timer(500)
            ctx.timer_service().delete_event_time_timer(3000)
        yield timestamp


class Session(KeyedProcessFunction):
    """Collects a key's values until none has come for ten milliseconds of event time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.STRING()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        if self.timer.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.timer.value())
        self.values.add(value[1])
        self.timer.update(ctx.timestamp() + 10)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), list(self.values.get())
        self.values.clear()
        self.timer.clear()


class Heartbeat(KeyedProcessFunction):
    """Beats every ten milliseconds of processing time since a key's first record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.beats = runtime_context.get_state(ValueStateDescriptor("beats", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        if self.beats.value() is None:
            self.beats.update(0)
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + 10)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        self.beats.update(self.beats.value() + 1)
        ctx.timer_service().register_processing_time_timer(timestamp + 10)
        yield ctx.get_current_key(), self.beats.value(), timestamp


class Remembering(KeyedProcessFunction):
    """Tells what a map of a key holds, whose entries live a hundred milliseconds, and adds to it."""

    def __init__(self, renewed_by_reading: bool) -> None:
        kinds = StateTtlConfig.UpdateType
        update = kinds.OnReadAndWrite if renewed_by_reading else kinds.OnCreateAndWrite
        self.seen = MapStateDescriptor("seen", Types.STRING(), Types.INT())
        self.seen.enable_time_to_live(
            StateTtlConfig.new_builder(Time.milliseconds(100)).set_update_type(update).build()
        )

    def open(self, runtime_context: RuntimeContext) -> None:
        self.map = runtime_context.get_map_state(self.seen)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield dict(sorted(self.map.items()))
        if value[1] is not None:
            self.map.put(value[1], len(value))


class Commands(KeyedProcessFunction):
    """Follows commands on one value and tells what it reads before and after each."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.STRING()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        before = self.state.value()
        match value[1]:
            case "clear":
                self.state.clear()
            case "none":
                self.state.update(None)
            case "look":
                pass
            case text:
                self.state.update(text)
        yield before, self.state.value()


TRANSCRIPTS = {
    "timers of event time": Transcript(
        Timers,
        [
            ([Record(("a", "event", 30), 1), Record(("b", "event", 10), 2), Record(("a", "event", 20), 3)], []),
            (Watermark(9), []),
            (Watermark(20), [("b", "event_time", 10, 20, 0), ("a", "event_time", 20, 20, 0)]),
            # It cannot be earlier than what was promised.
            (Watermark(15), []),
            ([("a", "event", 5), Record(("b", "look"), 25)], [("b", 25, 20, 0)]),
            (Watermark(21), [("a", "event_time", 5, 21, 0)]),
            ([("a", "no event", 30), ("a", "event", 40), ("b", "event", FOREVER)], []),
            ([("a", "look"), Watermark(30), ("a", "look")], [("a", NO_TIME, 21, 0), ("a", NO_TIME, 30, 0)]),
            (ProcessingTime(5), []),
        ],
        [("a", "event_time", 40, FOREVER, 5), ("b", "event_time", FOREVER, FOREVER, 5)],
    ),
    "timers of processing time": Transcript(
        Timers,
        [
            ([("a", "processing", 30), ("b", "processing", 10), ("a", "processing", 20)], []),
            (ProcessingTime(9), []),
            ([("a", "no processing", 30), ("a", "processing", 31)], []),
            (Watermark(1000), []),
            (
                ProcessingTime(30),
                [("b", "processing_time", 10, 1000, 30), ("a", "processing_time", 20, 1000, 30)],
            ),
            ([("b", "look"), ("b", "processing", 500)], [("b", NO_TIME, 1000, 30)]),
            (ProcessingTime(31), [("a", "processing_time", 31, 1000, 31)]),
        ],
        [],
    ),
    "timers that meddle with timers": Transcript(
        Meddling,
        [
            ([("a",)], []),
            (Watermark(999), []),
            (Watermark(1600), [1000, 500, 1500]),
            (Watermark(3500), [2000]),
        ],
        [4000],
    ),
    "sessions": Transcript(
        Session,
        [
            ([Record(("a", "1"), 0), Record(("b", "2"), 3), Record(("a", "3"), 5)], []),
            (Watermark(8), []),
            ([Record(("a", "4"), 9)], []),
            (Watermark(18), [("b", ["2"])]),
            ([Record(("b", "5"), 30), Watermark(29), Record(("a", "6"), 40)], [("a", ["1", "3", "4"])]),
        ],
        [("b", ["5"]), ("a", ["6"])],
    ),
    "a heartbeat": Transcript(
        Heartbeat,
        [
            ([("a",)], []),
            (ProcessingTime(10), [("a", 1, 10)]),
            ([("a",)], []),
            (ProcessingTime(15), []),
            ([("b",)], []),
            # All that was missed, in order.
            (ProcessingTime(40), [("a", 2, 20), ("b", 1, 25), ("a", 3, 30), ("b", 2, 35), ("a", 4, 40)]),
        ],
        [],
    ),
    "time to live from writing": Transcript(
        lambda: Remembering(renewed_by_reading=False),
        [
            ([("k", "x")], [{}]),
            (ProcessingTime(60), []),
            ([("k", "y"), ("k", None), ("other", None)], [{"x": 2}, {"x": 2, "y": 2}, {}]),
            (ProcessingTime(99), []),
            ([("k", None)], [{"x": 2, "y": 2}]),
            (ProcessingTime(100), []),
            ([("k", None)], [{"y": 2}]),
            (ProcessingTime(160), []),
            ([("k", None)], [{}]),
        ],
        [],
    ),
    "time to live from reading": Transcript(
        lambda: Remembering(renewed_by_reading=True),
        [
            ([("k", "x")], [{}]),
            (ProcessingTime(99), []),
            ([("k", None)], [{"x": 2}]),
            (ProcessingTime(198), []),
            ([("k", None)], [{"x": 2}]),
            (ProcessingTime(298), []),
            ([("k", None)], [{}]),
        ],
        [],
    ),
    "a value is set and cleared": Transcript(
        Commands,
        [
            ([("k", "look"), ("k", "x")], [(None, None), (None, "x")]),
            ([("k", "look"), ("k", "clear")], [("x", "x"), ("x", None)]),
            ([("k", "look"), ("k", "y"), ("k", "none")], [(None, None), (None, "y"), ("y", None)]),
            ([("k", "clear"), ("other", "look"), ("k", "z")], [(None, None), (None, None), (None, "z")]),
            ([("k", "look")], [("z", "z")]),
        ],
        [],
    ),
}

KEY = first
