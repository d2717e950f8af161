"""Functions that wait for something outside (a database, a service) without holding up the stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from firesteel.datastream.functions.base import Function
from firesteel.errors import short_repr

__all__ = ["AsyncFunction", "AsyncFunctionDescriptor", "AsyncRetryPredicate", "AsyncRetryStrategy"]

IN = TypeVar("IN")
OUT = TypeVar("OUT")


class AsyncFunction(Function, Generic[IN, OUT]):
    """Asks something outside for each element, many at a time.

    >>> class Lookup(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         return [value, value.upper()]
    >>> import asyncio
    >>> asyncio.run(Lookup().async_invoke("a"))
    ['a', 'A']
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """The results for one element."""

    def timeout(self, value: IN) -> list[OUT]:
        """Called when an element took too long; overriding it can emit a substitute."""
        raise TimeoutError(
            f"No answer in time for element {short_repr(value)}. "
            "Raise the timeout, add a retry strategy, or override timeout() to emit a substitute."
        )


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
        """Whether attempt number ``current_attempts`` (the first retry is 1) may happen."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait before attempt number ``current_attempts``."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Which outcomes deserve another attempt."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never tries again."""
        return _Backoff(0, 0, 0, 1.0, _Predicate(None, None))

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[Any]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[Any]:
        """Tries again after the same pause each time."""
        predicate = _Predicate(result_predicate, exception_predicate)
        return _Backoff(max_attempts, backoff_time_millis, backoff_time_millis, 1.0, predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Callable[[list[Any]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[Any]:
        """Tries again after pauses that grow up to a limit."""
        predicate = _Predicate(result_predicate, exception_predicate)
        return _Backoff(max_attempts, initial_delay, max_retry_delay, multiplier, predicate)


@dataclass(frozen=True)
class _Predicate(AsyncRetryPredicate[Any]):
    on_result: Callable[[list[Any]], bool] | None
    on_exception: Callable[[Exception], bool] | None

    def result_predicate(self) -> Callable[[list[Any]], bool] | None:
        return self.on_result

    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        return self.on_exception


@dataclass(frozen=True)
class _Backoff(AsyncRetryStrategy[Any]):
    """All three strategies: no retry is a limit of 0, a fixed delay is a factor of 1."""

    max_attempts: int
    initial_delay: int
    max_delay: int
    multiplier: float
    predicate: _Predicate

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self.max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        # A function of the attempt alone, so that one strategy can serve many elements at once.
        delay = self.initial_delay * self.multiplier ** max(current_attempts - 1, 0)
        return int(min(delay, self.max_delay))

    def get_retry_predicate(self) -> AsyncRetryPredicate[Any]:
        return self.predicate


@dataclass(frozen=True)
class AsyncFunctionDescriptor:
    """An async function with how it is to be run."""

    class OutputMode(Enum):
        """Whether results keep the order of their elements."""

        ORDERED = 0
        UNORDERED = 1

    async_function: AsyncFunction[Any, Any]
    timeout: Any
    capacity: int
    async_retry_strategy: AsyncRetryStrategy[Any]
    output_mode: OutputMode
