"""Asking something outside for every record of a stream, many records at a time."""

from __future__ import annotations

import inspect
from typing import Any

from firesteel.common.time import Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import NO_RETRY_STRATEGY, AsyncFunction, AsyncRetryStrategy
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.specs import AsyncWaitSpec

__all__ = ["AsyncDataStream"]


class AsyncDataStream:
    """Applies an :class:`~firesteel.datastream.AsyncFunction` to a stream.

    >>> from firesteel.common import Configuration, Time
    >>> from firesteel.datastream import AsyncFunction, StreamExecutionEnvironment
    >>> class Square(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         return [value * value]
    >>> settings = Configuration.from_dict({"firesteel.master": "memory", "parallelism.default": "1"})
    >>> env = StreamExecutionEnvironment.get_execution_environment(settings)
    >>> squares = AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), Square(), Time.seconds(10))
    >>> list(squares.execute_and_collect())
    [1, 4, 9]
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results go out as they arrive; none passes a watermark."""
        return _wait(data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, ordered=False)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Like :meth:`unordered_wait`, with further attempts. The timeout is for all attempts of an element."""
        return _wait(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, ordered=False)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results go out in the order of the elements they belong to."""
        return _wait(data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, ordered=True)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Like :meth:`ordered_wait`, with further attempts. The timeout is for all attempts of an element."""
        return _wait(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, ordered=True)


def _wait(
    stream: DataStream,
    function: AsyncFunction[Any, Any],
    timeout: Time,
    retry: AsyncRetryStrategy[Any],
    capacity: int,
    output_type: TypeInformation | None,
    ordered: bool,
) -> DataStream:
    _check(stream, function, timeout, capacity)
    if not isinstance(retry, AsyncRetryStrategy):
        raise ProgramError(
            f"async_retry_strategy must be an AsyncRetryStrategy, got {short_repr(retry, 80)}. Make one with "
            "AsyncRetryStrategy.fixed_delay() or exponential_backoff()."
        )
    if retry.get_retry_predicate() is None:
        raise ProgramError(
            f"get_retry_predicate() of {type(retry).__name__} returned None; it must say what to retry. Return "
            "RetryPredicate(None, None) to retry nothing."
        )
    milliseconds = timeout.to_milliseconds()
    if milliseconds <= 0 and retry is not NO_RETRY_STRATEGY:
        raise ProgramError(f"Retries need a timeout above 0, which limits all attempts together; got {timeout}.")
    spec = AsyncWaitSpec(function, milliseconds, capacity, ordered, retry)
    return stream._add("async wait operator", spec, output_type)


def _check(stream: Any, function: Any, timeout: Any, capacity: Any) -> None:
    if not isinstance(stream, DataStream):
        raise ProgramError(f"AsyncDataStream works on a DataStream, got {short_repr(stream, 80)}.")
    if not isinstance(function, AsyncFunction):
        raise ProgramError(f"async_function must be an instance of AsyncFunction, got {short_repr(function, 80)}.")
    if not inspect.iscoroutinefunction(function.async_invoke):
        raise ProgramError(
            f"async_invoke of {type(function).__name__} is a plain method. Declare it as 'async def async_invoke'."
        )
    if not isinstance(timeout, Time):
        raise ProgramError(f"timeout must be a Time such as Time.seconds(10), got {short_repr(timeout, 80)}.")
    if not isinstance(capacity, int) or capacity < 1:
        raise ProgramError(f"capacity must be an int of at least 1, got {short_repr(capacity, 40)}.")
