"""AsyncDataStream: requests overlap, capacity limits them, order and watermarks hold, nothing leaks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from asynckit import EVENTS, LIMIT, Echo, Later, no_events, others, threads_of_operators, wait_in_both_ways  # noqa: F401 - fixtures
from kit import BATCH, STREAMING, LineServer, TimerLog, ascending, eventually, first, slow_numbers

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    DataStream,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import JobExecutionError

# Order


@pytest.mark.both_engines
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
def test_ordered_keeps_the_order_of_the_elements(run: Any, parallelism: int, mode: Any) -> None:
    records = [(number, 50 - number % 10 * 5) for number in range(60)]
    results = run(
        lambda env: AsyncDataStream.ordered_wait(env.from_collection(records), Later(), LIMIT),
        parallelism,
        mode=mode,
    )
    for subtask in range(parallelism):
        mine = [number for one, number in results if one == subtask]
        assert mine == sorted(mine)
        assert mine
    assert sorted(number for _, number in results) == list(range(60))


class EveryTwentiethLast(AsyncFunction):
    """Answers every twentieth number when all others of its subtask are answered."""

    def __init__(self, first_ones: int) -> None:
        self.first_ones = first_ones

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.answered = asyncio.Event()

    async def async_invoke(self, value: int) -> list[Any]:
        if value % 20 == 0:
            await self.answered.wait()
            await asyncio.sleep(0.01)
        else:
            self.first_ones -= 1
            if not self.first_ones:
                self.answered.set()
        return [(self.subtask, value)]


@pytest.mark.both_engines
@pytest.mark.parametrize("parallelism", [1, 3])
def test_unordered_lets_the_fast_pass_the_slow(run: Any, parallelism: int) -> None:
    function = EveryTwentiethLast(57 // parallelism)
    results = run(
        lambda env: AsyncDataStream.unordered_wait(env.from_collection(list(range(60))), function, LIMIT), parallelism
    )
    for subtask in range(parallelism):
        mine = [number for one, number in results if one == subtask]
        assert [number for number in mine if number % 20 == 0] == mine[-60 // 20 // parallelism :]
    assert sorted(number for _, number in results) == list(range(60))


class Repeated(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0.001)
        return [value[0]] * value[0]


class WithTime(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timestamp()


def test_results_keep_the_timestamp_of_their_element(run: Any, wait: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        timed = env.from_collection([(n, n * 10) for n in range(4)]).assign_timestamps_and_watermarks(ascending())
        return wait(timed, Repeated(), LIMIT).process(WithTime())

    assert sorted(run(build)) == [(1, 10), (2, 20), (2, 20), (3, 30), (3, 30), (3, 30)]


def test_timed_and_untimed_records_of_a_union(run: Any, wait: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        timed = env.from_collection([(1, 10), (2, 20)]).assign_timestamps_and_watermarks(ascending())
        return wait(timed.union(env.from_collection([(3, 30)])), Echo(), LIMIT).process(WithTime())

    assert sorted(run(build)) == [((1, 10), 10), ((2, 20), 20), ((3, 30), -(2**63))]


# Overlap and capacity


class Crowd(AsyncFunction):
    """Emits how many requests are under way, itself included. The first ones wait until there are as many as expected;
    then there is a moment for others to join them."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.under_way = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self.complete = asyncio.Event()

    async def async_invoke(self, value: Any) -> list[int]:
        self.under_way += 1
        try:
            if self.under_way >= self.expected:
                self.complete.set()
            await self.complete.wait()
            await asyncio.sleep(0.01)
            return [self.under_way]
        finally:
            self.under_way -= 1


@pytest.mark.parametrize("capacity", [1, 7, 100])
def test_as_many_requests_as_the_capacity_and_no_more(run: Any, wait: Any, capacity: int) -> None:
    seen = run(lambda env: wait(env.from_collection(list(range(120))), Crowd(capacity), LIMIT, capacity))
    assert len(seen) == 120
    assert max(seen) == capacity


def test_the_default_capacity_is_100(run: Any, wait: Any) -> None:
    assert max(run(lambda env: wait(env.from_collection(list(range(300))), Crowd(100), LIMIT))) == 100


class Relay(AsyncFunction):
    """The first element gets its answer when a far later one is asked for."""

    def __init__(self, late: int) -> None:
        self.late = late

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = asyncio.Event()

    async def async_invoke(self, value: int) -> list[int]:
        if value == self.late:
            self.seen.set()
        if value == 0:
            await self.seen.wait()
        return [value]


