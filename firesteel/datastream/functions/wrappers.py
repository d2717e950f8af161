"""Adapters from a plain callable to a function object.

Each wrapper keeps the user's callable in ``func``. The runtime takes it from there, so that no frame of ours
stands between the engine's loop and the user's code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from firesteel.datastream.functions.base import Function
from firesteel.datastream.functions.basic import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
)
from firesteel.datastream.functions.join import CoGroupFunction, JoinFunction
from firesteel.errors import ProgramError, short_repr

__all__ = [
    "CoGroupFunctionWrapper",
    "FilterFunctionWrapper",
    "FlatMapFunctionWrapper",
    "FunctionWrapper",
    "JoinFunctionWrapper",
    "KeySelectorWrapper",
    "MapFunctionWrapper",
    "PartitionerWrapper",
    "ReduceFunctionWrapper",
    "as_co_group",
    "as_filter",
    "as_flat_map",
    "as_join",
    "as_key_selector",
    "as_map",
    "as_partitioner",
    "as_reduce",
]

F = TypeVar("F", bound=Function)


class FunctionWrapper(Function):
    """A function object around a callable, which is in ``func``."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.func, '__qualname__', None) or short_repr(self.func)})"


class MapFunctionWrapper(FunctionWrapper, MapFunction):
    """A callable as a :class:`MapFunction`."""

    def map(self, value: Any) -> Any:
        return self.func(value)


class FlatMapFunctionWrapper(FunctionWrapper, FlatMapFunction):
    """A callable as a :class:`FlatMapFunction`."""

    def flat_map(self, value: Any) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.func(value)
        return results


class FilterFunctionWrapper(FunctionWrapper, FilterFunction):
    """A callable as a :class:`FilterFunction`."""

    def filter(self, value: Any) -> bool:
        return bool(self.func(value))


class ReduceFunctionWrapper(FunctionWrapper, ReduceFunction):
    """A callable of two arguments as a :class:`ReduceFunction`."""

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self.func(value1, value2)


class KeySelectorWrapper(FunctionWrapper, KeySelector):
    """A callable as a :class:`KeySelector`."""

    def get_key(self, value: Any) -> Any:
        return self.func(value)


class PartitionerWrapper(FunctionWrapper, Partitioner):
    """A callable of a key and a number of partitions as a :class:`Partitioner`."""

    def partition(self, key: Any, num_partitions: int) -> int:
        target: int = self.func(key, num_partitions)
        return target


class JoinFunctionWrapper(FunctionWrapper, JoinFunction):
    """A callable of two elements as a :class:`JoinFunction`."""

    def join(self, first: Any, second: Any) -> Any:
        return self.func(first, second)


