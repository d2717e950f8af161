"""Temperature readings that arrive out of order, and how long to wait for the stragglers.

    python examples/out_of_order_readings.py
    python examples/out_of_order_readings.py --delay 0

Readings carry the moment at which they were taken. On their way some overtake others. A window of ten seconds must not
close when the first reading of the next ten seconds arrives: older ones may be on their way still.

A watermark says how far event time has come. With a bounded delay it stays that far behind the newest reading:

    watermark = newest moment seen - delay - 1 ms

A window closes when the watermark reaches its last millisecond. With a delay of 3 seconds every reading below finds its
window open. With --delay 0 three of them come too late and are missing from the averages.
"""

import argparse
from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import TimeWindow, TumblingEventTimeWindows

Reading = tuple[str, float, float]
"""Sensor, second, degrees."""

READINGS: list[Reading] = [
    ("roof", 1.0, 20.0),
    ("roof", 4.0, 21.0),
    ("roof", 11.0, 30.0),
    ("roof", 9.0, 22.0),  # two seconds behind
    ("roof", 12.0, 31.0),
    ("roof", 9.5, 25.0),  # two and a half
    ("roof", 21.0, 40.0),
    ("roof", 18.5, 35.0),  # again
    ("roof", 25.0, 42.0),
]


class Taken(TimestampAssigner):
    def extract_timestamp(self, value: Reading, record_timestamp: int) -> int:
        return int(value[1] * 1000)


class Average(ProcessWindowFunction[Reading, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Reading]
    ) -> Iterator[str]:
        degrees = [reading[2] for reading in elements]
        start, end = context.window().start // 1000, context.window().end // 1000
        yield f"{key} {start:2} s to {end} s: {sum(degrees) / len(degrees):.1f} degrees of {len(degrees)} readings"


def main() -> None:
    parser = argparse.ArgumentParser(description="Averages readings that arrive out of order.")
    parser.add_argument("--delay", type=float, default=3, help="seconds to wait for stragglers")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    # All readings would fit into one micro-batch, whose records are never late to each other. To see what a delay is
    # good for, ask for a watermark after every reading.
    env.get_config().set_auto_watermark_interval(1)

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(int(options.delay * 1000)))
    timed = env.from_collection(READINGS).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Taken()))
    averages = (
        timed.set_parallelism(1)
        .key_by(lambda reading: reading[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .process(Average())
    )
    for line in averages.execute_and_collect("out of order"):
        print(line)


if __name__ == "__main__":
    main()
