"""In BATCH a key's records arrive in event-time order, all timers fire, and state works as in streams."""

from collections.abc import Iterator

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor

ORDER = "label"


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: tuple[str, int], record_timestamp: int) -> int:
        return value[1]


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        self.seen.update((self.seen.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[1] + 1)
        yield f"{ctx.get_current_key()}> element {ctx.timestamp()} {self.seen.value()}"

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[str]:
        yield f"{ctx.get_current_key()}> timer {timestamp} {self.seen.value()}"


def main() -> None:
    configuration = Configuration()
    configuration.set_string("python.execution-mode", "thread")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(1)
    records = [("a", 300), ("b", 50), ("a", 100), ("a", 200), ("b", 40)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    stream = env.from_collection(records, Types.TUPLE([Types.STRING(), Types.LONG()]))
    timed = stream.assign_timestamps_and_watermarks(strategy)
    timed.key_by(lambda record: record[0], Types.STRING()).process(Remember(), Types.STRING()).print()
    env.execute("batch order")


if __name__ == "__main__":
    main()
