"""What a window join does in the tasks: tags that tell the two streams of a union apart, and functions that split them.

Both streams of a join go into one window operator as pairs: ``(0, element)`` of the first, ``(1, element)`` of the
second. An assigner, trigger or evictor of a user's that looks at elements sees these pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    JoinFunction,
    KeySelector,
    RuntimeContext,
    WindowFunction,
)

__all__ = ["CoGroupWindow", "FlatJoinWindow", "JoinWindow", "TaggedKey", "tag_first", "tag_second"]


def tag_first(value: Any) -> tuple[int, Any]:
    """An element of the first stream as a pair."""
    return 0, value


def tag_second(value: Any) -> tuple[int, Any]:
    """An element of the second stream as a pair."""
    return 1, value


class TaggedKey(KeySelector):
    """Takes each pair's key with the selector of its stream.

    >>> from firesteel.datastream.functions import as_key_selector
    >>> TaggedKey(as_key_selector(len), as_key_selector(abs)).get_key((1, -5))
    5
    """

    def __init__(self, first: KeySelector, second: KeySelector) -> None:
        self._selectors = first, second

    def get_key(self, value: Any) -> Any:
        return self._selectors[value[0]].get_key(value[1])


class _Split(WindowFunction[Any, Any, Any, Any]):
    """A window function around a user's function of two streams."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        self._function.open(runtime_context)

    def close(self) -> None:
        self._function.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._function!r})"


class JoinWindow(_Split):
    """Each element of the first stream with each of the second: one result a pair."""

    _function: JoinFunction

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        firsts, seconds = sides(inputs)
        join = self._function.join
        for first in firsts:
            for second in seconds:
                yield join(first, second)


class FlatJoinWindow(_Split):
    """Each element of the first stream with each of the second: any number of results a pair."""

    _function: FlatJoinFunction

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        firsts, seconds = sides(inputs)
        join = self._function.join
        for first in firsts:
            for second in seconds:
                yield from join(first, second) or ()


class CoGroupWindow(_Split):
    """All elements of both streams at once."""

    _function: CoGroupFunction

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return self._function.co_group(*sides(inputs)) or ()


def sides(inputs: Iterable[tuple[int, Any]]) -> tuple[list[Any], list[Any]]:
    """The elements of either stream, in the order they came.

    >>> sides([(0, "a"), (1, "b"), (0, "c")])
    (['a', 'c'], ['b'])
    """
    found: tuple[list[Any], list[Any]] = [], []
    for side, value in inputs:
        found[side].append(value)
    return found
