"""Two streams that are connected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kit import BATCH, STREAMING, ascending, first

from firesteel.common import Types
from firesteel.datastream import (
    CoMapFunction,
    ConnectedStreams,
    CoProcessFunction,
    KeyedCoProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimeDomain,
)
from firesteel.datastream.state import ValueStateDescriptor

MODES = pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
SMALL = {"firesteel.batch.max-records": "3"}


class Label(CoMapFunction):
    """Says where a record came from; None and odd numbers of the second stream vanish."""

    def map1(self, value: Any) -> Any:
        return None if value is None else ("first", value)

    def map2(self, value: Any) -> Any:
        return ("second", value) if value % 2 == 0 else None


class Sides(CoProcessFunction):
    """Logs the side, the record, its time and the watermark."""

    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield "first", value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        yield "second", value, ctx.timestamp(), ctx.timer_service().current_watermark()


class Numbered(KeyedCoProcessFunction):
    """Numbers a key's records over both streams."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        yield "first", ctx.get_current_key(), value, self.next()

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        yield "second", ctx.get_current_key(), value, self.next()

    def next(self) -> int:
        count: int = (self.count.value() or 0) + 1
        self.count.update(count)
        return count


def of_side(log: list[Any], side: str) -> list[Any]:
    return [entry[1] for entry in log if entry[0] == side]


LEFT = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("a", 5)]
RIGHT = [("a", 2), ("b", 1), ("a", 4), ("b", 9), ("d", 7)]


def connected(env: StreamExecutionEnvironment, left: Any = LEFT, right: Any = RIGHT) -> ConnectedStreams:
    return env.from_collection(left).connect(env.from_collection(right)).key_by(first, first)


def timed(env: StreamExecutionEnvironment, left: Any = LEFT, right: Any = RIGHT) -> ConnectedStreams:
    streams = [
        env.from_collection(records).assign_timestamps_and_watermarks(ascending()).set_parallelism(1).key_by(first)
        for records in (left, right)
    ]
    return streams[0].connect(streams[1])


class Alarm(KeyedCoProcessFunction):
    """The first stream sets the timer that its record ``(key, time, timer)`` asks for, the second one takes it back."""

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value[2])
        yield "first", value[0], value[1], ctx.timer_service().current_watermark()

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        ctx.timer_service().delete_event_time_timer(value[2])
        yield "second", value[0], value[1], ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Any]:
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        assert ctx.timestamp() == timestamp
        yield "timer", ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark()
