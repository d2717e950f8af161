"""A timer that registers and deletes others while it fires (PyFlink is right in thread mode only)."""

from collections.abc import Iterator

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class Chain(KeyedProcessFunction):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        for timestamp in (1000, 2000, 3000, 4000):
            ctx.timer_service().register_event_time_timer(timestamp)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[int]:
        if timestamp == 1000:
            ctx.timer_service().register_event_time_timer(1500)
            ctx.timer_service().delete_event_time_timer(3000)
        yield timestamp


def main() -> None:
    configuration = Configuration()
    configuration.set_string("python.execution-mode", "thread")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
    stream = env.from_collection([1], Types.LONG()).assign_timestamps_and_watermarks(strategy)
    stream.key_by(lambda n: n, Types.LONG()).process(Chain(), Types.LONG()).print()
    env.execute("timers in on_timer")


if __name__ == "__main__":
    main()
