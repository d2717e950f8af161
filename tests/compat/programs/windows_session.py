"""Sessions: records out of order that open, lengthen, touch and bridge them; gaps fixed and by record."""

from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import EventTimeSessionWindows, SessionWindowTimeGapExtractor

ORDER = "label"
Click = tuple[str, int, int]


class ThirdField(TimestampAssigner):
    def extract_timestamp(self, value: Click, record_timestamp: int) -> int:
        return value[2]


class Patience(SessionWindowTimeGapExtractor):
    def extract(self, element: Click) -> int:
        return element[1] * 1000


class Show(ProcessWindowFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Click]) -> Iterator[str]:
        window = context.window()
        yield f"{self.name} {key}> [{window.start}, {window.end}) {sorted(click[1] for click in elements)}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(600))
    clicks = [
        *(("a", 1, 0), ("a", 2, 15000), ("b", 3, 5000), ("a", 4, 8000), ("a", 5, 60000), ("b", 6, 15000)),
        *(("b", 7, 26001), ("a", 8, 51000), ("c", 9, -3000), ("c", 10, 7000), ("a", 11, 61000)),
    ]
    stream = env.from_collection(clicks, Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()]))
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ThirdField()))
    keyed = timed.key_by(lambda click: click[0], Types.STRING())
    fixed = EventTimeSessionWindows.with_gap(Time.seconds(10))
    keyed.window(fixed).process(Show("fixed"), Types.STRING()).print()
    dynamic = EventTimeSessionWindows.with_dynamic_gap(Patience())
    keyed.window(dynamic).process(Show("dynamic"), Types.STRING()).print()
    env.execute("session windows")


if __name__ == "__main__":
    main()
