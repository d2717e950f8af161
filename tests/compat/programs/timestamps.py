"""What ctx.timestamp() and current_watermark() read with and without assigned timestamps."""

from collections.abc import Iterator

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment

ORDER = "label"


class Hundred(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 100


class Unkeyed(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[str]:
        yield f"{value} {ctx.timestamp()}"


class Keyed(KeyedProcessFunction):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        service = ctx.timer_service()
        now = service.current_processing_time() > 1_600_000_000_000
        yield f"{value} {ctx.timestamp()} {service.current_watermark()} {now}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.get_config().set_auto_watermark_interval(1_000_000)
    numbers = env.from_collection([1, 2, 3], Types.INT())
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Hundred())
    timed = numbers.assign_timestamps_and_watermarks(strategy)
    timed.process(Unkeyed(), Types.STRING()).print("timed unkeyed")
    timed.map(lambda n: n + 1, Types.INT()).key_by(lambda n: n, Types.INT()).process(Keyed(), Types.STRING()).print(
        "timed keyed"
    )
    numbers.process(Unkeyed(), Types.STRING()).print("untimed unkeyed")
    numbers.key_by(lambda n: n, Types.INT()).process(Keyed(), Types.STRING()).print("untimed keyed")
    env.execute("timestamps")


if __name__ == "__main__":
    main()
