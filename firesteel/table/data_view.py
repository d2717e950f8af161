"""Collections inside the accumulators of aggregate functions."""

from __future__ import annotations

import copyreg
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from firesteel.durable.names import stored_as

__all__ = ["DataView", "ListView", "MapView"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView(ABC):
    """A collection that may stand in an accumulator."""

    @abstractmethod
    def clear(self) -> None:
        """Removes everything."""


class ListView(DataView, Generic[T]):
    """A list in an accumulator. Its type is ``DataTypes.LIST_VIEW(element)``.

    >>> words = ListView()
    >>> words.add("to")
    >>> words.add_all(["be", "or"])
    >>> list(words)
    ['to', 'be', 'or']
    """

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """All elements."""
        return self._list

    def add(self, value: T) -> None:
        """Appends an element."""
        self._list.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Appends several elements."""
        self._list.extend(values)

    def clear(self) -> None:
        self._list = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and list(self.get()) == list(other.get())

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[T]:
        return iter(self._list)

    def __repr__(self) -> str:
        return f"ListView({self._list!r})"


class MapView(DataView, Generic[K, V]):
    """A dict in an accumulator. Its type is ``DataTypes.MAP_VIEW(key, value)``.

    >>> counts = MapView()
    >>> counts["a"] = 1
    >>> "a" in counts, counts["a"], list(counts.items())
    (True, 1, [('a', 1)])
    """

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of a key; None if there is none."""
        return self._dict.get(key)

    def put(self, key: K, value: V) -> None:
        """Sets the value of a key."""
        self._dict[key] = value

    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Sets the values of several keys."""
        self._dict.update(dict_value)

    def remove(self, key: K) -> None:
        """Removes a key, if it is there."""
        self._dict.pop(key, None)

    def contains(self, key: K) -> bool:
        """Whether there is a value for the key."""
        return key in self._dict

    def items(self) -> Iterable[tuple[K, V]]:
        """Keys with their values."""
        return self._dict.items()

    def keys(self) -> Iterable[K]:
        """All keys."""
        return self._dict.keys()

    def values(self) -> Iterable[V]:
        """All values."""
        return self._dict.values()

    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not self._dict

    def clear(self) -> None:
        self._dict.clear()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapView) and self._dict == other._dict

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: Any) -> bool:
        return key in self._dict

    def __iter__(self) -> Iterator[K]:
        return iter(self._dict)

    def __repr__(self) -> str:
        return f"MapView({self._dict!r})"


@stored_as("list_view")
def _list_view(elements: list[T]) -> ListView[T]:
    view: ListView[T] = ListView()
    view._list = elements
    return view


@stored_as("map_view")
def _map_view(entries: dict[K, V]) -> MapView[K, V]:
    view: MapView[K, V] = MapView()
    view._dict = entries
    return view


copyreg.pickle(ListView, lambda view: (_list_view, (view._list,)))
copyreg.pickle(MapView, lambda view: (_map_view, (view._dict,)))
