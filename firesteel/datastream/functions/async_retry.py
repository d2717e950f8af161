"""When a request that failed, or whose answer is not good enough, is worth another attempt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from firesteel.errors import ProgramError

__all__ = [
    "NO_RETRY_STRATEGY",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "ExponentialBackoffDelayRetryStrategy",
    "FixedDelayRetryStrategy",
    "NoRetryStrategy",
    "RetryPredicate",
]

OUT = TypeVar("OUT")

OnResult = Callable[[list[Any]], bool] | None
OnException = Callable[[Exception], bool] | None


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Says which results and which exceptions deserve another attempt."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """A test on results, True to retry; None to accept every result."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """A test on exceptions, True to retry; None to retry on none."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Says whether and when to try again.

    >>> strategy = AsyncRetryStrategy.exponential_backoff(5, 100, 1000, 2.0, None, None)
    >>> [strategy.get_backoff_time_millis(n) for n in range(1, 6)]
    [100, 200, 400, 800, 1000]
    >>> strategy.can_retry(5), strategy.can_retry(6)
    (True, False)
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether retry number ``current_attempts`` (the first retry is 1) may happen."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait before retry number ``current_attempts``."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Which outcomes deserve another attempt."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never tries again."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: OnResult,
        exception_predicate: OnException,
    ) -> AsyncRetryStrategy[Any]:
        """Tries again after the same pause each time."""
        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: OnResult,
        exception_predicate: OnException,
    ) -> AsyncRetryStrategy[Any]:
        """Tries again after pauses that grow up to a limit."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate[OUT]):
    """A predicate made of two functions, either of which may be missing."""

    def __init__(self, result_predicate: OnResult, exception_predicate: OnException) -> None:
        self._on_result = result_predicate
        self._on_exception = exception_predicate

    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        return self._on_result

    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        return self._on_exception


class NoRetryStrategy(AsyncRetryStrategy[OUT]):
    """The first attempt is the only one."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(None, None)


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """Up to ``max_attempts`` retries; each pause is ``multiplier`` times the one before, up to a limit."""

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: OnResult,
        exception_predicate: OnException,
    ) -> None:
        _above_zero(
            max_attempts=max_attempts,
            initial_delay=initial_delay,
            max_retry_delay=max_retry_delay,
            multiplier=multiplier,
        )
        self._max_attempts = max_attempts
        self._initial_delay = initial_delay
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier
        self._predicate = RetryPredicate[OUT](result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        # A function of the attempt alone, so that one strategy can serve many elements at once. Multiplied step by
        # step, since a large power overflows.
        delay: float = self._initial_delay
        for _ in range(current_attempts - 1):
            if delay >= self._max_retry_delay:
                break
            delay *= self._multiplier
        return int(min(delay, self._max_retry_delay))

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """Up to ``max_attempts`` retries, with the same pause before each."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: OnResult,
        exception_predicate: OnException,
    ) -> None:
        _above_zero(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        self._max_attempts = max_attempts
        self._backoff_time_millis = backoff_time_millis
        self._predicate = RetryPredicate[OUT](result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


def _above_zero(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise ProgramError(f"A retry strategy's {name} must be above 0, got {number!r}.")


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()
