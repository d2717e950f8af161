"""Restored state on its way to its subtasks, in the first batch of a job: sent by the tasks of stage 0 as frames, put
into the stores of the later stages before anything else happens there.

1. Each task of stage 0 reads a share of the savepoint, row by row, and routes rows by their keys as it routes records.
   So a change of parallelism needs nothing of its own.
2. A task of a later stage puts what it gets into its store and its header, as if an earlier batch had left it there.
3. Only then do its operators begin. A batch that fails is repeated, from the savepoint again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor
from firesteel.durable.cells import of_windows, timer_prefix
from firesteel.durable.headers import StoreHeader, TablesHeader, ValveHeader
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.clock import Clock
from firesteel.runtime.frames import Frame, encode
from firesteel.runtime.keys import KeyRoutes
from firesteel.runtime.snapshots.reading import StoredSubtask
from firesteel.runtime.snapshots.saved import EVENT_TIMERS, Facts, StateChunk, StateId
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.operator import OperatorState
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import TableFactory
from firesteel.runtime.timers import TimerQueue

__all__ = ["RESTORE", "Restorer", "restored_frames", "union_lists"]

_ANY = Types.PICKLED_BYTE_ARRAY()

RESTORE = 0xFFFF
"""Stands where the exchange's number stands in the frames of records."""


def restored_frames(graph: JobGraph, subtask: int, chunks: Iterable[StateChunk | Facts], time: int) -> Iterator[Frame]:
    """The frames that one task of stage 0 sends."""
    nodes = {node.uid: node for node in graph.graph.nodes.values()}
    stages = {node.uid: graph.stage_of(node.id) for node in nodes.values()}
    routes: dict[str, KeyRoutes] = {}
    sequence = 0
    for chunk in chunks:
        uid = chunk.uid if isinstance(chunk, Facts) else chunk.state.uid
        node = nodes[uid]
        if isinstance(chunk, Facts):
            parts: Iterable[tuple[int, Any]] = [(target, chunk) for target in range(node.parallelism)]
        elif chunk.targets is not None:
            parts = [(target, chunk) for target in chunk.targets]
        else:
            if uid not in routes:
                routes[uid] = KeyRoutes(node.parallelism, node.max_parallelism)
            parts = _routed(chunk, routes[uid])
        for target, part in parts:
            yield Frame(stages[uid], target, RESTORE, subtask, sequence, time, encode([part]))
            sequence += 1


def _routed(chunk: StateChunk, routes: KeyRoutes) -> Iterator[tuple[int, StateChunk]]:
    by_target: dict[int, list[int]] = {}
    for at, target in enumerate(routes.of(chunk.state.user_keys(chunk.places))):
        by_target.setdefault(target, []).append(at)
    for target, rows in sorted(by_target.items()):
        places, contents = [chunk.places[at] for at in rows], [chunk.contents[at] for at in rows]
        yield target, StateChunk(chunk.state, places, contents)


def union_lists(stored: Iterable[StoredSubtask], graph: JobGraph) -> list[StateChunk]:
    """The union lists of all subtasks of a job that is restarted, to be sent to each of them."""
    widths = {node.uid: node.parallelism for node in graph.graph.nodes.values()}
    lists: dict[StateId, list[Any]] = {}
    for subtask in stored:
        for uid in subtask.headers:
            for state, rows in subtask.states(uid):
                if state.kind == "union":
                    lists.setdefault(state, []).extend(element for _, elements in rows for element in elements)
    return [StateChunk(state, [], found, range(widths[state.uid]), instead=True) for state, found in lists.items()]


