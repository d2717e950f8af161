"""Two keyed streams in BATCH mode: one order of event time per key, one state, timers of both kinds at a key's end."""

from collections.abc import Iterator

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    DataStream,
    KeyedCoProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor

ORDER = "label"
RECORD = Types.TUPLE([Types.STRING(), Types.LONG()])
Record = tuple[str, int]


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Record, record_timestamp: int) -> int:
        return value[1]


class Log(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element1(self, value: Record, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        ctx.timer_service().register_event_time_timer(value[1] + 100)
        yield self.line("first", value, ctx)

    def process_element2(self, value: Record, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        ctx.timer_service().register_processing_time_timer(value[1] + 100)
        yield self.line("second", value, ctx)

    def line(self, side: str, value: Record, ctx: KeyedCoProcessFunction.Context) -> str:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        watermark = ctx.timer_service().current_watermark()
        return f"{ctx.get_current_key()}> {side} {value[1]} at {ctx.timestamp()} number {count} {watermark}"

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[str]:
        watermark = ctx.timer_service().current_watermark()
        domain = ctx.time_domain().name
        yield f"{ctx.get_current_key()}> timer {timestamp} {ctx.timestamp()} {domain} {self.count.value()} {watermark}"


def main() -> None:
    configuration = Configuration()
    # PyFlink's process mode loses state and timers in BATCH mode; its thread mode is right.
    configuration.set_string("python.execution-mode", "thread")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())

    def timed(records: list[Record]) -> DataStream:
        return env.from_collection(records, RECORD).assign_timestamps_and_watermarks(strategy)

    left = timed([("a", 50), ("b", 2), ("a", 1), ("c", 4), ("a", 31)])
    right = timed([("a", 40), ("b", 9), ("a", 20), ("b", 1), ("d", 7)])
    by_key = left.key_by(lambda r: r[0], Types.STRING()).connect(right.key_by(lambda r: r[0], Types.STRING()))
    by_key.process(Log(), Types.STRING()).print()
    env.execute("connected batch")


if __name__ == "__main__":
    main()