class CoGroupFunctionWrapper(FunctionWrapper, CoGroupFunction):
    """A callable of two groups of elements as a :class:`CoGroupFunction`."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.func(first, second)
        return results


def _adapt(
    what: Any, contract: type, wrapper: Callable[[Callable[..., Any]], F], signature: str, single: str = ""
) -> F | Any:
    """``what`` if it fulfils the contract, a wrapper around it if it can be called, an error otherwise. ``single``
    names the method of a contract that returns one result."""
    if isinstance(what, contract):
        if single:
            _refuse_generator(getattr(what, single), contract)
        return what
    # Calling a function class would build an instance per element; ``int`` or ``str`` are fine to call.
    if isinstance(what, type) and issubclass(what, Function):
        name = what.__name__
        raise ProgramError(
            f"Expected a {contract.__name__} or a callable, got the class {name} itself. Pass an instance: {name}()."
        )
    if isinstance(what, Function) and not callable(what):
        raise ProgramError(
            f"Expected a {contract.__name__} or a callable {signature}, got an instance of "
            f"{type(what).__name__}, which is a {_contract_name(what)}. Subclass {contract.__name__} instead."
        )
    if not callable(what):
        raise ProgramError(
            f"Expected a {contract.__name__} or a callable {signature}, "
            f"got {type(what).__name__} {short_repr(what, 80)}."
        )
    if single:
        _refuse_generator(what, contract)
    return wrapper(what)


def _refuse_generator(function: Any, contract: type) -> None:
    """A function with ``yield`` or ``async`` returns an object that has not run yet, where one result is expected."""
    name = getattr(function, "__qualname__", None) or short_repr(function, 80)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ProgramError(
            f"A {contract.__name__} returns one result, but {name} has 'yield' in it, so it would return a generator. "
            "Write 'return'; for any number of results use flat_map() or process()."
        )
    if inspect.iscoroutinefunction(function):
        raise ProgramError(
            f"A {contract.__name__} returns one result, but {name} is 'async', so it would return a coroutine. Leave "
            "'async' out, or use AsyncDataStream."
        )


def _contract_name(function: Function) -> str:
    """The contract a function object does fulfil: its nearest ancestor that Firesteel defines."""
    for ancestor in type(function).__mro__:
        if ancestor.__module__.startswith("firesteel."):
            return ancestor.__name__
    return "Function"


def as_map(what: Any) -> MapFunction:
    """A :class:`MapFunction` for a map function or a callable of one argument.

    >>> as_map(str.upper).map("a")
    'A'
    >>> as_map(3)
    Traceback (most recent call last):
    firesteel.errors.ProgramError: Expected a MapFunction or a callable f(value), got int 3.
    """
    adapted: MapFunction = _adapt(what, MapFunction, MapFunctionWrapper, "f(value)", "map")
    return adapted


def as_flat_map(what: Any) -> FlatMapFunction:
    """A :class:`FlatMapFunction` for a flat map function or a callable of one argument.

    >>> as_flat_map(str.split).flat_map("to be")
    ['to', 'be']
    """
    adapted: FlatMapFunction = _adapt(what, FlatMapFunction, FlatMapFunctionWrapper, "f(value)")
    return adapted


def as_filter(what: Any) -> FilterFunction:
    """A :class:`FilterFunction` for a filter function or a callable of one argument.

    >>> as_filter(lambda n: n > 1).filter(1)
    False
    """
    adapted: FilterFunction = _adapt(what, FilterFunction, FilterFunctionWrapper, "f(value)", "filter")
    return adapted


def as_reduce(what: Any) -> ReduceFunction:
    """A :class:`ReduceFunction` for a reduce function or a callable of two arguments.

    >>> as_reduce(max).reduce(3, 5)
    5
    """
    adapted: ReduceFunction = _adapt(what, ReduceFunction, ReduceFunctionWrapper, "f(value1, value2)", "reduce")
    return adapted


def as_key_selector(what: Any) -> KeySelector:
    """A :class:`KeySelector` for a key selector or a callable of one argument.

    >>> as_key_selector(len).get_key("abc")
    3
    """
    adapted: KeySelector = _adapt(what, KeySelector, KeySelectorWrapper, "f(value)", "get_key")
    return adapted


def as_partitioner(what: Any) -> Partitioner:
    """A :class:`Partitioner` for a partitioner or a callable of a key and a number of partitions.

    >>> as_partitioner(lambda key, n: key % n).partition(5, 3)
    2
    """
    adapted: Partitioner = _adapt(what, Partitioner, PartitionerWrapper, "f(key, num_partitions)")
    return adapted


def as_join(what: Any) -> JoinFunction:
    """A :class:`JoinFunction` for a join function or a callable of two elements.

    >>> as_join(max).join(3, 5)
    5
    """
    adapted: JoinFunction = _adapt(what, JoinFunction, JoinFunctionWrapper, "f(first, second)")
    return adapted


def as_co_group(what: Any) -> CoGroupFunction:
    """A :class:`CoGroupFunction` for a co-group function or a callable of two groups.

    >>> as_co_group(lambda firsts, seconds: firsts + seconds).co_group([3], [5])
    [3, 5]
    """
    adapted: CoGroupFunction = _adapt(what, CoGroupFunction, CoGroupFunctionWrapper, "f(firsts, seconds)")
    return adapted
