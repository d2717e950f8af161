"""AsyncDataStream: requests overlap, capacity and timeouts limit them, order and watermarks hold, nothing leaks."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kit import BATCH, STREAMING, LineServer, TimerLog, ascending, eventually, first, slow_numbers

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import JobExecutionError, ProgramError

LIMIT = Time.seconds(20)

EVENTS: list[Any] = []
"""What functions tell. Jobs in memory run in this process, and this module is not copied with the functions."""


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


@pytest.fixture(params=["ordered", "unordered"])
def wait(request: pytest.FixtureRequest) -> Any:
    return getattr(AsyncDataStream, f"{request.param}_wait")


OTHERS: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _others() -> None:
    """Threads that were there before a test are none of its business."""
    OTHERS.update(threading.enumerate())


def threads_of_operators() -> list[str]:
    new = set(threading.enumerate()) - OTHERS
    return [thread.name for thread in new if thread.name.startswith("async wait operator")]


class Later(AsyncFunction):
    """Waits so many milliseconds as a record's second field says."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(value[1] / 1000)
        return [(self.subtask, value[0])]


class Echo(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [value]


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


@pytest.mark.both_engines
@pytest.mark.parametrize("parallelism", [1, 3])
def test_unordered_lets_the_fast_pass_the_slow(run: Any, parallelism: int) -> None:
    records = [(number, 400 if number % 20 == 0 else 0) for number in range(60)]
    results = run(lambda env: AsyncDataStream.unordered_wait(env.from_collection(records), Later(), LIMIT), parallelism)
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
    """Emits how many requests are under way, itself included."""

    def __init__(self, seconds: float = 0.01) -> None:
        self.seconds = seconds
        self.under_way = 0

    async def async_invoke(self, value: Any) -> list[int]:
        self.under_way += 1
        try:
            await asyncio.sleep(self.seconds)
            return [self.under_way]
        finally:
            self.under_way -= 1


@pytest.mark.parametrize("capacity", [1, 7, 100])
def test_as_many_requests_as_the_capacity_and_no_more(run: Any, wait: Any, capacity: int) -> None:
    seen = run(lambda env: wait(env.from_collection(list(range(120))), Crowd(), LIMIT, capacity))
    assert len(seen) == 120
    assert max(seen) == capacity


def test_the_default_capacity_is_100(run: Any, wait: Any) -> None:
    assert max(run(lambda env: wait(env.from_collection(list(range(300))), Crowd(), LIMIT))) == 100


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
        lambda env: AsyncDataStream.unordered_wait(env.from_collection(numbers), Relay(25_000), Time.seconds(15), 4),
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


# Timeouts


class Stuck(AsyncFunction):
    """Never answers for odd numbers."""

    async def async_invoke(self, value: int) -> list[Any]:
        try:
            await asyncio.sleep(3600 * (value % 2))
        except asyncio.CancelledError:
            EVENTS.append(("cancelled", value))
            raise
        return [value]


class Forgiving(Stuck):
    def timeout(self, value: int) -> list[Any]:
        return [f"{value} took too long", "sorry"]


class Stubborn(Forgiving):
    """Goes on although it is cancelled."""

    async def async_invoke(self, value: int) -> list[Any]:
        try:
            return await super().async_invoke(value)
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
            return ["too late"]


@pytest.mark.both_engines
def test_a_timeout_fails_the_job_and_names_the_element(make_env: Any, wait: Any) -> None:
    env = make_env()
    wait(env.from_collection([0, 2, 3, 4]), Stuck(), Time.milliseconds(80)).print()  # the line of the operator
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    lines = str(caught.value).splitlines()
    assert lines[0] == "Operator 'async wait operator' failed in subtask 0."
    assert lines[1].startswith(f"  operator  async wait operator, built at {__file__}:")
    assert lines[2] == "  element   3"
    assert "TimeoutError: No answer in time for element 3. Raise the timeout" in lines[3]
    assert lines[4] == "The timeout of this operator is 80 ms, all attempts together."
    assert caught.value.element == "3"


@pytest.mark.parametrize("function", [Forgiving(), Stubborn()], ids=["cancelled", "goes on"])
@pytest.mark.parametrize("capacity", [1, 100])
def test_timeout_may_give_a_substitute(run: Any, wait: Any, function: Any, capacity: int) -> None:
    """With a capacity of 1 the job lasts until late answers come. Nobody wants them any more."""
    numbers = [0, 1, 3, 5, 7, 8]
    results = run(lambda env: wait(env.from_collection(numbers), function, Time.milliseconds(60), capacity))
    substitutes = [text for n in (1, 3, 5, 7) for text in (f"{n} took too long", "sorry")]
    if wait is AsyncDataStream.ordered_wait or capacity == 1:
        assert results == [0, *substitutes, 8]
    else:
        assert results == [0, 8, *substitutes]
    assert sorted(EVENTS) == [("cancelled", n) for n in (1, 3, 5, 7)]


class Witness(Forgiving):
    async def async_invoke(self, value: int) -> list[Any]:
        await super().async_invoke(value)
        return [list(EVENTS)]


def test_what_timed_out_is_cancelled_at_once(run: Any, wait: Any) -> None:
    results = run(lambda env: wait(env.from_collection([1, 2]), Witness(), Time.milliseconds(60), 1))
    assert results == ["1 took too long", "sorry", [("cancelled", 1)]]


def test_a_timeout_starts_with_the_request_not_before(run: Any) -> None:
    """20 elements in turn take far longer than the timeout of one."""
    results = run(
        lambda env: AsyncDataStream.ordered_wait(
            env.from_collection([(n, 30) for n in range(20)]), Later(), Time.milliseconds(400), 1
        )
    )
    assert len(results) == 20


def test_a_timeout_of_zero_is_none(run: Any, wait: Any) -> None:
    assert run(lambda env: wait(env.from_collection([(1, 50)]), Later(), Time.milliseconds(0))) == [(0, 1)]


class BadTimeout(Stuck):
    def timeout(self, value: int) -> Any:
        return "sorry"


def test_what_timeout_returns_must_be_a_list_too(run: Any, wait: Any) -> None:
    with pytest.raises(JobExecutionError, match=r"must return a list of results, it returned 'sorry'") as caught:
        run(lambda env: wait(env.from_collection([0, 1]), BadTimeout(), Time.milliseconds(50)))
    assert caught.value.element == "1"


# Retries


class Flaky(AsyncFunction):
    """Fails so many times as a record's second field says, then finds nothing so many times as the third says."""

    def __init__(self) -> None:
        self.attempts: dict[str, int] = {}

    async def async_invoke(self, value: Any) -> list[Any]:
        attempt = self.attempts[value[0]] = self.attempts.get(value[0], 0) + 1
        if attempt <= value[1]:
            raise ConnectionError(f"attempt {attempt}")
        return [] if attempt <= value[1] + value[2] else [(value[0], attempt)]


def fixed(retries: int, pause: int = 5) -> AsyncRetryStrategy[Any]:
    return AsyncRetryStrategy.fixed_delay(retries, pause, empty_result_predicate, has_exception_predicate)


@pytest.fixture(params=["ordered", "unordered"])
def retry(request: pytest.FixtureRequest) -> Any:
    return getattr(AsyncDataStream, f"{request.param}_wait_with_retry")


def test_retries_after_exceptions_and_empty_answers(run: Any, retry: Any) -> None:
    records = [("a", 0, 0), ("b", 2, 0), ("c", 0, 2), ("d", 1, 2)]
    results = run(lambda env: retry(env.from_collection(records), Flaky(), LIMIT, fixed(3)))
    assert sorted(results) == [("a", 1), ("b", 3), ("c", 3), ("d", 4)]


def test_the_last_answer_counts_when_retries_are_used_up(run: Any, retry: Any) -> None:
    records = [("a", 0, 2), ("b", 0, 3)]
    results = run(lambda env: retry(env.from_collection(records), Flaky(), LIMIT, fixed(2)))
    assert results == [("a", 3)]


def test_the_last_exception_is_told_when_retries_are_used_up(run: Any, retry: Any) -> None:
    with pytest.raises(JobExecutionError, match="ConnectionError: attempt 3") as caught:
        run(lambda env: retry(env.from_collection([("a", 9, 0)]), Flaky(), LIMIT, fixed(2)))
    assert caught.value.element == "('a', 9, 0)"


def test_an_exception_that_the_predicate_does_not_want_ends_the_job(run: Any, retry: Any) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(5, 5, None, lambda error: not isinstance(error, ConnectionError))
    with pytest.raises(JobExecutionError, match="ConnectionError: attempt 1"):
        run(lambda env: retry(env.from_collection([("a", 9, 0)]), Flaky(), LIMIT, strategy))


class FlakyWithSubstitute(Flaky):
    def timeout(self, value: Any) -> list[Any]:
        return [(value[0], "timeout", self.attempts[value[0]])]


def test_the_timeout_is_for_all_attempts_together(run: Any, retry: Any) -> None:
    started = time.monotonic()
    results = run(
        lambda env: retry(
            env.from_collection([("a", 99, 0)]), FlakyWithSubstitute(), Time.milliseconds(250), fixed(99, 100)
        )
    )
    ((name, what, attempts),) = results
    # At 0, 100 and 200 ms; a busy machine may come too late for the last ones.
    assert (name, what) == ("a", "timeout")
    assert 1 <= attempts <= 3
    assert time.monotonic() - started < 9, "99 attempts take longer"


def test_pauses_do_not_hold_up_other_elements(run: Any, retry: Any) -> None:
    records = [(str(n), 1, 0) for n in range(100)]
    started = time.monotonic()
    results = run(lambda env: retry(env.from_collection(records), Flaky(), LIMIT, fixed(3, 100)))
    assert len(results) == 100
    assert time.monotonic() - started < 9, "one after the other they take longer"


# Failures


class FailsAt(AsyncFunction):
    """Fails for the number 5 while all others are under way; tells what becomes of them."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def async_invoke(self, value: int) -> list[Any]:
        if value == 5:
            await asyncio.sleep(0.03)
            raise self.error  # the line that raises
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            EVENTS.append(value)
            raise
        return [value]

    def close(self) -> None:
        EVENTS.append("closed")


@pytest.mark.parametrize(
    "error", [ValueError("no"), asyncio.CancelledError("no"), SystemExit("no")], ids=lambda error: type(error).__name__
)
def test_a_failure_names_the_element_and_ends_the_other_requests(run: Any, wait: Any, error: Any) -> None:
    with pytest.raises(JobExecutionError) as caught:
        run(lambda env: wait(env.from_collection(list(range(10))), FailsAt(error), LIMIT))
    assert (caught.value.operator, caught.value.element) == ("async wait operator", "5")
    text = str(caught.value)
    assert f"built at {__file__}:" in text
    assert "raise self.error  # the line that raises" in text
    assert text.splitlines()[-1].endswith(f"{type(error).__name__}: no")
    assert EVENTS.pop() == "closed"
    assert sorted(EVENTS) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert eventually(lambda: not threads_of_operators())


class Closing(AsyncFunction):
    async def async_invoke(self, value: int) -> list[int]:
        try:
            await asyncio.sleep(3600 * (value > 600))
        finally:
            EVENTS.append("ended")
        return [value]

    def close(self) -> None:
        EVENTS.append("closed")


def test_a_failure_elsewhere_ends_the_requests_too(run: Any, wait: Any) -> None:
    """The next operator fails while requests are under way."""

    def build(env: StreamExecutionEnvironment) -> DataStream:
        numbers = env.from_collection(list(range(20_000)))
        return wait(numbers, Closing(), Time.seconds(0), 30_000).map(lambda n: 1 // (n - 600))

    with pytest.raises(JobExecutionError) as caught:
        run(build, config={"firesteel.batch.max-records": "20000"})
    assert (caught.value.operator, caught.value.element) == ("Map", "600")
    assert EVENTS.pop() == "closed"
    assert set(EVENTS) == {"ended"}
    assert len(EVENTS) >= 8192
    assert eventually(lambda: not threads_of_operators())


@pytest.mark.parametrize("answer", [None, "text", ("a", 1), {"a": 1}, 7], ids=repr)
def test_an_answer_that_is_no_list(run: Any, wait: Any, answer: Any) -> None:
    class Answers(AsyncFunction):
        async def async_invoke(self, value: Any) -> Any:
            return answer

    expected = r"TypeError: An AsyncFunction must return a list of results, it returned "
    with pytest.raises(JobExecutionError, match=expected) as caught:
        run(lambda env: wait(env.from_collection([1]), Answers(), LIMIT))
    assert ("Return []" if answer is None else "Return [result]") in str(caught.value)
    assert caught.value.element == "1"


def test_an_answer_that_does_not_fit_the_declared_type(run: Any, wait: Any) -> None:
    with pytest.raises(JobExecutionError, match="expected INT, got str 'a'"):
        run(lambda env: wait(env.from_collection(["a"]), Echo(), LIMIT, output_type=Types.INT()))


def test_a_predicate_that_fails(run: Any, retry: Any) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(1, 1, lambda answer: bool(1 // 0), None)
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        run(lambda env: retry(env.from_collection([("a", 0, 0)]), Flaky(), LIMIT, strategy))


class EndsTheLoop(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        asyncio.get_running_loop().call_soon(sys.exit)
        await asyncio.sleep(3600)
        return []


def test_a_loop_that_is_ended_from_inside(run: Any, wait: Any) -> None:
    with pytest.raises(JobExecutionError, match=r"The event loop of this operator was ended by SystemExit\(\)"):
        run(lambda env: wait(env.from_collection([1]), EndsTheLoop(), LIMIT))


# Programs that are refused


class Plain(AsyncFunction):
    def async_invoke(self, value: Any) -> Any:  # type: ignore[override]
        return [value]


class NoPredicate(AsyncRetryStrategy[Any]):
    def can_retry(self, current_attempts: int) -> bool:
        return True

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return 1

    def get_retry_predicate(self) -> Any:
        return None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"async_function": Plain()},
            "async_invoke of Plain is a plain method. Declare it as 'async def async_invoke'",
        ),
        ({"async_function": len}, "async_function must be an instance of AsyncFunction, got <built-in function len>"),
        ({"timeout": 5}, r"timeout must be a Time such as Time.seconds\(10\), got 5"),
        ({"timeout": Time.seconds(0)}, "Retries need a timeout above 0"),
        ({"capacity": 0}, "capacity must be an int of at least 1, got 0"),
        ({"data_stream": [1]}, r"AsyncDataStream works on a DataStream, got \[1\]"),
        ({"async_retry_strategy": None}, "async_retry_strategy must be an AsyncRetryStrategy, got None"),
        ({"async_retry_strategy": NoPredicate()}, r"get_retry_predicate\(\) of NoPredicate returned None"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_built(
    make_env: Any, retry: Any, arguments: dict[str, Any], message: str
) -> None:
    good: dict[str, Any] = {
        "data_stream": make_env().from_collection([1]),
        "async_function": Echo(),
        "timeout": LIMIT,
        "async_retry_strategy": fixed(1),
    }
    with pytest.raises(ProgramError, match=message):
        retry(**{**good, **arguments})


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
