"""A side output of a keyed process function, from process_element and from on_timer."""

from collections.abc import Iterator
from typing import Any

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, OutputTag, StreamExecutionEnvironment

ORDER = "label"
NOTES = OutputTag("notes", Types.STRING())


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class Noting(KeyedProcessFunction):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value)
        yield NOTES, f"saw {value}"
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield NOTES, f"timer {timestamp}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
    stream = env.from_collection([1, 2, 3], Types.LONG()).assign_timestamps_and_watermarks(strategy)
    noted = stream.key_by(lambda n: 0, Types.INT()).process(Noting(), Types.LONG())
    noted.print("main")
    noted.get_side_output(NOTES).print("notes")
    env.execute("keyed side output")


if __name__ == "__main__":
    main()
