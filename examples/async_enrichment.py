"""Looks up every order's customer in a slow service, a hundred look-ups at a time.

    python examples/async_enrichment.py
    python examples/async_enrichment.py --orders 5000 --capacity 500

Each look-up takes about 50 ms. One after the other, 1,000 of them would take 50 s; here many are under way at once.
Now and then the service is busy (then it is asked again) or does not answer at all (then a substitute goes out).
"""

import argparse
import asyncio
import random
import time

from firesteel.common import Time, Types
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.async_retry_predicates import has_exception_predicate

Order = tuple[int, int]
"""Number of the order, number of the customer."""

CITIES = ["Athens", "Bergen", "Cork", "Delft", "Evora"]


class SlowService:
    """Stands for a database or a web service. In a real program this is a client such as ``aiohttp.ClientSession``."""

    async def city_of(self, customer: int) -> str:
        await asyncio.sleep(random.uniform(0.04, 0.06))
        if customer == 13:
            await asyncio.sleep(3600)
        if random.random() < 0.01:
            raise ConnectionError("the service is busy")
        return CITIES[customer % len(CITIES)]


class AddCity(AsyncFunction[Order, tuple[int, str]]):
    def open(self, runtime_context: RuntimeContext) -> None:
        # open() runs on the event loop that serves the requests: the place to make a client.
        self.service = SlowService()

    async def async_invoke(self, value: Order) -> list[tuple[int, str]]:
        order, customer = value
        return [(order, await self.service.city_of(customer))]

    def timeout(self, value: Order) -> list[tuple[int, str]]:
        order, _ = value
        return [(order, "unknown")]


def main() -> None:
    parser = argparse.ArgumentParser(description="Looks up every order's customer, many at a time.")
    parser.add_argument("--orders", type=int, default=1000, help="how many orders")
    parser.add_argument("--capacity", type=int, default=100, help="how many look-ups at a time, in each subtask")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection([(number, number % 200) for number in range(options.orders)])
    # Only counted, so the order of the answers does not matter: nobody needs to wait for a slow one before.
    cities = AsyncDataStream.unordered_wait_with_retry(
        orders,
        AddCity(),
        Time.seconds(1),
        AsyncRetryStrategy.fixed_delay(3, 20, None, has_exception_predicate),
        options.capacity,
        Types.TUPLE([Types.INT(), Types.STRING()]),
    )
    counts = cities.map(lambda pair: (pair[1], 1)).key_by(lambda pair: pair[0]).sum(1)

    started = time.monotonic()
    totals = dict(counts.execute_and_collect("async enrichment"))
    for city, number in sorted(totals.items()):
        print(f"{city:10} {number:6,} orders")
    seconds = time.monotonic() - started
    print(f"{options.orders:,} look-ups of about 50 ms took {seconds:.1f} s, start of the job included")


if __name__ == "__main__":
    main()
