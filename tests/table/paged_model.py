"""One operator with keyed state, run as a job runs it: in several subtasks, batch after batch, some of which fail and
are done again, with restarts and savepoints in between."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from operatorkit import Change, Stub

from firesteel.common import Row
from firesteel.datastream.operators import Records, StreamOperator
from firesteel.durable.cells import HEADER
from firesteel.durable.header_codec import decode_header, encode_header
from firesteel.runtime.columns.routing import key_groups, row_hashes, subtasks_by_group
from firesteel.runtime.keys import DEFAULT_MAX_PARALLELISM, KeyRoutes
from firesteel.runtime.snapshots.reading import StoredSubtask
from firesteel.runtime.snapshots.restoring import Restorer
from firesteel.runtime.snapshots.saved import StateChunk
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.state.tables import TableFactory

UID = "operator"


class BrokenStore(MemoryStore):
    """A store that fails after so many cells."""

    def __init__(self, content: dict[bytes, bytes], cells: int) -> None:
        super().__init__(content)
        self._left = cells

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        super().write(self._counted(changes))

    def _counted(self, changes: Iterable[tuple[bytes, bytes | None]]) -> Iterator[tuple[bytes, bytes | None]]:
        for change in changes:
            self._left -= 1
            if self._left < 0:
                raise OSError("the disk is full")
            yield change


class Context(Stub):
    """The context of an operator whose state a backend keeps."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        super().__init__(MemoryStore(), {})
        self._of_keys = backend

    def keep_columns(self, name: str, table: Any, paged: bool = False) -> None:
        self.tables[name] = table
        self._of_keys.columns(name, table, paged)

    def pieces(self, batch: pa.RecordBatch, keys: Sequence[int], before_release: Any = None) -> Any:
        return self._of_keys.pieces(batch, [batch.column(key) for key in keys], before_release)


@dataclass(frozen=True)
class Part:
    """Rows that one input has in a batch."""

    batch: pa.RecordBatch
    keys: tuple[int, ...]
    input: int = 0


class Subtask:
    """One subtask, and what the last committed batch has left of it."""

    def __init__(self, operator: type[StreamOperator[Any]], spec: Any, factory: TableFactory) -> None:
        self._class, self._spec, self._factory = operator, spec, factory
        self.content: dict[bytes, bytes] = {}
        self.restored: list[StateChunk] = []
        self._backend: KeyedStateBackend | None = None
        self._token: bytes | None = None
        self.tables: dict[str, Any] = {}

    def forget(self, factory: TableFactory) -> None:
        """A new process goes on."""
        self._backend = self._token = None
        self._factory = factory

    def attempt(self, parts: Sequence[Part], now: int, at_random: random.Random | None, token: bytes) -> list[Change]:
        """Runs a batch. With ``at_random`` it fails somewhere, and nothing of it stays."""
        content = dict(self.content)
        cells = 10**9 if at_random is None else at_random.choice([0, 1, 2, 5, 20])
        late = at_random is not None and at_random.random() < 0.5
        store = BrokenStore(content, cells) if late else MemoryStore(content)
        header = decode_header(content.get(HEADER))
        if self.restored:
            restorer = Restorer(MemoryStore(content), header, self._factory, now)
            for chunk in self.restored:
                restorer.take(chunk)
            restorer.finish()
        unchanged = header.token is not None and header.token == self._token
        self._token = None
        if self._backend is None:
            self._backend = KeyedStateBackend(UID, self._factory)
            self._context = Context(self._backend)
            self._context.now = now
            self._backend.begin(store, header.operator(UID).tables)
            self._operator = self._class(self._spec)
            self._operator.context = self._context  # type: ignore[assignment]
            self._operator.open(self._context)  # type: ignore[arg-type]
            self.tables = self._context.tables
        else:
            self._backend.begin(store, header.operator(UID).tables, unchanged)
        self._context.now = now
        stop = len(parts) if at_random is None or late else at_random.randrange(len(parts) + 1)
        for part in parts[:stop]:
            self._operator.process(Records([part.batch], input=part.input))
        if at_random is not None and not late:
            raise OSError("killed")
        self._operator.end_batch()
        store.write(self._backend.changes())
        if at_random is not None:
            raise OSError("killed before the header")
        store.write([(HEADER, encode_header(replace(header, token=token)))])
        self.content, self._token, self.restored = content, token, []
        found = self._context.changes()
        self._context.emitted.clear()
        return found

    @property
    def unknown_bytes(self) -> int:
        """How much more is in the store than the tables say."""
        states = decode_header(self.content[HEADER]).operator(UID).tables.states.values()
        known = sum(shape.get("bytes", 0) for state in states for shape in state.shapes.values())
        return sum(len(cell) for key, cell in self.content.items() if key != HEADER) - known

    def drop(self) -> None:
        """After a failure: a task whose attempt did not end is thrown away."""
        self._backend = self._token = None