def test_requests_of_successive_chunks_overlap(run: Any) -> None:
    """Chunks hold up to 8192 records: a stop at the end of each would wait for the first element for ever."""
    numbers = list(range(30_000))
    results = run(
        lambda env: AsyncDataStream.unordered_wait(env.from_collection(numbers), Relay(25_000), LIMIT, 4),
        config={"firesteel.batch.max-records": "30000"},
    )
    assert sorted(results) == numbers
    assert results.index(0) >= 25_000 - 4


def test_a_batch_ends_with_all_of_its_answers(run: Any, wait: Any) -> None:
    records = [(number, 30 - number % 10 * 3) for number in range(50)]
    results = run(
        lambda env: wait(env.from_collection(records), Later(), LIMIT),
        config={"firesteel.batch.max-records": "5"},
    )
    assert [number // 5 for _, number in results] == [number // 5 for number in range(50)]


# Watermarks


class Watched(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value[1], ctx.timer_service().current_watermark()


def test_no_watermark_overtakes_an_element(run: Any, wait: Any) -> None:
    """A watermark after every record, and earlier records are answered later."""

    def build(env: StreamExecutionEnvironment) -> DataStream:
        env.get_config().set_auto_watermark_interval(1)
        numbers = env.from_collection([(300 - n * 10, n) for n in range(1, 31)])
        timed = numbers.assign_timestamps_and_watermarks(ascending())
        return wait(timed, Sleeper(), LIMIT).process(Watched())

    Sleeper.most = 0
    seen = run(build)
    assert seen == [(n, n - 2 if n > 1 else -(2**63)) for n in range(1, 31)]
    assert Sleeper.most > 1, "requests of different watermarks overlap all the same"


class Sleeper(AsyncFunction):
    under_way = most = 0
    """Requests at the same time, now and at most."""

    async def async_invoke(self, value: Any) -> list[Any]:
        Sleeper.under_way += 1
        Sleeper.most = max(Sleeper.most, Sleeper.under_way)
        await asyncio.sleep(value[0] / 1000)
        Sleeper.under_way -= 1
        return [value]


class SleepyTimers(AsyncFunction):
    """Earlier records are answered later."""

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep((100 - value[1]) / 1000)
        return [value]


@pytest.mark.both_engines
@pytest.mark.spark_sample(wait="unordered", parallelism=3)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_timers_behind_the_operator_fire_between_the_right_records(run: Any, wait: Any, parallelism: int) -> None:
    records = [("a", 10, [15]), ("a", 20, [25]), ("a", 30, [35]), ("a", 40, [])]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        env.get_config().set_auto_watermark_interval(1)
        timed = env.from_collection(records).assign_timestamps_and_watermarks(ascending()).set_parallelism(1)
        answered = wait(timed, SleepyTimers(), LIMIT).set_parallelism(1)
        return answered.key_by(first).process(TimerLog())

    assert [entry[0::2] for entry in run(build, parallelism)] == [
        ("element", 10),
        ("element", 20),
        ("timer", 15),
        ("element", 30),
        ("timer", 25),
        ("element", 40),
        ("timer", 35),
    ]


def test_watermarks_of_later_stages_wait_too(run: Any, wait: Any) -> None:
    """Behind an exchange several channels make one watermark."""
    records = [(100 - n, n) for n in range(1, 30)]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        env.get_config().set_auto_watermark_interval(1)
        timed = env.from_collection(records).assign_timestamps_and_watermarks(ascending()).set_parallelism(1)
        return wait(timed.rebalance(), Sleeper(), LIMIT).process(Watched())

    seen = run(build, 3)
    assert sorted(moment for moment, _ in seen) == list(range(1, 30))
    assert all(watermark < moment for moment, watermark in seen)
    assert any(watermark > 0 for _, watermark in seen)


@pytest.mark.parametrize("place", ["at the sources", "behind an exchange"])
def test_an_idle_source_is_idle_behind_the_operator_too(make_env: Any, wait: Any, place: str) -> None:
    with LineServer(b"1\n") as server:
        env = make_env()
        strategy = ascending().with_idleness(Duration.of_millis(100))
        numbers = env.from_source(slow_numbers(200), WatermarkStrategy.no_watermarks(), "numbers")
        busy = numbers.map(lambda n: ("a", n * 10, [5] if n == 0 else []))
        silent = env.socket_text_stream("127.0.0.1", server.port).map(lambda line: ("b", int(line), []))
        timed = [stream.assign_timestamps_and_watermarks(strategy) for stream in (busy, silent)]
        if place == "at the sources":
            merged = wait(timed[0], Echo(), LIMIT).union(wait(timed[1], Echo(), LIMIT))
        else:
            merged = wait(timed[0].union(timed[1]).rebalance(), Echo(), LIMIT)
        with merged.key_by(first).process(TimerLog()).execute_and_collect() as records:
            assert next(record for record in records if record[0] == "timer")[1:3] == ("a", 5)


# The function's life


class OnTheLoop(AsyncFunction):
    """Makes things in open() that belong to a loop and uses them in requests."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.loop = asyncio.get_running_loop()
        self.gate = asyncio.Semaphore(2)
        self.ticks = 0
        self.ticking = asyncio.create_task(self.tick())
        self.calls = runtime_context.get_metrics_group().counter("calls")

    async def tick(self) -> None:
        try:
            while True:
                self.ticks += 1
                await asyncio.sleep(0.001)
        finally:
            EVENTS.append("ticking ended")

    async def async_invoke(self, value: int) -> list[bool]:
        async with self.gate:
            before = self.ticks
            await asyncio.sleep(0.02)
            self.calls.inc()
        return [asyncio.get_running_loop() is self.loop and self.ticks > before]

    def close(self) -> None:
        EVENTS.append("closed")


@pytest.mark.parametrize("parallelism", [1, 3])
def test_open_and_close_run_on_the_loop_of_the_requests(run: Any, wait: Any, parallelism: int) -> None:
    results = run(
        lambda env: wait(env.from_collection(list(range(12))), OnTheLoop(), LIMIT),
        parallelism,
        {"firesteel.batch.max-records": "4"},
    )
    assert results == [True] * 12
    assert sorted(EVENTS) == ["closed"] * parallelism + ["ticking ended"] * parallelism
    assert eventually(lambda: not threads_of_operators())


class AsyncLife(AsyncFunction):
    async def open(self, runtime_context: RuntimeContext) -> None:  # type: ignore[override]
        await asyncio.sleep(0.01)
        self.word = "opened"

    async def close(self) -> None:  # type: ignore[override]
        await asyncio.sleep(0.01)
        EVENTS.append("closed")

    async def async_invoke(self, value: int) -> list[str]:
        return [self.word]


def test_open_and_close_may_be_async(run: Any, wait: Any) -> None:
    assert run(lambda env: wait(env.from_collection([1]), AsyncLife(), LIMIT)) == ["opened"]
    assert EVENTS == ["closed"]


class FailsToOpen(Echo):
    def open(self, runtime_context: RuntimeContext) -> None:
        raise ValueError("not today")


class FailsToClose(Echo):
    def close(self) -> None:
        raise ValueError("not today")


@pytest.mark.parametrize("function", [FailsToOpen(), FailsToClose()], ids=["open", "close"])
def test_a_failure_of_open_or_close_leaves_no_thread(run: Any, wait: Any, function: Any) -> None:
    with pytest.raises(JobExecutionError, match="ValueError: not today"):
        run(lambda env: wait(env.from_collection([1]), function, LIMIT))
    assert eventually(lambda: not threads_of_operators())


# Among other operators


class WantsState(Echo):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("state", Types.INT()))


def test_on_a_keyed_stream_there_is_no_keyed_state(run: Any, wait: Any) -> None:
    with pytest.raises(JobExecutionError, match="asks for keyed state"):
        run(lambda env: wait(env.from_collection([1]).key_by(lambda n: n), WantsState(), LIMIT))


@pytest.mark.both_engines
def test_on_a_keyed_stream_a_key_has_one_subtask(run: Any, wait: Any) -> None:
    records = [(number % 7, 1) for number in range(100)]
    results = run(lambda env: wait(env.from_collection(records).key_by(first), Later(), LIMIT), 3)
    assert len(results) == 100
    assert len(set(results)) == 7


@pytest.mark.both_engines
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("mode", [STREAMING, BATCH], ids=["streaming", "batch"])
def test_state_behind_requests_counts_every_record_once(run: Any, wait: Any, parallelism: int, mode: Any) -> None:
    words = [f"word {number % 5}" for number in range(1000)]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        pairs = wait(env.from_collection(words), Echo(), LIMIT).map(lambda word: (word, 1))
        counts = pairs.key_by(first).reduce(lambda a, b: (a[0], a[1] + b[1]))
        return wait(counts, Echo(), LIMIT)

    results = run(build, parallelism, {"firesteel.batch.max-records": "300"}, mode)
    assert len(results) == (5 if mode is BATCH else 1000)
    assert sorted(pair for pair in results if pair[1] == 200) == [(f"word {number}", 200) for number in range(5)]


def test_one_behind_the_other(run: Any, wait: Any) -> None:
    numbers = list(range(2000))
    results = run(lambda env: wait(wait(env.from_collection(numbers), Echo(), LIMIT), Echo(), LIMIT, 3))
    assert sorted(results) == numbers


def test_a_stream_without_records(run: Any, wait: Any) -> None:
    assert run(lambda env: wait(env.from_collection([1]).filter(lambda n: False), Echo(), LIMIT)) == []
