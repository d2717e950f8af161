"""Reads what a subtask keeps out of its store, state by state, without the program that wrote it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from firesteel.errors import SavepointError
from firesteel.runtime.snapshots.saved import EVENT_TIMERS, PROCESSING_TIMERS, ROWS, Rows, StateId
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables
from firesteel.runtime.state.lists import BigList
from firesteel.runtime.state.log import scan_log
from firesteel.runtime.state.maps import BigMap
from firesteel.runtime.state.operator import list_cells
from firesteel.runtime.state.schema import UNDECLARED, StateSchema
from firesteel.runtime.state.store import HEADER, StateStore
from firesteel.runtime.state.tables import Table, TableFactory
from firesteel.runtime.timers import TimerQueue

__all__ = ["StoredSubtask"]

_SCOPES = (("tables", "key", ""), ("windows", "window", "\1w"))
"""Parts of an operator's header, whose they are, and what its store keys have behind the uid."""


class StoredSubtask:
    """All states of one subtask of a stage, as a committed batch left them."""

    def __init__(self, store: StateStore, custom: TableFactory | None = None) -> None:
        self._store = store
        self._factories: dict[str, TableFactory] = {"HashMapTables": HashMapTables(), "RocksDBTables": RocksDBTables()}
        if custom is not None:
            self._factories.setdefault(type(custom).__name__, custom)
        (kept,) = store.get_many([HEADER])
        self.headers: dict[str, dict[str, Any]] = pickle.loads(kept)[1] if kept else {}

    def watermark(self, uid: str) -> int | None:
        """How far event time was in an operator."""
        known: int | None = self.headers[uid].get("valve", {}).get("watermark")
        return known

    def layout(self, uid: str) -> str | None:
        """How a keyed operator builds its state; None for others."""
        keys = self.headers[uid].get("keys")
        return None if keys is None else keys[1]

    def states(self, uid: str) -> Iterator[tuple[StateId, Iterator[Rows]]]:
        """The states of an operator, each with its rows. Rows are read when they are asked for."""
        header = self.headers[uid]
        key_type, _, timers_of = header.get("keys", (None, None, None))
        for part, scope, suffix in _SCOPES:
            for name, kept in header.get(part, {}).items():
                # Under the empty name is the number of the last big collection.
                if name and "entries" in kept:
                    schema: StateSchema = kept.get("schema", UNDECLARED)
                    state = StateId(uid, name, schema.shape, scope, schema, key_type)
                    yield state, self._entries(uid + suffix, state, kept)
        for part, name, letter in (("event", EVENT_TIMERS, b"e"), ("processing", PROCESSING_TIMERS, b"p")):
            if header.get(part):
                state = StateId(uid, name, "timers", timers_of, UNDECLARED, key_type)
                yield state, self._timers(uid.encode() + b"\0\0" + letter, set(header[part]))
        for name, kept in header.get("operator", {}).items():
            if "table" in kept or kept.get("cells"):
                state = StateId(uid, name, kept["mode"], "operator", kept.get("schema", UNDECLARED))
                yield state, self._operator(uid, state, kept)

    # Keyed state

    def _entries(self, uid: str, state: StateId, kept: dict[str, Any]) -> Iterator[Rows]:
        prefix = f"{uid}\0{state.name}\0".encode()
        factory = self._factory(state, kept["tables"])
        scanned = factory.scan(prefix + b"entries", self._store, kept["entries"])
        if state.kind == "value":
            for keys, values in scanned:
                if keys:
                    yield keys, values
            return
        blocks: Table | None = None

        def in_blocks() -> Table:
            nonlocal blocks
            if blocks is None:
                blocks = factory.blocks(prefix + b"blocks", self._store, kept.get("blocks", {}))
            return blocks

        inside: Callable[[Any], Iterable[Any]] = (
            (lambda value: enumerate(_elements(value, in_blocks)))
            if state.kind == "list"
            else (lambda value: _items(value, in_blocks))
        )
        flat = ((key, part) for keys, values in scanned for key, value in zip(keys, values, strict=True)
                for part in inside(value))  # fmt: skip
        yield from _in_chunks(flat)

    def _factory(self, state: StateId, name: str) -> TableFactory:
        if name not in self._factories:
            raise SavepointError(
                f"State {state.name!r} of operator {state.uid} was kept by the state backend {name}, which is unknown "
                "here. Read it with the program that has this backend."
            )
        return self._factories[name]

    # Timers

    def _timers(self, prefix: bytes, coarse: set[int]) -> Iterator[Rows]:
        return _in_chunks((place, time) for time, place in TimerQueue(prefix, self._store, coarse).pending())

    # State without keys

    def _operator(self, uid: str, state: StateId, kept: dict[str, Any]) -> Iterator[Rows]:
        if state.kind == "broadcast":
            prefix = uid.encode() + b"\0\0b" + state.name.encode()
            for keys, values in scan_log(prefix, self._store, kept["table"]):
                yield [None] * len(keys), [(key, value) for key, (value,) in zip(keys, values, strict=True)]
            return
        cells = self._store.get_many(list_cells(uid.encode(), state.name, kept["cells"]))
        if state.kind == "raw":
            yield [None], [b"".join(cell or b"" for cell in cells)]
            return
        for cell in cells:
            elements = pickle.loads(cell or b"")
            yield [None] * len(elements), elements


def _elements(value: Any, blocks: Callable[[], Table]) -> Iterator[Any]:
    if not isinstance(value, BigList):
        return iter(value)
    return chain(chain.from_iterable(_blocks(value.block_keys(), blocks())), value.tail)


def _items(value: Any, blocks: Callable[[], Table]) -> Iterator[tuple[Any, Any]]:
    if not isinstance(value, BigMap):
        return iter(value.items())
    numbers = [(value.id, number) for number in range(value.blocks)]
    return (item for block in _blocks(numbers, blocks()) for item in block.items())


def _blocks(keys: list[tuple[int, int]], table: Table) -> Iterator[Any]:
    for start in range(0, len(keys), 16):
        for block in table.peek(keys[start : start + 16]):
            if block is not None:
                yield block


def _in_chunks(rows: Iterable[tuple[Any, Any]]) -> Iterator[Rows]:
    places: list[Any] = []
    contents: list[Any] = []
    for place, content in rows:
        places.append(place)
        contents.append(content)
        if len(places) >= ROWS:
            yield places, contents
            places, contents = [], []
    if places:
        yield places, contents
