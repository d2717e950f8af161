"""Keyed state of one operator in one subtask: the current key, its tables, and the states users hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.datastream.state import StateDescriptor, ValueState, ValueStateDescriptor
from firesteel.errors import ProgramError
from firesteel.runtime.copies import may_change
from firesteel.runtime.state.pages import PagedTable, TableShape
from firesteel.runtime.state.store import StateStore

__all__ = ["KeyedStateBackend"]


class KeyedStateBackend:
    """Tables by state name. States outlive a batch (users keep them in attributes). Tables do too, as a cache, while
    they hold at most ``cache_entries`` and the store is as this backend left it; who calls ``begin`` knows that.

    >>> from firesteel.common.typeinfo import Types
    >>> from firesteel.runtime.state.store import MemoryStore
    >>> backend, store, header = KeyedStateBackend("counter"), MemoryStore(), {}
    >>> count = backend.value_state(ValueStateDescriptor("count", Types.LONG()))
    >>> backend.begin(store, header)
    >>> backend.prepare(["a"])
    >>> backend.key = "a"
    >>> count.update(3)
    >>> store.write(backend.changes())
    >>> backend.begin(store, header)
    >>> backend.prepare(["a"])
    >>> count.value()
    3
    """

    def __init__(self, uid: str, cache_entries: int = 0) -> None:
        self.key: Any = None
        self._cache_entries = cache_entries
        self._uid = uid.encode()
        self._states: dict[str, tuple[StateDescriptor, LiveValueState]] = {}
        self._tables: dict[str, PagedTable] = {}
        self.shared = False
        """Whether a state holds objects that can be changed in place, so that results must be copied."""
        self.ready: set[Any] = set()
        """Keys whose state is in memory in this batch."""
        self._store: StateStore | None = None
        self._header: dict[str, Any] = {}

    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        state: LiveValueState | None
        known, state = self._states.get(descriptor.name, (None, None))
        if known is not None and state is not None:
            if known.type_info != descriptor.type_info:
                raise ProgramError(
                    f"State {descriptor.name!r} is registered twice in one operator with different types: "
                    f"{known.type_info} and {descriptor.type_info}."
                )
            return state
        if descriptor.ttl_config is not None:
            raise ProgramError(
                f"State {descriptor.name!r} has a time to live, which this version does not keep. "
                "Clear it from a timer."
            )
        state = LiveValueState(self, descriptor)
        self.shared = self.shared or may_change(descriptor.type_info)
        self._states[descriptor.name] = (descriptor, state)
        if self._store is not None:
            self._attach(descriptor.name, state)
        return state

    def table(self, name: str) -> PagedTable:
        """The table of a state in this batch."""
        table = self._tables.get(name)
        if table is None:
            assert self._store is not None, "state is reachable between begin() and changes() only"
            shape = self._header.setdefault(name, TableShape())
            table = PagedTable(self._uid + b"\0" + name.encode(), self._store, shape)
            self._tables[name] = table
            table.load(self.ready)
        return table

    def begin(self, store: StateStore, header: dict[str, Any], unchanged: bool = False) -> None:
        """A batch starts. ``unchanged`` promises that the store is as the last batch of this backend left it."""
        self._store, self._header = store, header
        if unchanged:
            for name, table in self._tables.items():
                table.reopen(store, header.setdefault(name, TableShape()))
        else:
            self._tables, self.ready = {}, set()
        for name, (_, state) in self._states.items():
            self._attach(name, state)

    def _attach(self, name: str, state: LiveValueState) -> None:
        table = self.table(name)
        state.live, state.dirty = table.live, table.dirty

    def prepare(self, keys: Iterable[Any]) -> None:
        """Makes sure that the state of these keys is in memory. Called per chunk, so that reads are bulk reads."""
        new = set(keys) - self.ready
        if new:
            for table in self._tables.values():
                table.load(new)
            self.ready |= new

    def forget(self, key: Any) -> None:
        """Drops a key's state without a trace: in BATCH mode no later record can ask for it."""
        for table in self._tables.values():
            table.forget(key)
        self.ready.discard(key)

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        for table in self._tables.values():
            yield from table.changes()
        self._store = None
        if max(len(self.ready), sum(table.held for table in self._tables.values())) > self._cache_entries:
            self._tables, self.ready = {}, set()


class LiveValueState(ValueState[Any]):
    """A value per key, read and written in the table's live dict: the hot path is one dict operation."""

    __slots__ = ("_backend", "_check", "_descriptor", "dirty", "live")

    def __init__(self, backend: KeyedStateBackend, descriptor: ValueStateDescriptor) -> None:
        self._backend = backend
        self._descriptor = descriptor
        self._check = descriptor.type_info.checker()
        self.live: dict[Any, Any] = {}
        self.dirty: set[Any] = set()

    def value(self) -> Any:
        return self.live.get(self._backend.key)

    def update(self, value: Any) -> None:
        key = self._backend.key
        if value is None:
            # As in Flink, None is the absence of a value.
            self.live.pop(key, None)
        else:
            if self._check is not None and not self._check(value):
                raise ProgramError(f"State {self._descriptor.name!r}: {self._descriptor.type_info.explain(value)}")
            self.live[key] = value
        self.dirty.add(key)

    def clear(self) -> None:
        self.update(None)
