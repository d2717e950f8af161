"""Two keyed streams in STREAMING mode: state for both, a timer that the other stream takes back, side outputs."""

from collections.abc import Iterator
from typing import Any

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    CoFlatMapFunction,
    KeyedCoProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor

ORDER = "none"
RECORD = Types.TUPLE([Types.STRING(), Types.LONG()])
LATE = OutputTag("late", Types.STRING())
Record = tuple[str, int]


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Record, record_timestamp: int) -> int:
        return value[1]


class Match(KeyedCoProcessFunction):
    """Pairs an order with its payment, whichever comes first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.order = runtime_context.get_state(ValueStateDescriptor("order", Types.LONG()))
        self.payment = runtime_context.get_state(ValueStateDescriptor("payment", Types.LONG()))

    def process_element1(self, value: Record, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        self.order.update(value[1])
        yield from self.paired(ctx)

    def process_element2(self, value: Record, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        self.payment.update(value[1])
        yield from self.paired(ctx)

    def paired(self, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        order, payment = self.order.value(), self.payment.value()
        if order is None or payment is None:
            ctx.timer_service().register_event_time_timer(10_000)
            return
        ctx.timer_service().delete_event_time_timer(10_000)
        yield f"{ctx.get_current_key()}: {order} paid at {payment}"

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield LATE, f"{ctx.get_current_key()}: {self.order.value()} {self.payment.value()} at {timestamp}"


class Total(CoFlatMapFunction):
    """Rich, so it has the state of the key: what both sides have brought, once both have."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def flat_map1(self, value: Record) -> Iterator[str]:
        if self.seen.value() is not None:
            yield f"{value[0]} has {self.seen.value() + value[1]}"
        self.seen.update(value[1])

    def flat_map2(self, value: Record) -> Iterator[str]:
        yield from self.flat_map1(value)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    left = env.from_collection([("a", 1), ("b", 2), ("c", 3), ("e", 4)], RECORD)
    right = env.from_collection([("b", 5), ("c", 6), ("d", 7), ("a", 9)], RECORD)
    timed = left.assign_timestamps_and_watermarks(strategy), right.assign_timestamps_and_watermarks(strategy)
    by_key = timed[0].connect(timed[1]).key_by(lambda r: r[0], lambda r: r[0], Types.STRING())
    matched = by_key.process(Match(), Types.STRING())
    matched.print("pair")
    matched.get_side_output(LATE).print("late")
    by_key.flat_map(Total(), Types.STRING()).print("flat")
    env.execute("connected keyed")


if __name__ == "__main__":
    main()
