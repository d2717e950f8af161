"""Late records: dropped, sent to a side output, or firing their window again. A watermark follows every record."""

import sys
import time
from collections.abc import Iterable, Iterator

from firesteel.common import Configuration, Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

ORDER = "label"
Reading = tuple[str, int, int]
READING = Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()])
PAUSE = ("pause", 0, 0)


class ThirdField(TimestampAssigner):
    def extract_timestamp(self, value: Reading, record_timestamp: int) -> int:
        return value[2]


class Show(ProcessWindowFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Reading]) -> Iterator[str]:
        window = context.window()
        yield f"{self.name} {key}> [{window.start}, {window.end}) {[reading[1] for reading in elements]}"


def slowly(reading: Reading) -> Reading:
    if "pyflink" in sys.modules:
        # Its watermarks advance with the wall clock: give them the time to.
        time.sleep(0.1)
    return reading


def main() -> None:
    configuration = Configuration()
    configuration.set_string("python.fn-execution.bundle.size", "1")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    env.get_config().set_auto_watermark_interval(1)
    readings = [
        *(("a", 1, 1000), ("a", 2, 12000), ("a", 3, 5000), ("a", 4, 16500), ("a", 5, 7000)),
        *(("b", 6, 14000), ("b", 7, 30000), ("a", 8, 15000), ("a", 9, 27000), ("b", 10, 1000)),
    ]
    # PyFlink has sent the watermark of a record by the time that some more have come.
    spaced = [one for reading in readings for one in (reading, PAUSE, PAUSE)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    stream = env.from_collection(spaced, READING).map(slowly, READING)
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ThirdField()))
    keyed = timed.filter(lambda reading: reading != PAUSE).key_by(lambda reading: reading[0], Types.STRING())
    kinds = {
        "tumbling": TumblingEventTimeWindows.of(Time.seconds(10)),
        "sliding": SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5)),
        "sessions": EventTimeSessionWindows.with_gap(Time.seconds(3)),
    }
    for name, windows in kinds.items():
        for lateness in (0, 6000):
            # A type of its own: PyFlink cannot pickle a tag whose type is in use already.
            tag = OutputTag(f"late {name} {lateness}", Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()]))
            case = f"{name} {lateness}"
            windowed = keyed.window(windows).allowed_lateness(lateness).side_output_late_data(tag)
            results = windowed.process(Show(case), Types.STRING())
            results.print()
            results.get_side_output(tag).map(lambda r, case=case: f"{case} late> {r}", Types.STRING()).print()
        keyed.window(windows).process(Show(f"{name} dropping"), Types.STRING()).print()
    env.execute("late records")


if __name__ == "__main__":
    main()
