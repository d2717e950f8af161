"""States whose entries expire: every value, list element and map entry is kept with the time of its last use.

As in Flink, an entry is expired once its time to live has passed since it was written (or read, if so configured). An
expired entry that is met on reading is removed; with ``return_expired_if_not_cleaned_up`` it is shown that one time.
What nobody reads is removed in the background: each state checks its entries for expiry (see ``Table.sweep``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.runtime.state.lists import BigList, LiveListState
from firesteel.runtime.state.maps import BigMap, LiveMapState
from firesteel.runtime.state.tables import KEEP, ExpiryCheck
from firesteel.runtime.state.values import Handle, LiveAggregatingState, LiveReducingState, LiveValueState

if TYPE_CHECKING:
    from firesteel.runtime.state.backend import KeyedStateBackend

__all__ = ["TTL_HANDLES", "Lifetime"]

Stamped = tuple[int, Any]


class Lifetime:
    """A configuration together with the clock it goes by."""

    def __init__(self, backend: KeyedStateBackend, config: StateTtlConfig) -> None:
        self._backend = backend
        self._milliseconds = config.get_ttl().to_milliseconds()
        self.config = config
        self.renewed_by_reading = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self.shows_expired = config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp

    @property
    def now(self) -> int:
        return self._backend.clock.processing_time

    def over(self, stamped: Stamped) -> bool:
        """Whether an entry is expired."""
        return stamped[0] + self._milliseconds <= self.now


def _lifetime(backend: KeyedStateBackend, descriptor: StateDescriptor) -> Lifetime:
    assert descriptor.ttl_config is not None
    return Lifetime(backend, descriptor.ttl_config)


class _Single(Handle):
    """What the states of one entry per key share."""

    lifetime: Lifetime

    def read(self, key: Any) -> Any:
        """The entry as users may see it now, or None."""
        stamped = self.table.get(key)
        if stamped is None:
            return None
        if self.lifetime.over(stamped):
            self.table.put(key, None)
            return stamped[1] if self.lifetime.shows_expired else None
        if self.lifetime.renewed_by_reading:
            self.write(key, stamped[1])
        return stamped[1]

    def unexpired(self, key: Any) -> Any:
        """The entry to build on when something is added."""
        stamped = self.table.get(key)
        return None if stamped is None or self.lifetime.over(stamped) else stamped[1]

    def write(self, key: Any, value: Any) -> None:
        self.table.put(key, (self.lifetime.now, value))

    def check_expiry(self, key: Any, entry: Stamped) -> Any:
        return None if self.lifetime.over(entry) else KEEP


class TtlValueState(LiveValueState, _Single):
    def __init__(self, backend: KeyedStateBackend, descriptor: ValueStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        self.lifetime = _lifetime(backend, descriptor)

    def value(self) -> Any:
        return self.read(self._backend.key)

    def update(self, value: Any) -> None:
        super().update(value)
        if value is not None:
            self.write(self._backend.key, value)


class TtlReducingState(LiveReducingState, _Single):
    def __init__(self, backend: KeyedStateBackend, descriptor: ReducingStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        self.lifetime = _lifetime(backend, descriptor)

    def get(self) -> Any:
        return self.read(self._backend.key)

    def add(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        known = self.unexpired(self._backend.key)
        result = value if known is None else self._reduce(known, value)
        if self._check is not None:
            self._check(result)
        self.write(self._backend.key, result)


class TtlAggregatingState(LiveAggregatingState, _Single):
    def __init__(self, backend: KeyedStateBackend, descriptor: AggregatingStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        self.lifetime = _lifetime(backend, descriptor)

    def get(self) -> Any:
        accumulator = self.read(self._backend.key)
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        known = self.unexpired(self._backend.key)
        accumulator = self._function.add(value, self._function.create_accumulator() if known is None else known)
        if self._check is not None:
            self._check(accumulator)
        self.write(self._backend.key, accumulator)


class TtlListState(LiveListState):
    """Elements expire one by one."""

    def __init__(self, backend: KeyedStateBackend, descriptor: ListStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        self.lifetime = _lifetime(backend, descriptor)

    def _checked(self, values: list[Any]) -> list[Any]:
        now = self.lifetime.now
        return [(now, value) for value in super()._checked(values)]

    def add(self, value: Any) -> None:
        self.add_all([value])

    def get(self) -> Iterable[Any]:
        key = self._backend.key
        shown = super().get()
        lifetime = self.lifetime
        if lifetime.renewed_by_reading:
            kept = [value for stamp, value in shown if not lifetime.over((stamp, value))]
            values = [value for _, value in shown] if lifetime.shows_expired else kept
            self.update(kept)
            return values
        known = self.table.get(key)
        remaining = KEEP if known is None else self.check_expiry(key, known)
        if remaining is not KEEP:
            self.table.put(key, remaining)
        return [v for _, v in shown] if lifetime.shows_expired else self._unexpired(shown)

    def _unexpired(self, stamped: Iterable[Stamped]) -> Iterable[Any]:
        over = self.lifetime.over
        if isinstance(stamped, list):
            return [one[1] for one in stamped if not over(one)]
        return (one[1] for one in stamped if not over(one))

    def check_expiry(self, key: Any, entry: Any) -> Any:
        over = self.lifetime.over
        if not isinstance(entry, BigList):
            kept = [one for one in entry if not over(one)]
            return KEEP if len(kept) == len(entry) else kept or None
        # Elements are in the order of their times: whole blocks expire from the front.
        first = entry.first
        while first < entry.end:
            (block,) = self.blocks.peek([(entry.id, first)])
            if not over(block[-1]):
                break
            first += 1
        if first == entry.first:
            return KEEP
        self.drop_blocks(key, until=first)
        if first == entry.end:
            return [one for one in entry.tail if not over(one)] or None
        return entry


class TtlMapState(LiveMapState):
    """Entries expire one by one."""

    def __init__(self, backend: KeyedStateBackend, descriptor: MapStateDescriptor) -> None:
        super().__init__(backend, descriptor)
        self.lifetime = _lifetime(backend, descriptor)
        # What is kept is a time and a value: the value is checked before it gets its time.
        self._check_raw, self._check_value = self._check_value, None

    def get(self, key: Any) -> Any:
        stamped = super().get(key)
        if stamped is None:
            return None
        if self.lifetime.over(stamped):
            self.remove(key)
            return stamped[1] if self.lifetime.shows_expired else None
        if self.lifetime.renewed_by_reading:
            super().put(key, (self.lifetime.now, stamped[1]))
        return stamped[1]

    def contains(self, key: Any) -> bool:
        if not super().contains(key):
            return False
        expired = self.lifetime.over(super().get(key))
        self.get(key)
        return not expired or self.lifetime.shows_expired

    def is_empty(self) -> bool:
        return next(self.items(), None) is None

    def items(self) -> Iterator[tuple[Any, Any]]:
        lifetime = self.lifetime
        here = self._backend.key
        for key, stamped in super().items():
            # The user may have gone on to another key, or an earlier step may have changed this entry.
            if lifetime.over(stamped):
                if self._backend.key == here:
                    self.remove(key)
                if not lifetime.shows_expired:
                    continue
            elif lifetime.renewed_by_reading and self._backend.key == here:
                super().put(key, (lifetime.now, stamped[1]))
            yield key, stamped[1]

    def put(self, key: Any, value: Any) -> None:
        if self._check_raw is not None and value is not None:
            self._check_raw(value)
        super().put(key, (self.lifetime.now, value))

    def check_expiry(self, key: Any, entry: Any) -> Any:
        over = self.lifetime.over
        if not isinstance(entry, BigMap):
            kept = {name: stamped for name, stamped in entry.items() if not over(stamped)}
            return KEEP if len(kept) == len(entry) else kept or None
        entry.swept = (entry.swept + 1) % entry.blocks
        gone = self.keep_in_block((entry.id, entry.swept), lambda stamped: not over(stamped))
        entry.entries -= gone
        if not gone:
            return KEEP
        if entry.entries:
            return entry
        self.drop_blocks(entry)
        return None


TTL_HANDLES: dict[type[StateDescriptor], type[Any]] = {
    ValueStateDescriptor: TtlValueState,
    ReducingStateDescriptor: TtlReducingState,
    AggregatingStateDescriptor: TtlAggregatingState,
    ListStateDescriptor: TtlListState,
    MapStateDescriptor: TtlMapState,
}


def expiry_check_of(handle: Handle) -> ExpiryCheck | None:
    """How a state's entries are checked for expiry, if they can expire."""
    return getattr(handle, "check_expiry", None)
