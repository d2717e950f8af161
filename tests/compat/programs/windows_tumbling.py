"""Tumbling windows of event time with every kind of function, and with offsets."""

from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    AggregateFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.window import TimeWindow, TumblingEventTimeWindows

ORDER = "label"
Reading = tuple[str, int, int]
READING = Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()])
READINGS = [("a", 1, 1000), ("b", 2, 9999), ("a", 3, 500), ("a", 4, 10000), ("b", 5, 12000), ("a", 6, -1)]


class ThirdField(TimestampAssigner):
    def extract_timestamp(self, value: Reading, record_timestamp: int) -> int:
        return value[2]


class Total(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Reading, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value[1]

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[1] / accumulator[0]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Show(ProcessWindowFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[object]) -> Iterator[str]:
        window = context.window()
        yield f"{self.name} {key}> [{window.start}, {window.end}) {window.max_timestamp()} {list(elements)}"


class Apply(WindowFunction):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[Reading]) -> list[str]:
        return [f"apply {key}> [{window.start}, {window.end}) {sorted(inputs)}"]


def add(one: Reading, other: Reading) -> Reading:
    return one[0], one[1] + other[1], max(one[2], other[2])


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20))
    timed = env.from_collection(READINGS, READING).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(ThirdField())
    )
    keyed = timed.key_by(lambda reading: reading[0], Types.STRING())
    tens = TumblingEventTimeWindows.of(Time.seconds(10))
    text = Types.STRING()
    keyed.window(tens).process(Show("process"), text).print()
    keyed.window(tens).apply(Apply(), text).print()
    keyed.window(tens).reduce(add).map(lambda r: f"reduce {r[0]}> {r}", text).print()
    keyed.window(tens).reduce(add, Show("reduce and process"), text).print()
    averages = keyed.window(tens).aggregate(
        Total(), Show("aggregate and process"), Types.TUPLE([Types.INT(), Types.INT()]), text
    )
    averages.print()
    for offset in (3, -4):
        moved = TumblingEventTimeWindows.of(Time.seconds(10), Time.seconds(offset))
        keyed.window(moved).process(Show(f"offset {offset}"), text).print()
    env.execute("tumbling windows")


if __name__ == "__main__":
    main()
