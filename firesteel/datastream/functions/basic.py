"""Functions of one element at a time, and the small ones that pick keys, partitions and aggregates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function

__all__ = [
    "AggregateFunction",
    "CoFlatMapFunction",
    "CoMapFunction",
    "FilterFunction",
    "FlatMapFunction",
    "KeySelector",
    "MapFunction",
    "NullByteKeySelector",
    "Partitioner",
    "ReduceFunction",
]


class MapFunction(Function):
    """One element in, one element out.

    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return 2 * value
    >>> Double().map(21)
    42
    """

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The element that takes the place of ``value``."""


class FlatMapFunction(Function):
    """One element in, any number out.

    >>> class Words(FlatMapFunction):
    ...     def flat_map(self, value):
    ...         yield from value.split()
    >>> list(Words().flat_map("to be"))
    ['to', 'be']
    """

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """The elements that take the place of ``value``: a generator, a list, or None for nothing."""


class FilterFunction(Function):
    """Keeps the elements for which it says True.

    >>> class Even(FilterFunction):
    ...     def filter(self, value):
    ...         return value % 2 == 0
    >>> [n for n in range(5) if Even().filter(n)]
    [0, 2, 4]
    """

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether ``value`` stays in the stream."""


class ReduceFunction(Function):
    """Combines two values of a kind into one of the same kind, over and over.

    >>> class Sum(ReduceFunction):
    ...     def reduce(self, value1, value2):
    ...         return value1 + value2
    >>> Sum().reduce(1, 2)
    3
    """

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """``value1`` is the result so far, ``value2`` the newcomer."""


class AggregateFunction(Function):
    """Aggregates through an accumulator, so that input, state and result may have three different types.

    >>> class Average(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return 0, 0
    ...     def add(self, value, accumulator):
    ...         return accumulator[0] + value, accumulator[1] + 1
    ...     def get_result(self, accumulator):
    ...         return accumulator[0] / accumulator[1]
    ...     def merge(self, acc_a, acc_b):
    ...         return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
    >>> average = Average()
    >>> average.get_result(average.add(4, average.add(2, average.create_accumulator())))
    3.0
    """

    @abstractmethod
    def create_accumulator(self) -> Any:
        """A fresh accumulator, for a new key or window."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with ``value`` in it; it may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """The result the accumulator stands for."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """One accumulator for two; session windows need it when they grow together."""


class KeySelector(Function):
    """Says which key an element belongs to.

    >>> class ByUser(KeySelector):
    ...     def get_key(self, value):
    ...         return value["user"]
    >>> ByUser().get_key({"user": "ada"})
    'ada'
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key of ``value``; the same value must always give the same key."""


class NullByteKeySelector(KeySelector):
    """Gives every element the same key, for operators that run as one subtask.

    >>> NullByteKeySelector().get_key("anything")
    0
    """

    def get_key(self, value: Any) -> int:
        return 0


class Partitioner(Function):
    """Says which partition a key goes to.

    >>> class Modulo(Partitioner):
    ...     def partition(self, key, num_partitions):
    ...         return key % num_partitions
    >>> Modulo().partition(7, 4)
    3
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """A number from 0 to ``num_partitions - 1``."""


class CoMapFunction(Function):
    """A map over two connected streams that share this instance, and so its state.

    A None result emits nothing.

    >>> class Label(CoMapFunction):
    ...     def map1(self, value):
    ...         return "left", value
    ...     def map2(self, value):
    ...         return "right", value
    >>> Label().map2(1)
    ('right', 1)
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Called for each element of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Called for each element of the second stream."""


class CoFlatMapFunction(Function):
    """A flat map over two connected streams that share this instance, and so its state.

    >>> class Gate(CoFlatMapFunction):
    ...     allowed = frozenset({"a"})
    ...     def flat_map1(self, value):
    ...         self.allowed |= {value}
    ...     def flat_map2(self, value):
    ...         if value in self.allowed:
    ...             yield value
    >>> gate = Gate()
    >>> gate.flat_map1("b")
    >>> list(gate.flat_map2("b"))
    ['b']
    """

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Called for each element of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Called for each element of the second stream."""