class Job:
    """All subtasks of the operator."""

    def __init__(self, operator: type[StreamOperator[Any]], spec: Any, factory: TableFactory, parallelism: int) -> None:
        self._make = lambda factory: Subtask(operator, spec, factory)
        self.batches = 0
        self._start(factory, parallelism)

    def _start(self, factory: TableFactory, parallelism: int) -> None:
        self.subtasks = [self._make(factory) for _ in range(parallelism)]
        self._lanes = subtasks_by_group(DEFAULT_MAX_PARALLELISM, parallelism)

    def batch(
        self, parts: Sequence[Part], now: int, failing: random.Random | None = None, failures: int = 0
    ) -> list[Change]:
        """Runs a batch. With ``failing``, each subtask fails so many times before it succeeds."""
        self.batches += 1
        found: list[Change] = []
        for number, subtask in enumerate(self.subtasks):
            own = [replace(part, batch=rows) for part in parts if (rows := self._share(part, number)).num_rows]
            for attempt in range(failures):
                assert failing is not None
                if failing.random() < 0.3:
                    # The task succeeds, and another one of its batch does not.
                    before = subtask.content, subtask.restored
                    subtask.attempt(own, now, None, b"not committed")
                    subtask.content, subtask.restored = before
                    continue
                try:
                    subtask.attempt(own, now, failing, b"failed %d" % attempt)
                except OSError:
                    subtask.drop()
                else:
                    raise AssertionError("the attempt did not fail")
            found += subtask.attempt(own, now, None, b"%d" % self.batches)
        return found

    def _share(self, part: Part, number: int) -> pa.RecordBatch:
        hashes = row_hashes([part.batch.column(key) for key in part.keys], part.batch.num_rows)
        own = self._lanes[key_groups(hashes, DEFAULT_MAX_PARALLELISM)] == number
        return part.batch.filter(pa.array(own))

    def restart(self, factory: TableFactory) -> None:
        """New processes go on with the same stores, perhaps with other settings."""
        for subtask in self.subtasks:
            subtask.forget(factory)

    def stored(self) -> dict[str, dict[Any, Any]]:
        """All rows of all states."""
        found: dict[str, dict[Any, Any]] = {}
        for subtask in self.subtasks:
            if HEADER not in subtask.content:
                continue
            assert subtask.unknown_bytes == 0, "the store has what nobody knows of"
            for state, rows in StoredSubtask(MemoryStore(dict(subtask.content))).states(UID):
                known = found.setdefault(state.name, {})
                for places, contents in rows:
                    assert len(places) == len(contents)
                    for place, content in zip(map(comparable, places), map(comparable, contents), strict=True):
                        assert place not in known, f"{state.name}: {place} is there twice"
                        known[place] = content
        return found

    def rescale(self, factory: TableFactory, parallelism: int) -> None:
        """A savepoint, and a job that begins with it."""
        chunks: list[StateChunk] = []
        for subtask in self.subtasks:
            if HEADER in subtask.content:
                for state, rows in StoredSubtask(MemoryStore(dict(subtask.content))).states(UID):
                    chunks += [StateChunk(state, places, contents) for places, contents in rows]
        routes = KeyRoutes(parallelism, DEFAULT_MAX_PARALLELISM)
        self._start(factory, parallelism)
        for chunk in chunks:
            targets = routes.of(chunk.state.user_keys(chunk.places))
            for number in set(targets):
                own = [at for at, target in enumerate(targets) if target == number]
                places, contents = [chunk.places[at] for at in own], [chunk.contents[at] for at in own]
                self.subtasks[number].restored.append(StateChunk(chunk.state, places, contents))


def comparable(value: Any) -> Any:
    """The same with one NaN, and with tuples for lists and dicts."""
    if isinstance(value, float):
        return "NaN" if value != value else value
    if isinstance(value, Row | list | tuple):
        return tuple(map(comparable, value))
    if isinstance(value, dict):
        return tuple((key, comparable(part)) for key, part in value.items())
    return value
