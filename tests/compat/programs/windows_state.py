"""State of a window and of its key in a process window function, cleared with the window; windows after windows."""

from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import ProcessFunction, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import CountTrigger, TumblingEventTimeWindows

ORDER = "label"
Reading = tuple[str, int, int]
READING = Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()])
FIRINGS = ValueStateDescriptor("firings", Types.INT())
WINDOWS = ValueStateDescriptor("windows", Types.INT())


class ThirdField(TimestampAssigner):
    def extract_timestamp(self, value: Reading, record_timestamp: int) -> int:
        return value[2]


class Remember(ProcessWindowFunction):
    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Reading]) -> Iterator[str]:
        own = context.window_state().get_state(FIRINGS)
        own.update((own.value() or 0) + 1)
        every = context.global_state().get_state(WINDOWS)
        every.update((every.value() or 0) + 1)
        values = [reading[1] for reading in elements]
        yield f"{key}> {context.window().start} {values} fired {own.value()} of {every.value()}"

    def clear(self, context: ProcessWindowFunction.Context) -> None:
        context.window_state().get_state(FIRINGS).clear()


class Stamped(ProcessFunction):
    def process_element(self, value: Reading, ctx: ProcessFunction.Context) -> Iterator[str]:
        yield f"stamped {value[0]}> {value[1]} at {ctx.timestamp()}"


def add(one: Reading, other: Reading) -> Reading:
    return one[0], one[1] + other[1], max(one[2], other[2])


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(60))
    readings = [("a", 1, 1000), ("b", 2, 9999), ("a", 4, 500), ("a", 8, 12000), ("b", 16, 31000), ("a", 32, 7000)]
    stream = env.from_collection(readings, READING)
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ThirdField()))
    keyed = timed.key_by(lambda reading: reading[0], Types.STRING())
    fives = TumblingEventTimeWindows.of(Time.seconds(5))
    keyed.window(TumblingEventTimeWindows.of(Time.seconds(10))).trigger(CountTrigger.of(1)).process(
        Remember(), Types.STRING()
    ).print()
    sums = keyed.window(fives).reduce(add)
    sums.process(Stamped(), Types.STRING()).print()
    twenty = sums.key_by(lambda reading: reading[0], Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.seconds(20))
    )
    twenty.reduce(add).process(Stamped(), Types.STRING()).print("again")
    env.execute("state of windows")


if __name__ == "__main__":
    main()
