"""States of one entry per key: value, reducing, aggregating. The hot path is one dict operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from firesteel.errors import ProgramError
from firesteel.runtime.copies import may_change
from firesteel.runtime.state.tables import Entry, Table

if TYPE_CHECKING:
    from firesteel.runtime.state.backend import KeyedStateBackend

__all__ = ["Handle", "LiveAggregatingState", "LiveReducingState", "LiveValueState"]


class Handle:
    """What a user holds: it outlives batches, and shows the entry of the backend's current key.

    ``live`` is the table's. Where there is no current key, asking for its hash says so.
    """

    has_blocks = False
    """Whether the state may need a second table, for collections too big for one entry."""

    def __init__(self, backend: KeyedStateBackend, descriptor: StateDescriptor) -> None:
        self._backend = backend
        self._descriptor = descriptor
        self.live: dict[Any, Entry] = {}
        self.table: Table

    @property
    def shared(self) -> bool:
        """Whether users are handed objects that the state holds and that can be changed in place."""
        return may_change(self._descriptor.type_info)

    def attach(self, table: Table, blocks: Table | None) -> None:
        """Works on these tables from now on."""
        self.table, self.live = table, table.live

    def forget(self, key: Any) -> None:
        """Called before a key is dropped without a trace."""

    def renew(self, key: Any, renew: Callable[[Any], Any]) -> None:
        """Replaces what a key has by what a function makes of it."""
        self.table.put(key, renew(self.table.get(key)))

    def checker(self, what: str, declared: TypeInformation) -> Callable[[Any], None] | None:
        """Complains of a value that does not fit its declared type; None where anything fits."""
        fits = declared.checker()
        if fits is None:
            return None

        def check(value: Any) -> None:
            if not fits(value):
                raise ProgramError(f"State {self._descriptor.name!r}{what}: {declared.explain(value)}")

        return check

    def clear(self) -> None:
        # The look-up comes first: it tells where there is no current key.
        if self._backend.key in self.live:
            self.table.put(self._backend.key, None)


class LiveValueState(Handle, ValueState[Any]):
    def __init__(self, backend: KeyedStateBackend, descriptor: ValueStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        self._fits = descriptor.type_info.checker()

    def value(self) -> Any:
        entry = self.live.get(self._backend.key)
        return None if entry is None else entry[0]

    def update(self, value: Any) -> None:
        # As in Flink, None is the absence of a value.
        if value is not None and self._fits is not None and not self._fits(value):
            raise ProgramError(f"State {self._descriptor.name!r}: {self._descriptor.type_info.explain(value)}")
        key = self._backend.key
        entry = self.live.get(key)
        # What follows is Table.put, here because it is called for every record.
        if entry is None:
            if value is not None:
                self.table.insert(key, value)
            return
        entry[0] = value
        if entry[1] >= 0:
            self.table.mark(entry)


class LiveReducingState(Handle, ReducingState[Any]):
    def __init__(self, backend: KeyedStateBackend, descriptor: ReducingStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        function = descriptor.get_reduce_function()
        self._reduce = getattr(function, "func", None) or function.reduce
        self._check = self.checker("", descriptor.type_info)

    def get(self) -> Any:
        entry = self.live.get(self._backend.key)
        return None if entry is None else entry[0]

    def add(self, value: Any) -> None:
        if value is None:
            # As in Flink, adding nothing clears.
            self.clear()
            return
        key = self._backend.key
        known = self.table.get(key)
        result = value if known is None else self._reduce(known, value)
        if self._check is not None:
            self._check(result)
        self.table.put(key, result)

    def merge(self, target: Any, sources: Iterable[Any]) -> None:
        """Folds the values of other keys into one, and removes them."""
        for source in sources:
            other = self.table.get(source)
            if other is not None:
                known = self.table.get(target)
                self.table.put(source, None)
                self.table.put(target, other if known is None else self._reduce(known, other))


class LiveAggregatingState(Handle, AggregatingState[Any, Any]):
    def __init__(self, backend: KeyedStateBackend, descriptor: AggregatingStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        self._function = descriptor.get_agg_function()
        self._check = self.checker(" (the accumulator)", descriptor.type_info)

    def get(self) -> Any:
        entry = self.live.get(self._backend.key)
        return None if entry is None or entry[0] is None else self._function.get_result(entry[0])

    def add(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        key = self._backend.key
        accumulator = self.table.get(key)
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        accumulator = self._function.add(value, accumulator)
        if self._check is not None:
            self._check(accumulator)
        self.table.put(key, accumulator)

    def merge(self, target: Any, sources: Iterable[Any]) -> None:
        """Merges the accumulators of other keys into one, and removes them."""
        for source in sources:
            other = self.table.get(source)
            if other is not None:
                known = self.table.get(target)
                self.table.put(source, None)
                self.table.put(target, other if known is None else self._function.merge(known, other))