class Restorer:
    """Fills one subtask's store."""

    def __init__(self, store: StateStore, header: StoreHeader, tables: TableFactory, now: int) -> None:
        self._store = store
        self._header = header
        self._factory = tables
        self._clock = Clock()
        self._clock.processing_time = now
        self._backends: dict[tuple[str, str], KeyedStateBackend] = {}
        self._timers: dict[tuple[str, str], TimerQueue] = {}
        self._operators: dict[str, OperatorState] = {}
        self._schemas: list[StateId] = []
        self._raw: dict[str, list[bytes]] = {}

    def take(self, chunk: StateChunk | Facts) -> None:
        if isinstance(chunk, Facts):
            self._learn(chunk)
            return
        state = chunk.state
        if state.scope == "operator" and state.kind != "timers":
            self._into_operator(chunk)
        elif state.kind == "timers":
            queue = self._queue(state)
            for place, time in zip(chunk.places, chunk.contents, strict=True):
                queue.register(time, place)
        else:
            self._into_table(chunk)

    def _learn(self, facts: Facts) -> None:
        header = self._header.operator(facts.uid)
        if facts.watermark is not None:
            header.valve = ValveHeader(facts.watermark)
        if facts.layout is not None:
            header.restored_layout = facts.layout
        if facts.checkpointed:
            self._operator(facts.uid)

    # Keyed state

    def _into_table(self, chunk: StateChunk) -> None:
        state = chunk.state
        backend = self._backend(state)
        if state.kind == "value":
            put = backend.table(state.name).put
            for place, value in zip(chunk.places, chunk.contents, strict=True):
                put(place, value)
        elif state.kind == "list":
            self._into_list(backend.state(ListStateDescriptor(state.name, _ANY)), chunk)
        else:
            handle = backend.state(MapStateDescriptor(state.name, _ANY, _ANY))
            for backend.key, (key, value) in zip(chunk.places, chunk.contents, strict=True):
                backend.ensure(backend.key)
                handle.put(key, value)
        self._remember(state)
        backend.make_room()

    def _into_list(self, handle: Any, chunk: StateChunk) -> None:
        backend, at = self._backend(chunk.state), 0
        while at < len(chunk.places):
            place, first = chunk.places[at], at
            while at < len(chunk.places) and chunk.places[at] == place:
                at += 1
            backend.ensure(place)
            handle.extend(place, [element for _, element in chunk.contents[first:at]])

    def _backend(self, state: StateId) -> KeyedStateBackend:
        backend = self._backends.get((state.uid, state.scope))
        if backend is None:
            place = of_windows(state.uid) if state.scope == "window" else state.uid
            backend = KeyedStateBackend(place, self._factory, self._clock)
            backend.begin(self._store, self._tables(state))
            self._backends[state.uid, state.scope] = backend
        return backend

    def _tables(self, state: StateId) -> TablesHeader:
        header = self._header.operator(state.uid)
        return header.windows if state.scope == "window" else header.tables

    def _remember(self, state: StateId) -> None:
        if not self._schemas or self._schemas[-1] != state:
            self._schemas.append(state)

    def _queue(self, state: StateId) -> TimerQueue:
        queue = self._timers.get((state.uid, state.name))
        if queue is None:
            header, event_time = self._header.operator(state.uid), state.name == EVENT_TIMERS
            coarse = header.event_timers if event_time else header.processing_timers
            queue = TimerQueue(timer_prefix(state.uid, event_time), self._store, coarse)
            self._timers[state.uid, state.name] = queue
        return queue

    # State without keys

    def _operator(self, uid: str) -> OperatorState:
        if uid not in self._operators:
            self._operators[uid] = OperatorState(uid)
            self._operators[uid].begin(self._store, self._header.operator(uid).lists)
        return self._operators[uid]

    def _into_operator(self, chunk: StateChunk) -> None:
        state, own = chunk.state, self._operator(chunk.state.uid)
        if state.kind == "raw":
            self._raw.setdefault(state.uid, []).extend(chunk.contents)
        elif state.kind == "broadcast":
            broadcast = own.get_broadcast_state(MapStateDescriptor(state.name, *state.schema.columns))
            broadcast.put_all(dict(chunk.contents))
        else:
            descriptor = ListStateDescriptor(state.name, *state.schema.columns)
            union = state.kind == "union"
            kept = own.get_union_list_state(descriptor) if union else own.get_list_state(descriptor)
            if chunk.instead:
                kept.clear()
            kept.add_all(chunk.contents)

    # The end

    def finish(self) -> None:
        """Writes what is still in memory, and what the program's states will be compared with."""
        for backend in self._backends.values():
            self._store.write(backend.changes())
        for queue in self._timers.values():
            self._store.write(queue.changes())
        for uid, pieces in self._raw.items():
            self._operators[uid].restore_raw(pieces)
        for own in self._operators.values():
            self._store.write(own.changes())
        for state in self._schemas:
            self._tables(state).states[state.name].schema = state.schema
