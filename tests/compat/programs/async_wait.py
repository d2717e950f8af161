"""Asynchronous requests: in order, in any order, with retries, with a substitute for what takes too long."""

import asyncio
from collections.abc import Iterator

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate

ORDER = "label"


class Hundred(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 100


class Lookup(AsyncFunction):
    """Larger numbers are answered sooner; multiples of 4 have no answer, 3 has two."""

    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0.02 * (10 - value))
        if value % 4 == 0:
            return []
        return [value * 10, value * 10 + 1] if value == 3 else [value * 10]


class TooSlow(AsyncFunction):
    async def async_invoke(self, value: int) -> list[str]:
        await asyncio.sleep(30 if value == 2 else 0)
        return [f"{value} answered"]

    def timeout(self, value: int) -> list[str]:
        return [f"{value} took too long", "sorry"]


class Flaky(AsyncFunction):
    """The first two attempts at each element fail, the third finds nothing."""

    def __init__(self) -> None:
        self.attempts: dict[int, int] = {}

    async def async_invoke(self, value: int) -> list[str]:
        attempt = self.attempts[value] = self.attempts.get(value, 0) + 1
        if attempt <= 2:
            raise ConnectionError("busy")
        return [] if attempt == 3 else [f"{value} after {attempt}"]


class WithTime(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[str]:
        yield f"{value} at {ctx.timestamp()}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Hundred())
    numbers = env.from_collection([1, 2, 3, 4, 5], Types.INT()).assign_timestamps_and_watermarks(strategy)
    limit = Time.seconds(10)
    ordered = AsyncDataStream.ordered_wait(numbers, Lookup(), limit, output_type=Types.INT())
    ordered.process(WithTime(), Types.STRING()).print("ordered")
    unordered = AsyncDataStream.unordered_wait(numbers, Lookup(), limit, 1, Types.INT())
    unordered.process(WithTime(), Types.STRING()).print("one at a time")
    AsyncDataStream.ordered_wait(numbers, TooSlow(), Time.seconds(1), 100, Types.STRING()).print("timeout")
    twice = AsyncRetryStrategy.fixed_delay(2, 10, empty_result_predicate, has_exception_predicate)
    AsyncDataStream.ordered_wait_with_retry(numbers, Flaky(), limit, twice, output_type=Types.STRING()).print("twice")
    often = AsyncRetryStrategy.exponential_backoff(5, 10, 40, 2.0, empty_result_predicate, has_exception_predicate)
    AsyncDataStream.ordered_wait_with_retry(numbers, Flaky(), limit, often, output_type=Types.STRING()).print("often")
    env.execute("async wait")


if __name__ == "__main__":
    main()
