"""State of an operator's subtask that belongs to no key: lists, bytes, and broadcast maps.

A list is given out when the function is initialised and saved after every batch, in pieces; a piece that did not
change is not written again. How lists are shared out when the parallelism changes is kept with them:

| mode | who gets it after a change of parallelism |
|---|---|
| split | every element goes to one subtask, evenly |
| union | every subtask gets all elements of all |
| raw | every piece of bytes goes to one subtask |
| broadcast | every subtask had, and gets, the same map |
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from firesteel.datastream.state import (
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    ReadOnlyBroadcastState,
    StateDescriptor,
)
from firesteel.durable.cells import PIECE, broadcast_prefix, decode, encode, list_prefix
from firesteel.durable.headers import ListHeader
from firesteel.errors import ProgramError, short_repr
from firesteel.runtime.state.log import LogTable
from firesteel.runtime.state.schema import schema_of
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import Entry

__all__ = ["OperatorState", "list_cells"]

ELEMENTS = 4096
"""Of a list in one cell."""
RAW = 1024 * 1024
"""Bytes of raw state in one cell."""


class OperatorState(OperatorStateStore):
    """What one subtask of an operator keeps besides keyed state.

    >>> from firesteel.common import Types
    >>> from firesteel.runtime.state.store import MemoryStore
    >>> store, header = MemoryStore(), {}
    >>> state = OperatorState("uid")
    >>> state.begin(store, header)
    >>> state.get_list_state(ListStateDescriptor("seen", Types.INT())).add(7)
    >>> store.write(state.changes())
    >>> later = OperatorState("uid")
    >>> later.begin(store, header)
    >>> later.restored, list(later.get_list_state(ListStateDescriptor("seen", Types.INT())).get())
    (True, [7])
    """

    def __init__(self, uid: str) -> None:
        self._uid = uid
        self._store: StateStore | None = None
        self._header: dict[str, ListHeader] = {}
        self._lists: dict[str, OperatorListState] = {}
        self._maps: dict[str, LiveBroadcastState] = {}
        self._tables: dict[str, LogTable] = {}
        self._written: dict[bytes, bytes] = {}
        """What the store has in each cell, as a digest."""
        self.raw: bytes | None = None
        self._restored_raw: bytes | None = None
        self.restored = False

    def begin(self, store: StateStore, header: dict[str, ListHeader]) -> None:
        """A batch starts. The first one decides whether there is something from before."""
        if not self._header:
            self.restored = bool(header)
        self._store, self._header = store, header
        header.setdefault("", ListHeader("raw"))
        for name, table in self._tables.items():
            table.reopen(store, _shape(header[name]))

    @property
    def has_union_lists(self) -> bool:
        """Whether some list is union state: every subtask gets all of it when the job is restarted."""
        return any(kept.mode == "union" for kept in self._header.values())

    # What functions ask for

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, "split")

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, "union")

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        name = state_descriptor.name
        if name not in self._maps:
            kept = self._kept(state_descriptor, "broadcast")
            table = LogTable(broadcast_prefix(self._uid, name), self._reachable(), _shape(kept))
            self._tables[name] = table
            self._maps[name] = LiveBroadcastState(table, state_descriptor)
        return self._maps[name]

    def get_read_only_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """The same state for the side that may not change it."""
        writable = self.get_broadcast_state(state_descriptor)
        assert isinstance(writable, LiveBroadcastState)
        return writable.read_only

    def raw_states(self) -> list[bytes]:
        kept = self._header[""]
        cells = self._cells("", kept.cells)
        found = b"".join(cell or b"" for cell in self._reachable().get_many(cells))
        pieces, at = [], 0
        for length in kept.pieces or ([len(found)] if found else []):
            pieces.append(found[at : at + length])
            at += length
        return pieces

    def restore_raw(self, pieces: list[bytes]) -> None:
        """Begins with the raw states of several former subtasks."""
        self.raw = self._restored_raw = b"".join(pieces)
        self._header[""].pieces = [len(piece) for piece in pieces]

    def _list(self, descriptor: ListStateDescriptor, mode: str) -> ListState[Any]:
        known = self._lists.get(descriptor.name)
        if known is None:
            kept = self._kept(descriptor, mode)
            cells = self._reachable().get_many(self._cells(descriptor.name, kept.cells))
            elements = [element for cell in cells for element in decode(cell or b"", descriptor.name.encode())]
            known = self._lists[descriptor.name] = OperatorListState(descriptor, elements)
        return known

    def _kept(self, descriptor: StateDescriptor, mode: str) -> ListHeader:
        schema = schema_of(descriptor)
        kept = self._header.setdefault(descriptor.name, ListHeader(mode, schema))
        if (kept.mode, kept.schema) != (mode, schema):
            known = None if kept.schema is None else kept.schema.type
            raise ProgramError(
                f"Operator state {descriptor.name!r} is {mode} state of {descriptor.type_info} in this program, but it "
                f"is known as {kept.mode} state of {known}. Give it another name, or keep the type."
            )
        return kept

    def _reachable(self) -> StateStore:
        if self._store is None:
            raise ProgramError("Operator state is asked for in initialize_state() or while records are processed.")
        return self._store

    # Saving

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        for name, state in self._lists.items():
            pieces = [state.elements[at : at + ELEMENTS] for at in range(0, len(state.elements), ELEMENTS)]
            yield from self._save(name, [encode(piece) for piece in pieces])
        if self.raw is not None:
            if self.raw is not self._restored_raw:
                # One piece again, of this subtask.
                self._header[""].pieces = None
            yield from self._save("", [self.raw[at : at + RAW] for at in range(0, len(self.raw), RAW)])
        for table in self._tables.values():
            yield from table.changes()
        self._store = None

    def _save(self, name: str, pieces: list[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
        kept = self._header[name]
        before, kept.cells = kept.cells, len(pieces)
        for cell, piece in zip(self._cells(name, len(pieces)), pieces, strict=True):
            digest = hashlib.blake2b(piece, digest_size=16).digest()
            if self._written.get(cell) != digest:
                self._written[cell] = digest
                yield cell, piece
        for cell in self._cells(name, before)[len(pieces) :]:
            self._written.pop(cell, None)
            yield cell, None

    def _cells(self, name: str, count: int) -> list[bytes]:
        return list_cells(self._uid, name, count)


def list_cells(uid: str, name: str, count: int) -> list[bytes]:
    """Where in the store the pieces of an operator's list are."""
    prefix = list_prefix(uid, name)
    return [prefix + PIECE.pack(number) for number in range(count)]


