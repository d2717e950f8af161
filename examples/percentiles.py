"""The 75th and the 99th percentile of response times, per service and hour.

    python examples/percentiles.py
    python examples/percentiles.py --requests 100000

A percentile cannot be updated like a sum: all values of the hour must be known. But they need not be kept one by
one. An aggregate function adds each value to a histogram as it comes, so that a window holds a few dozen numbers,
however many requests an hour has. Each bucket is a tenth larger than the one before, so a percentile is at most a tenth
too high.
"""

import argparse
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import TimeWindow, TumblingEventTimeWindows

Request = tuple[str, int, float]
"""Service, moment in milliseconds, duration in milliseconds."""

HOUR = 3_600_000
GROWTH = math.log(1.1)


class Histogram(AggregateFunction):
    """Counts values by bucket; its result are the percentiles asked for."""

    def __init__(self, *percentiles: int) -> None:
        self.percentiles = percentiles

    def create_accumulator(self) -> Counter[int]:
        return Counter()

    def add(self, value: Request, accumulator: Counter[int]) -> Counter[int]:
        accumulator[math.ceil(math.log(value[2]) / GROWTH)] += 1
        return accumulator

    def get_result(self, accumulator: Counter[int]) -> dict[int, float]:
        return {percentile: self.percentile(accumulator, percentile) for percentile in self.percentiles}

    def merge(self, acc_a: Counter[int], acc_b: Counter[int]) -> Counter[int]:
        return acc_a + acc_b

    @staticmethod
    def percentile(counts: Counter[int], percentile: int) -> float:
        wanted = math.ceil(counts.total() * percentile / 100)
        for bucket in sorted(counts):
            wanted -= counts[bucket]
            if wanted <= 0:
                return math.exp(bucket * GROWTH)
        raise ValueError("a window without values does not fire")


class Label(ProcessWindowFunction[dict[int, float], str, str, TimeWindow]):
    """Adds the service and the hour, which an aggregate function does not know."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[dict[int, float]]
    ) -> Iterator[str]:
        (found,) = elements
        shown = ", ".join(f"p{percentile} {value:6.1f} ms" for percentile, value in found.items())
        yield f"{context.window().start // HOUR:2}:00 {key:8} {shown}"


class Began(TimestampAssigner):
    def extract_timestamp(self, value: Request, record_timestamp: int) -> int:
        return value[1]


def requests(number: int) -> list[Request]:
    """Made up: the search is slower than the login, and at two o'clock something is wrong with it."""
    chance = random.Random(7)
    made = []
    for index in range(number):
        moment = index * 4 * HOUR // number
        service = chance.choice(["login", "search"])
        typical = 20.0 if service == "login" else 60.0
        if service == "search" and moment >= 2 * HOUR and chance.random() < 0.05:
            typical *= 20
        made.append((service, moment, typical * chance.lognormvariate(0, 0.3)))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Percentiles of response times, per service and hour.")
    parser.add_argument("--requests", type=int, default=20_000, help="how many requests to make up")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))
    timed = env.from_collection(requests(options.requests)).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(Began())
    )
    hourly = timed.key_by(lambda request: request[0]).window(TumblingEventTimeWindows.of(Time.hours(1)))
    for line in sorted(hourly.aggregate(Histogram(75, 99), Label()).execute_and_collect("percentiles")):
        print(line)


if __name__ == "__main__":
    main()
