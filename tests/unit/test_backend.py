"""Keyed state between batches: what is kept in memory, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Types
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.store import MemoryStore


class CountingStore(MemoryStore):
    read = 0

    def get_many(self, keys: Any) -> list[bytes | None]:
        self.read += len(keys)
        return super().get_many(keys)


class Batches:
    """A backend over several batches."""

    def __init__(self, cache_entries: int) -> None:
        self.backend = KeyedStateBackend("uid", cache_entries)
        self.store, self.header = CountingStore(), dict[str, Any]()
        self.state = self.backend.value_state(ValueStateDescriptor("count", Types.INT()))

    def batch(self, keys: list[Any], change: Any, unchanged: bool = True) -> list[Any]:
        """Calls ``change`` for each key; gives back what the state held before."""
        self.store.read = 0
        self.backend.begin(self.store, self.header, unchanged)
        self.backend.prepare(keys)
        found = []
        for key in keys:
            self.backend.key = key
            found.append(self.state.value())
            change(self.state)
        self.store.write(self.backend.changes())
        return found


def put(value: int) -> Any:
    return lambda state: state.update(value)


def test_what_is_in_memory_is_not_read_again() -> None:
    batches = Batches(cache_entries=100)
    batches.batch(["a", "b"], put(1), unchanged=False)
    assert batches.batch(["a", "b"], put(2)) == [1, 1]
    assert batches.store.read == 0


@pytest.mark.parametrize("cache_entries", [0, 100])
def test_a_store_that_changed_is_read(cache_entries: int) -> None:
    batches = Batches(cache_entries)
    batches.batch(["a"], put(1), unchanged=False)
    before = dict(batches.store.content)
    batches.batch(["a"], put(2))
    # The second batch was not committed.
    batches.store.content = before
    assert batches.batch(["a"], put(3), unchanged=False) == [1]
    assert batches.store.read == 1


def test_without_a_cache_every_batch_reads() -> None:
    batches = Batches(cache_entries=0)
    batches.batch(["a"], put(1), unchanged=False)
    assert batches.batch(["a"], put(2)) == [1]
    assert batches.store.read == 1


def test_memory_is_let_go_when_there_is_more_than_allowed() -> None:
    batches = Batches(cache_entries=100)
    for start in range(0, 1000, 50):
        batches.batch([f"key-{start + n}" for n in range(50)], put(1))
        assert len(batches.backend.ready) <= 100
    assert batches.batch(["key-0", "key-999"], put(2)) == [1, 1]


def test_keys_without_state_do_not_pile_up() -> None:
    """Keys that come once and leave nothing, as users of a web site do."""
    batches = Batches(cache_entries=100)
    for start in range(0, 1000, 50):
        batches.batch([f"key-{start + n}" for n in range(50)], lambda state: state.clear())
        assert len(batches.backend.ready) <= 100
        assert all(table.held <= 100 for table in batches.backend._tables.values())


def test_a_key_that_is_forgotten_leaves_no_trace() -> None:
    batches = Batches(cache_entries=100)
    batches.backend.begin(batches.store, batches.header)
    for number in range(50):
        batches.backend.prepare([number])
        batches.backend.key = number
        batches.state.update(1)
        batches.backend.forget(number)
    assert batches.backend.ready == set()
    assert all(table.held == 0 for table in batches.backend._tables.values())
    assert list(batches.backend.changes()) == []
