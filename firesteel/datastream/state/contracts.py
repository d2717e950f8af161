"""The shapes of state. A handle shows the value of whichever key is being processed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from firesteel.datastream.state.descriptors import ListStateDescriptor, MapStateDescriptor

__all__ = [
    "AggregatingState",
    "AppendingState",
    "BroadcastState",
    "ListState",
    "MapState",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "State",
    "ValueState",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """What every kind of state can do."""

    @abstractmethod
    def clear(self) -> None:
        """Removes everything stored for the current key."""


class ValueState(State, Generic[T]):
    """One value per key."""

    @abstractmethod
    def value(self) -> T | None:
        """The value, or None where there is none."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Stores a value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to, and that reads as something made of them."""

    @abstractmethod
    def get(self) -> OUT:
        """What the added values amount to."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Adds a value."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state of which two can become one, as when session windows merge."""


class ReducingState(MergingState[T, T | None]):
    """Folds each added value into one with a reduce function; None while nothing was added."""


class AggregatingState(MergingState[IN, OUT]):
    """Folds each added value into an accumulator and reads as the aggregate's result."""


class ListState(MergingState[T, Iterable[T]]):
    """A list per key."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replaces the list."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Appends several values."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class _ReadableMap(State, Generic[K, V]):
    """Reading, as map state and both kinds of broadcast state do it."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value under ``key``, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is an entry under ``key``."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """The keys of all entries."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """The values of all entries."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there are no entries."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    """Writing, as map state and broadcast state do it."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Stores a value under ``key``."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Stores every entry of a mapping."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Removes the entry under ``key``; nothing happens if there is none."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map per key, kept entry by entry so that a large one need not be read whole.

    The brackets work as on a dict, except that a missing key reads as None:
    ``state["a"] = 1``, ``"a" in state``, ``del state["a"]``, ``for key in state``.
    """


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """Broadcast state as the other side of a connected stream sees it. Do not change what it returns."""


class BroadcastState(_WritableMap[K, V], ReadOnlyBroadcastState[K, V]):
    """A map of which every subtask holds a full copy.

    The copies stay equal only if each subtask makes the same changes for the same broadcast elements.
    """


class OperatorStateStore(ABC):
    """Hands out state that belongs to an operator rather than to a key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list; its elements are shared out evenly when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list; every subtask gets all elements of all subtasks when the job is restored."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The broadcast state of this descriptor, to read and to write."""
