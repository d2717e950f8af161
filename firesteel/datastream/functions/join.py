"""Functions over pairs or groups of two joined streams. PyFlink lacks them; the names are those of Flink's Java API."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function

__all__ = ["CoGroupFunction", "FlatJoinFunction", "JoinFunction", "ProcessJoinFunction"]


class JoinFunction(Function):
    """Makes one result of each pair.

    >>> class Add(JoinFunction):
    ...     def join(self, first, second):
    ...         return first + second
    >>> Add().join(1, 2)
    3
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The result for an element of the first stream and one of the second."""


class FlatJoinFunction(Function):
    """Makes any number of results of each pair.

    >>> class Cheaper(FlatJoinFunction):
    ...     def join(self, first, second):
    ...         if second < first:
    ...             yield first, second
    >>> list(Cheaper().join(1, 2)), list(Cheaper().join(2, 1))
    ([], [(2, 1)])
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """The results for an element of the first stream and one of the second; None for nothing."""


class CoGroupFunction(Function):
    """Sees all elements of a key and a window at once, from both streams; one of the two may have none.

    >>> class Outer(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         seconds = list(second) or [None]
    ...         for one in first:
    ...             for other in seconds:
    ...                 yield one, other
    >>> list(Outer().co_group(["a"], []))
    [('a', None)]
    """

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """The results for the elements of the first stream and those of the second."""


class ProcessJoinFunction(Function):
    """Makes any number of results of each pair of an interval join, with the times of both elements.

    A result has the later one of the two timestamps. Yield ``(tag, value)`` to reach a side output.

    >>> class Delay(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield left, ctx.get_right_timestamp() - ctx.get_left_timestamp()
    """

    class Context(ABC):
        """What :meth:`ProcessJoinFunction.process_element` may ask. Valid during that call only."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """The timestamp of the left element in milliseconds."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """The timestamp of the right element in milliseconds."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The timestamp of the pair: the later one of the two."""

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any] | None:
        """Called for each pair; yields what goes out."""
