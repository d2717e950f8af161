"""AsyncDataStream when requests fail: timeouts, retries, failures of functions, and programs that are refused."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from asynckit import (  # noqa: F401 - fixtures
    CLOCK,
    EVENTS,
    LIMIT,
    Echo,
    Later,
    held_clock,
    no_events,
    others,
    threads_of_operators,
    wait_in_both_ways,
)
from kit import eventually

from firesteel.common import Time, Types
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    StreamExecutionEnvironment,
)
from firesteel.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate
from firesteel.errors import JobExecutionError, ProgramError

# Timeouts


pytestmark = pytest.mark.usefixtures("held_clock")
LONG_ENOUGH = 1000
"""Milliseconds that are no time where the clock is held. On Spark, where it is not, an answer must come in time."""


class Stuck(AsyncFunction):
    """Never answers for odd numbers."""

    async def async_invoke(self, value: int) -> list[Any]:
        try:
            if value % 2:
                CLOCK.move(LONG_ENOUGH)
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
            await asyncio.sleep(LONG_ENOUGH / 1000)
            return ["too late"]


@pytest.mark.both_engines
def test_a_timeout_fails_the_job_and_names_the_element(make_env: Any, wait: Any) -> None:
    env = make_env()
    wait(env.from_collection([0, 2, 3, 4]), Stuck(), Time.milliseconds(LONG_ENOUGH)).print()  # the line of the operator
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    lines = str(caught.value).splitlines()
    assert lines[0] == "Operator 'async wait operator' failed in subtask 0."
    assert lines[1].startswith(f"  operator  async wait operator, built at {__file__}:")
    assert lines[2] == "  element   3"
    assert "TimeoutError: No answer in time for element 3. Raise the timeout" in lines[3]
    assert lines[4] == "The timeout of this operator is 1000 ms, all attempts together."
    assert caught.value.element == "3"


@pytest.mark.parametrize("function", [Forgiving(), Stubborn()], ids=["cancelled", "goes on"])
@pytest.mark.parametrize("capacity", [1, 100])
def test_timeout_may_give_a_substitute(run: Any, wait: Any, function: Any, capacity: int) -> None:
    """With a capacity of 1 the job lasts until late answers come. Nobody wants them any more."""
    numbers = [0, 1, 3, 5, 7, 8]
    results = run(lambda env: wait(env.from_collection(numbers), function, Time.milliseconds(LONG_ENOUGH), capacity))
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
    results = run(lambda env: wait(env.from_collection([1, 2]), Witness(), Time.milliseconds(LONG_ENOUGH), 1))
    assert results == ["1 took too long", "sorry", [("cancelled", 1)]]


class Passing(Later):
    """The time passes meanwhile."""

    async def async_invoke(self, value: Any) -> list[Any]:
        CLOCK.move(value[1])
        return await super().async_invoke(value)


def test_a_timeout_starts_with_the_request_not_before(run: Any) -> None:
    """20 elements in turn take far longer than the timeout of one."""
    results = run(
        lambda env: AsyncDataStream.ordered_wait(
            env.from_collection([(n, 30) for n in range(20)]), Passing(), Time.milliseconds(400), 1
        )
    )
    assert len(results) == 20


def test_a_timeout_of_zero_is_none(run: Any, wait: Any) -> None:
    assert run(lambda env: wait(env.from_collection([(1, 50)]), Passing(), Time.milliseconds(0))) == [(0, 1)]


class BadTimeout(Stuck):
    def timeout(self, value: int) -> Any:
        return "sorry"


def test_what_timeout_returns_must_be_a_list_too(run: Any, wait: Any) -> None:
    with pytest.raises(JobExecutionError, match=r"must return a list of results, it returned 'sorry'") as caught:
        run(lambda env: wait(env.from_collection([0, 1]), BadTimeout(), Time.milliseconds(LONG_ENOUGH)))
    assert caught.value.element == "1"


# Retries


class Flaky(AsyncFunction):
    """Fails so many times as a record's second field says, then finds nothing so many times as the third says."""

    def __init__(self, under_way: int = 1) -> None:
        self.attempts: dict[str, int] = {}
        self.under_way = under_way
        """The time stands still until so many requests have been made."""

    async def async_invoke(self, value: Any) -> list[Any]:
        attempt = self.attempts[value[0]] = self.attempts.get(value[0], 0) + 1
        if len(self.attempts) >= self.under_way:
            CLOCK.move(PAUSE)
        if attempt <= value[1]:
            raise ConnectionError(f"attempt {attempt}")
        return [] if attempt <= value[1] + value[2] else [(value[0], attempt)]


PAUSE = 100


def fixed(retries: int, pause: int = PAUSE) -> AsyncRetryStrategy[Any]:
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
    results = run(
        lambda env: retry(env.from_collection([("a", 99, 0)]), FlakyWithSubstitute(), Time.milliseconds(250), fixed(99))
    )
    assert results == [("a", "timeout", 3)], "at 0, 100 and 200 ms"


def test_pauses_do_not_hold_up_other_elements(run: Any, retry: Any) -> None:
    records = [(str(n), 1, 0) for n in range(100)]
    results = run(lambda env: retry(env.from_collection(records), Flaky(under_way=100), LIMIT, fixed(3)))
    assert len(results) == 100


# Failures


class FailsAt(AsyncFunction):
    """Fails for the number 5 while all others are under way; tells what becomes of them."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def async_invoke(self, value: int) -> list[Any]:
        if value == 5:
            await asyncio.sleep(0)
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
