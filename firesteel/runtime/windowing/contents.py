"""What a window holds: one folded value, or its elements.

Contents are entries of one state of the windows' backend, under (key, token). They are asked for by that pair, not
by the backend's current key: merging windows keep theirs under another window's token.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import TimestampedValue
from firesteel.runtime.copies import detached
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.lists import LiveListState
from firesteel.runtime.state.values import LiveValueState

__all__ = ["Contents", "contents_of"]

STATE = "window-contents"
Place = tuple[Any, Any]
"""A key and the token of a window."""


class Contents:
    """The port that a window operator works with."""

    def add(self, place: Place, value: Any, timestamp: int) -> None:
        raise NotImplementedError  # pragma: no cover - every kind overrides it

    def get(self, place: Place) -> list[Any] | None:
        """The elements for the window function: all of them, or the one they were folded into; None if empty."""
        raise NotImplementedError  # pragma: no cover - every kind overrides it

    def clear(self, place: Place) -> None:
        raise NotImplementedError  # pragma: no cover - every kind overrides it

    def merge(self, target: Place, sources: Iterable[Place]) -> None:
        """Moves the contents of several windows into one."""
        raise NotImplementedError  # pragma: no cover - every kind overrides it


class _Folded(Contents):
    """One value a window."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self.state: LiveValueState = backend.state(ValueStateDescriptor(STATE, Types.PICKLED_BYTE_ARRAY()))

    def clear(self, place: Place) -> None:
        self.state.table.put(place, None)

    def put(self, place: Place, folded: Any) -> None:
        self.state.table.put(place, folded)

    def taken(self, place: Place) -> Any:
        """Removes what is there and returns it."""
        found = self.state.table.get(place)
        self.state.table.put(place, None)
        return found


class Reduced(_Folded):
    def __init__(self, backend: KeyedStateBackend, function: Any) -> None:
        super().__init__(backend)
        self.fold = getattr(function, "func", None) or function.reduce

    def add(self, place: Place, value: Any, timestamp: int) -> None:
        known = self.state.table.get(place)
        # A value may be None: it is kept in a list of one, so that it is not taken for nothing. The first one is a
        # copy: a function may change what it has folded in place, and the record may be in other windows, too.
        self.put(place, [detached(value) if known is None else self.fold(known[0], value)])

    def get(self, place: Place) -> list[Any] | None:
        found: list[Any] | None = self.state.table.get(place)
        return found

    def merge(self, target: Place, sources: Iterable[Place]) -> None:
        together = self.taken(target)
        for source in sources:
            other = self.taken(source)
            if other is not None:
                together = other if together is None else [self.fold(together[0], other[0])]
        if together is not None:
            self.put(target, together)


class Aggregated(_Folded):
    def __init__(self, backend: KeyedStateBackend, function: AggregateFunction) -> None:
        super().__init__(backend)
        self.function = function

    def add(self, place: Place, value: Any, timestamp: int) -> None:
        known = self.state.table.get(place)
        accumulator = self.function.create_accumulator() if known is None else known[0]
        self.put(place, [self.function.add(value, accumulator)])

    def get(self, place: Place) -> list[Any] | None:
        known = self.state.table.get(place)
        return None if known is None else [self.function.get_result(known[0])]

    def merge(self, target: Place, sources: Iterable[Place]) -> None:
        together = self.taken(target)
        for source in sources:
            other = self.taken(source)
            if other is not None:
                together = other if together is None else [self.function.merge(together[0], other[0])]
        if together is not None:
            self.put(target, together)


class Elements(Contents):
    """All elements, in the order they came."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self.state: LiveListState = backend.state(ListStateDescriptor(STATE, Types.PICKLED_BYTE_ARRAY()))

    def add(self, place: Place, value: Any, timestamp: int) -> None:
        self.state.append(place, value)

    def get(self, place: Place) -> list[Any] | None:
        return list(self.state.elements(place)) or None

    def clear(self, place: Place) -> None:
        self.state.remove(place)

    def merge(self, target: Place, sources: Iterable[Place]) -> None:
        self.state.merge(target, sources)


class TimedElements(Elements):
    """Elements with their times, for an evictor to choose from."""

    def add(self, place: Place, value: Any, timestamp: int) -> None:
        self.state.append(place, (timestamp, value))

    def timed(self, place: Place) -> list[TimestampedValue]:
        return [TimestampedValue(value, timestamp) for timestamp, value in self.state.elements(place)]

    def keep(self, place: Place, left: list[TimestampedValue]) -> None:
        """Leaves only these."""
        self.state.remove(place)
        for one in left:
            self.state.append(place, (one.timestamp, one.value))


def contents_of(backend: KeyedStateBackend, fold: Any, timed: bool) -> Contents:
    if timed:
        return TimedElements(backend)
    if fold is None:
        return Elements(backend)
    return Aggregated(backend, fold) if isinstance(fold, AggregateFunction) else Reduced(backend, fold)
