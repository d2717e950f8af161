"""Windows over all records of a stream, whatever their keys."""

from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)

ORDER = "label"
Reading = tuple[str, int, int]
READING = Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()])


class ThirdField(TimestampAssigner):
    def extract_timestamp(self, value: Reading, record_timestamp: int) -> int:
        return value[2]


class Show(ProcessAllWindowFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, context: ProcessAllWindowFunction.Context, elements: Iterable[Reading]) -> Iterator[str]:
        window = context.window()
        yield f"{self.name}> [{window.start}, {window.end}) {[reading[:2] for reading in elements]}"


class Apply(AllWindowFunction):
    def apply(self, window: TimeWindow, inputs: Iterable[Reading]) -> list[str]:
        return [f"apply> [{window.start}, {window.end}) {[reading[:2] for reading in inputs]}"]


def add(one: Reading, other: Reading) -> Reading:
    return one[0] + other[0], one[1] + other[1], max(one[2], other[2])


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(60))
    readings = [("a", 1, 1000), ("b", 2, 9999), ("a", 4, 500), ("c", 8, 12000), ("b", 16, 31000), ("a", 32, 7000)]
    stream = env.from_collection(readings, READING)
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ThirdField()))
    tens = TumblingEventTimeWindows.of(Time.seconds(10))
    slides = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
    sessions = EventTimeSessionWindows.with_gap(Time.seconds(8))
    timed.window_all(tens).process(Show("tumbling"), Types.STRING()).print()
    timed.window_all(slides).process(Show("sliding"), Types.STRING()).print()
    timed.window_all(sessions).process(Show("sessions"), Types.STRING()).print()
    timed.window_all(tens).apply(Apply(), Types.STRING()).print()
    timed.window_all(tens).reduce(add).map(lambda r: f"reduce> {r}", Types.STRING()).print()
    timed.window_all(tens).reduce(add, Show("reduce and process"), Types.STRING()).print()
    env.execute("windows over all")


if __name__ == "__main__":
    main()
