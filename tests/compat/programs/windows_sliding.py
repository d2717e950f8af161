"""Sliding windows of event time: overlapping, with an offset, with gaps between them."""

from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import SlidingEventTimeWindows

ORDER = "label"
Reading = tuple[str, int, int]


class ThirdField(TimestampAssigner):
    def extract_timestamp(self, value: Reading, record_timestamp: int) -> int:
        return value[2]


class Show(ProcessWindowFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Reading]) -> Iterator[str]:
        window = context.window()
        yield f"{self.name} {key}> [{window.start}, {window.end}) {[reading[1] for reading in elements]}"


def add(one: Reading, other: Reading) -> Reading:
    return one[0], one[1] + other[1], max(one[2], other[2])


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(60))
    readings = [("a", 1, 1000), ("b", 2, 9999), ("a", 4, 500), ("a", 8, 12000), ("b", 16, 31000), ("a", 32, 7000)]
    stream = env.from_collection(readings, Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()]))
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ThirdField()))
    keyed = timed.key_by(lambda reading: reading[0], Types.STRING())
    for size, slide, offset in ((10, 5, 0), (10, 5, 2), (15, 10, 0), (5, 10, 0), (10, 10, -3)):
        windows = SlidingEventTimeWindows.of(Time.seconds(size), Time.seconds(slide), Time.seconds(offset))
        name = f"{size} every {slide} from {offset}"
        keyed.window(windows).process(Show(name), Types.STRING()).print()
        keyed.window(windows).reduce(add, Show(f"{name} reduced"), Types.STRING()).print()
    env.execute("sliding windows")


if __name__ == "__main__":
    main()
