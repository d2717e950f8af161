"""Keyed state between batches: what is kept in memory, and for how long."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.durable.headers import TablesHeader
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.state.tables import TableFactory


class CountingStore(MemoryStore):
    read = written = 0

    def get_many(self, keys: Any) -> list[bytes | None]:
        self.read += len(keys)
        return super().get_many(keys)

    def write(self, changes: Any) -> None:
        listed = list(changes)
        self.written += len(listed)
        super().write(listed)


class Batches:
    """A backend over several batches."""

    def __init__(self, tables: TableFactory) -> None:
        self.backend = KeyedStateBackend("uid", tables)
        self.store, self.header = CountingStore(), TablesHeader()
        self.state = self.backend.state(ValueStateDescriptor("count", Types.INT()))

    def batch(self, keys: list[Any], change: Any, unchanged: bool = True, chunk: int = 1000) -> list[Any]:
        """Calls ``change`` for each key; gives back what the state releasable_bytes before."""
        self.store.read = self.store.written = 0
        self.backend.begin(self.store, self.header, unchanged)
        found = []
        for start in range(0, len(keys), chunk):
            piece = keys[start : start + chunk]
            self.backend.prepare(piece)
            for key in piece:
                self.backend.key = key
                found.append(self.state.value())
                change(self.state)
        self.store.write(self.backend.changes())
        return found

    @property
    def releasable_bytes(self) -> int:
        return len(self.state.live)


def put(value: int) -> Any:
    return lambda state: state.update(value)


BACKENDS = pytest.mark.parametrize("tables", [HashMapTables(), RocksDBTables(), RocksDBTables(0)], ids=str)


@pytest.mark.parametrize("tables", [HashMapTables(), RocksDBTables()], ids=str)
def test_what_is_in_memory_is_not_read_again(tables: TableFactory) -> None:
    batches = Batches(tables)
    batches.batch(["a", "b"], put(1), unchanged=False)
    assert batches.batch(["a", "b"], put(2)) == [1, 1]
    assert batches.store.read == 0


@BACKENDS
def test_a_store_that_changed_is_read(tables: TableFactory) -> None:
    batches = Batches(tables)
    batches.batch(["a"], put(1), unchanged=False)
    before = dict(batches.store.content)
    header = copy.deepcopy(batches.header)
    batches.batch(["a"], put(2))
    # The second batch was not committed.
    batches.store.content, batches.header = before, header
    assert batches.batch(["a"], put(3), unchanged=False) == [1]
    assert batches.store.read == 1


def test_without_memory_every_batch_reads() -> None:
    batches = Batches(RocksDBTables(0))
    batches.batch(["a"], put(1), unchanged=False)
    assert batches.releasable_bytes == 0
    assert batches.batch(["a"], put(2)) == [1]
    assert batches.store.read == 1


def test_memory_is_let_go_when_there_is_more_than_allowed() -> None:
    batches = Batches(RocksDBTables(50_000))
    for start in range(0, 1000, 50):
        batches.batch([f"key-{start + n}" for n in range(50)], put(1))
        assert batches.releasable_bytes <= 200
    assert batches.batch(["key-0", "key-999"], put(2)) == [1, 1]


def test_memory_is_let_go_within_a_batch_too() -> None:
    batches = Batches(RocksDBTables(50_000))
    most = 0

    def change(state: Any) -> None:
        nonlocal most
        most = max(most, batches.releasable_bytes)
        state.update(state.value() + 1 if state.value() else 1)

    keys = [f"key-{n}" for n in range(10_000)]
    batches.batch(keys + keys, change, chunk=50)
    # A chunk of fifty keys may need a page each.
    assert most <= 50_000 / 300 + 50 * 128
    assert batches.batch(keys, change, chunk=50) == [2] * 10_000


def test_keys_that_never_get_a_value_take_no_memory() -> None:
    batches = Batches(RocksDBTables(50_000))
    for start in range(0, 1000, 50):
        batches.batch([f"key-{start + n}" for n in range(50)], lambda state: state.clear())
        assert sum(table.releasable_bytes for table in batches.backend._tables.values()) <= 100_000


@BACKENDS
def test_a_key_that_is_forgotten_leaves_no_trace(tables: TableFactory) -> None:
    batches = Batches(tables)
    batches.backend.begin(batches.store, batches.header)
    for number in range(50):
        batches.backend.prepare([number])
        batches.backend.key = number
        batches.state.update(1)
        batches.backend.forget(number)
    assert batches.releasable_bytes == 0
    assert list(batches.backend.changes()) == []
