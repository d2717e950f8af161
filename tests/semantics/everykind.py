"""A program with a state of every kind, and steps to feed it with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kit import first

from firesteel.common import Time, Types
from firesteel.datastream import AggregateFunction, DataStream, KeyedProcessFunction, RuntimeContext
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.testing import ProcessingTime, Record, Watermark


class Total(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class EveryKind(KeyedProcessFunction):
    """A state of each kind, some with a time to live, one big list and one big map, and timers of both kinds."""

    def open(self, runtime_context: RuntimeContext) -> None:
        ttl = StateTtlConfig.new_builder(Time.seconds(1000)).build()
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        stamped = ValueStateDescriptor("stamped", Types.PICKLED_BYTE_ARRAY())
        stamped.enable_time_to_live(ttl)
        marks = MapStateDescriptor("marks", Types.LONG(), Types.STRING())
        marks.enable_time_to_live(ttl)
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.stamped = runtime_context.get_state(stamped)
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.squares = runtime_context.get_map_state(MapStateDescriptor("squares", Types.LONG(), Types.STRING()))
        self.marks = runtime_context.get_map_state(marks)
        self.most = runtime_context.get_reducing_state(ReducingStateDescriptor("most", max, Types.LONG()))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Total(), pair))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        _, number = value
        self.count.update((self.count.value() or 0) + 1)
        self.stamped.update({"last": number})
        self.seen.add(number)
        self.squares.put(number, str(number * number))
        self.marks.put(number % 3, f"m{number}")
        self.most.add(number)
        self.mean.add(number)
        ctx.timer_service().register_event_time_timer(1000 + number)
        ctx.timer_service().register_processing_time_timer(5000 + number % 5)
        yield (
            ctx.get_current_key(),
            self.count.value(),
            self.stamped.value()["last"],
            sum(self.seen.get()),
            len(list(self.squares.items())),
            sorted(self.marks.items()),
            self.most.get(),
            self.mean.get(),
        )

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), "timer", timestamp, ctx.time_domain().name


def every_kind(stream: DataStream) -> DataStream:
    return stream.key_by(first, key_type=Types.STRING()).process(EveryKind()).uid("every").name("every kind")


def steps_of(records: int, keys: int = 7) -> list[Any]:
    numbers = [[(f"k{n % keys}", n) for n in range(at, min(at + 40, records))] for at in range(0, records, 40)]
    return [ProcessingTime(1000), *numbers]


END = [ProcessingTime(6000), [Record(("k0", 5000), 1100)], Watermark(3000)]
