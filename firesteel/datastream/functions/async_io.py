"""Functions that wait for something outside (a database, a service) without holding up the stream."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from firesteel.datastream.functions.async_retry import AsyncRetryStrategy
from firesteel.datastream.functions.base import Function
from firesteel.errors import short_repr

__all__ = ["AsyncFunction", "AsyncFunctionDescriptor"]

IN = TypeVar("IN")
OUT = TypeVar("OUT")


class AsyncFunction(Function, Generic[IN, OUT]):
    """Asks something outside for each element, many at a time.

    ``open()`` and ``close()`` run on the event loop that serves ``async_invoke``, so what belongs to a loop (a client
    session, a lock) can be made in ``open()``. Both may be declared as ``async def``.

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
