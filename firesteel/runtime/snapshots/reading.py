"""Reads what a subtask keeps out of its store, state by state, without the program that wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from firesteel.durable.cells import HEADER, broadcast_prefix, decode, of_windows, table_prefix, timer_prefix
from firesteel.durable.header_codec import decode_header
from firesteel.durable.headers import COLUMN_BACKENDS, UNDECLARED, ListHeader, OperatorHeader, StateHeader
from firesteel.errors import SavepointError
from firesteel.runtime.snapshots.saved import EVENT_TIMERS, PROCESSING_TIMERS, ROWS, Rows, StateId
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables
from firesteel.runtime.state.lists import BigList
from firesteel.runtime.state.log import scan_log
from firesteel.runtime.state.maps import BigMap
from firesteel.runtime.state.operator import list_cells
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import Table, TableFactory, name_of
from firesteel.runtime.timers import TimerQueue

__all__ = ["StoredSubtask"]


class StoredSubtask:
    """All states of one subtask of a stage, as a committed batch left them."""

    def __init__(self, store: StateStore, custom: TableFactory | None = None) -> None:
        self._store = store
        self._factories: dict[str, TableFactory] = {name_of(one): one for one in (HashMapTables(), RocksDBTables())}
        if custom is not None:
            self._factories.setdefault(name_of(custom), custom)
        (kept,) = store.get_many([HEADER])
        self.headers: dict[str, OperatorHeader] = decode_header(kept).operators

    def watermark(self, uid: str) -> int | None:
        """How far event time was in an operator."""
        return self.headers[uid].valve.watermark

    def layout(self, uid: str) -> str | None:
        """How a keyed operator builds its state; None for others."""
        keys = self.headers[uid].keys
        return None if keys is None else keys.layout

    def states(self, uid: str) -> Iterator[tuple[StateId, Iterator[Rows]]]:
        """The states of an operator, each with its rows. Rows are read when they are asked for."""
        header = self.headers[uid]
        keys = header.keys
        key_type = None if keys is None else keys.type
        for tables, scope, place in ((header.tables, "key", uid), (header.windows, "window", of_windows(uid))):
            for name, kept in tables.states.items():
                if "entries" in kept.shapes:
                    schema = kept.schema or UNDECLARED
                    whose = "place" if kept.shapes["entries"].get("places") else scope
                    state = StateId(uid, name, schema.shape, whose, schema, key_type)
                    yield state, self._entries(place, state, kept)
        for name, coarse in ((EVENT_TIMERS, header.event_timers), (PROCESSING_TIMERS, header.processing_timers)):
            if coarse:
                state = StateId(uid, name, "timers", "key" if keys is None else keys.timers_of, UNDECLARED, key_type)
                yield state, self._timers(timer_prefix(uid, name == EVENT_TIMERS), set(coarse))
        for name, own in header.lists.items():
            if own.shape is not None or own.cells:
                state = StateId(uid, name, own.mode, "operator", own.schema or UNDECLARED)
                yield state, self._operator(uid, state, own)

    # Keyed state

    def _entries(self, uid: str, state: StateId, kept: StateHeader) -> Iterator[Rows]:
        if kept.backend in COLUMN_BACKENDS:
            # Only here: what has no tables of columns needs no Arrow.
            from firesteel.runtime.state.columnar.slots import scan_slots

            yield from scan_slots(table_prefix(uid, state.name, "columns"), self._store, kept.shapes["entries"])
            return
        factory = self._factory(state, kept.backend)
        scanned = factory.scan(table_prefix(uid, state.name, "entries"), self._store, kept.shapes["entries"])
        if state.kind == "value":
            for keys, values in scanned:
                if keys:
                    yield keys, values
            return
        blocks: Table | None = None

        def in_blocks() -> Table:
            nonlocal blocks
            if blocks is None:
                blocks = factory.blocks(
                    table_prefix(uid, state.name, "blocks"), self._store, kept.shapes.get("blocks", {})
                )
            return blocks

        inside: Callable[[Any], Iterable[Any]] = (
            (lambda value: enumerate(_elements(value, in_blocks)))
            if state.kind == "list"
            else (lambda value: _items(value, in_blocks))
        )
        flat = ((key, part) for keys, values in scanned for key, value in zip(keys, values, strict=True)
                for part in inside(value))  # fmt: skip
        yield from _in_chunks(flat)

    def _factory(self, state: StateId, name: str | None) -> TableFactory:
        if name is None or name not in self._factories:
            raise SavepointError(
                f"State {state.name!r} of operator {state.uid} was kept by the state backend {name}, which is unknown "
                "here. Read it with the program that has this backend."
            )
        return self._factories[name]

    # Timers

    def _timers(self, prefix: bytes, coarse: set[int]) -> Iterator[Rows]:
        return _in_chunks((place, time) for time, place in TimerQueue(prefix, self._store, coarse).pending())

    # State without keys

    def _operator(self, uid: str, state: StateId, kept: ListHeader) -> Iterator[Rows]:
        if state.kind == "broadcast":
            for keys, values in scan_log(broadcast_prefix(uid, state.name), self._store, kept.shape or {}):
                yield [None] * len(keys), [(key, value) for key, (value,) in zip(keys, values, strict=True)]
            return
        cells = self._store.get_many(list_cells(uid, state.name, kept.cells))
        if state.kind == "raw":
            yield [None], [b"".join(cell or b"" for cell in cells)]
            return
        for cell in cells:
            elements = decode(cell or b"", state.name.encode())
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
