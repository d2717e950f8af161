"""The most visited pages of the last ten minutes, every five minutes.

    python examples/top_urls.py
    python examples/top_urls.py --top 5

Two steps. First each page is counted by itself, so that the work is shared by all subtasks. Then the counts of one
window meet in one place and are sorted. How do they find each other? Results of a window carry its last millisecond as
their timestamp. So a second window, as long as the slide of the first, gets exactly the counts of one first window.
"""

import argparse
import random
from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import ProcessAllWindowFunction
from firesteel.datastream.window import SlidingEventTimeWindows, TimeWindow, TumblingEventTimeWindows

MINUTE = 60_000
Visit = tuple[str, int]
"""Page, moment in milliseconds."""
Count = tuple[str, int]
"""Page, visits."""


class Visited(TimestampAssigner):
    def extract_timestamp(self, value: Visit, record_timestamp: int) -> int:
        return value[1]


class Top(ProcessAllWindowFunction[Count, str, TimeWindow]):
    def __init__(self, places: int) -> None:
        self.places = places

    def process(
        self, context: ProcessAllWindowFunction.Context[TimeWindow], elements: Iterable[Count]
    ) -> Iterator[str]:
        ranked = sorted(elements, key=lambda count: (-count[1], count[0]))[: self.places]
        until = context.window().end // MINUTE
        yield f"until minute {until:2}: " + ", ".join(f"{page} {visits}" for page, visits in ranked)


def visits(number: int) -> list[Visit]:
    """Made up: /home is always popular, /news only in the second half. Moments are a little out of order."""
    chance = random.Random(11)
    made = []
    for index in range(number):
        moment = index * 20 * MINUTE // number
        weights = [5, 3, 2, 1, 8 if moment > 10 * MINUTE else 1]
        page = chance.choices(["/home", "/shop", "/help", "/jobs", "/news"], weights)[0]
        made.append((page, max(0, moment - chance.randrange(30_000))))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="The most visited pages of the last ten minutes.")
    parser.add_argument("--top", type=int, default=3, help="how many pages to show")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))
    timed = env.from_collection(visits(2000)).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(Visited())
    )
    counts = (
        timed.map(lambda visit: (visit[0], 1))
        .key_by(lambda count: count[0])
        .window(SlidingEventTimeWindows.of(Time.minutes(10), Time.minutes(5)))
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
    # Every five minutes the counts of one window come, all with the same timestamp: five minutes hold just these.
    top = counts.window_all(TumblingEventTimeWindows.of(Time.minutes(5))).process(Top(options.top))
    # Sorted, because results are collected from several subtasks.
    for line in sorted(top.execute_and_collect("top pages")):
        print(line)


if __name__ == "__main__":
    main()