def _shape(kept: ListHeader) -> dict[str, Any]:
    """What the log of a broadcast state says of itself."""
    if kept.shape is None:
        kept.shape = {}
    return kept.shape


class OperatorListState(ListState[Any]):
    """A list in memory, saved as a whole."""

    def __init__(self, descriptor: ListStateDescriptor, elements: list[Any]) -> None:
        self._descriptor = descriptor
        self._fits = descriptor.elem_type_info.checker()
        self.elements = elements

    def get(self) -> Iterable[Any]:
        return self.elements.copy()

    def add(self, value: Any) -> None:
        self.add_all([value])

    def add_all(self, values: list[Any]) -> None:
        self.elements.extend(self._checked(values))

    def update(self, values: list[Any]) -> None:
        self.elements[:] = self._checked(values)

    def clear(self) -> None:
        self.elements.clear()

    def _checked(self, values: list[Any]) -> list[Any]:
        listed = list(values)
        for value in listed:
            if value is None or (self._fits is not None and not self._fits(value)):
                raise ProgramError(
                    f"Operator state {self._descriptor.name!r}, element {short_repr(value, 60)}: "
                    f"{self._descriptor.elem_type_info.explain(value)}"
                )
        return listed


class _ReadOnly(ReadOnlyBroadcastState[Any, Any]):
    def __init__(self, live: dict[Any, Entry], name: str) -> None:
        self._live = live
        self._name = name

    def get(self, key: Any) -> Any:
        entry = self._live.get(key)
        return None if entry is None or entry[0] is None else entry[0][0]

    def contains(self, key: Any) -> bool:
        entry = self._live.get(key)
        return entry is not None and entry[0] is not None

    def items(self) -> Iterable[tuple[Any, Any]]:
        return [(key, entry[0][0]) for key, entry in self._live.items() if entry[0] is not None]

    def keys(self) -> Iterable[Any]:
        return [key for key, _ in self.items()]

    def values(self) -> Iterable[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        return not self.items()

    def clear(self) -> None:
        raise ProgramError(
            f"Broadcast state {self._name!r} can be changed in process_broadcast_element() only: "
            "every subtask must make the same changes."
        )


class LiveBroadcastState(BroadcastState[Any, Any]):
    """A map of which every subtask has a copy. A value may be None, so each is kept in a tuple of one."""

    def __init__(self, table: LogTable, descriptor: MapStateDescriptor) -> None:
        self._table = table
        self._descriptor = descriptor
        self._key_fits = descriptor.key_type_info.checker()
        self._value_fits = descriptor.value_type_info.checker()
        self.read_only = _ReadOnly(table.live, descriptor.name)

    def get(self, key: Any) -> Any:
        return self.read_only.get(key)

    def contains(self, key: Any) -> bool:
        return self.read_only.contains(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        return self.read_only.items()

    def keys(self) -> Iterable[Any]:
        return self.read_only.keys()

    def values(self) -> Iterable[Any]:
        return self.read_only.values()

    def is_empty(self) -> bool:
        return self.read_only.is_empty()

    def put(self, key: Any, value: Any) -> None:
        for fits, declared, what in (
            (self._key_fits, self._descriptor.key_type_info, key),
            (self._value_fits, self._descriptor.value_type_info, value),
        ):
            if fits is not None and not fits(what):
                raise ProgramError(f"Broadcast state {self._descriptor.name!r}: {declared.explain(what)}")
        self._table.put(key, (value,))

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._table.put(key, None)

    def clear(self) -> None:
        for key in self.keys():
            self._table.put(key, None)
