"""Faults that the runtime's state once had."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.common.time import Time
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from firesteel.durable.headers import ListHeader, TablesHeader
from firesteel.errors import CheckpointError, FailureKind, ProgramError
from firesteel.runtime.state import pages
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables
from firesteel.runtime.state.operator import OperatorState
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.state.tables import TableFactory


def test_removing_a_broadcast_entry_without_a_value_is_saved() -> None:
    rules = MapStateDescriptor("rules", Types.STRING(), Types.PICKLED_BYTE_ARRAY())
    store, header = MemoryStore(), dict[str, ListHeader]()
    state = OperatorState("uid")
    state.begin(store, header)
    state.get_broadcast_state(rules).put_all({"a": None, "b": 1})
    store.write(state.changes())
    state.begin(store, header)
    state.get_broadcast_state(rules).remove("a")
    store.write(state.changes())

    later = OperatorState("uid")
    later.begin(store, header)
    assert dict(later.get_broadcast_state(rules).items()) == {"b": 1}


@pytest.mark.parametrize("tables", [HashMapTables(), RocksDBTables()], ids=["hashmap", "rocksdb"])
def test_a_big_map_that_expired_leaves_nothing_in_the_store(tables: TableFactory) -> None:
    descriptor = MapStateDescriptor("seen", Types.LONG(), Types.LONG())
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    store, header = MemoryStore(), TablesHeader()
    backend = KeyedStateBackend("uid", tables)
    seen = backend.state(descriptor)
    backend.begin(store, header)
    backend.prepare(["k"])
    backend.key = "k"
    seen.put_all(dict.fromkeys(range(1000), 1))
    store.write(backend.changes())
    backend.clock.processing_time = 10_000
    for _ in range(100):
        backend.begin(store, header, unchanged=True)
        backend.prepare(["other"])
        store.write(backend.changes())
    assert not store.content


def test_all_keys_are_visited_though_the_table_grows_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 2000)
    monkeypatch.setattr(pages, "_READ_AT_ONCE", 16)
    descriptor = ValueStateDescriptor("kept", Types.PICKLED_BYTE_ARRAY())
    store, header = MemoryStore(), TablesHeader()
    backend = KeyedStateBackend("uid", RocksDBTables(memory=0))
    kept = backend.state(descriptor)
    for start in range(0, 4000, 10):
        backend.begin(store, header)
        backend.prepare(range(start, start + 10))
        for backend.key in range(start, start + 10):
            kept.update(1)
        store.write(backend.changes())
    for _ in range(2):
        # The first round makes the values large, the second lets the pages become smaller.
        visited: Counter[int] = Counter()

        def enlarge(key: int, state: Any, visited: Counter[int] = visited) -> None:
            visited[key] += 1
            state.update(bytes([key % 251]) * 100)

        backend.begin(store, header)
        backend.apply(descriptor, enlarge)
        store.write(backend.changes())
        assert visited == Counter(range(4000))


@pytest.mark.parametrize(
    "tables", [HashMapTables(), RocksDBTables(), RocksDBTables(memory=0)], ids=["hashmap", "rocksdb", "rocksdb, tight"]
)
def test_damaged_state_is_told_as_such(tables: TableFactory) -> None:
    """A restart would find it damaged again."""
    descriptor = ValueStateDescriptor("kept", Types.LONG())
    store, header = MemoryStore(), TablesHeader()
    first = KeyedStateBackend("uid", tables)
    kept = first.state(descriptor)
    first.begin(store, header)
    first.prepare(["k"])
    first.key = "k"
    kept.update(7)
    store.write(first.changes())
    store.content = dict.fromkeys(store.content, b"damaged")

    def read_again() -> None:
        second = KeyedStateBackend("uid", tables)
        second.state(descriptor)
        second.begin(store, header)
        second.prepare(["k"])

    with pytest.raises(CheckpointError, match=r"stored state .* cannot be read \(UnpicklingError: ") as caught:
        read_again()
    assert caught.value.kind is FailureKind.PERMANENT


def test_damaged_operator_state_is_told_as_such() -> None:
    seen, store, header = ListStateDescriptor("seen", Types.LONG()), MemoryStore(), dict[str, ListHeader]()
    state = OperatorState("uid")
    state.begin(store, header)
    state.get_list_state(seen).add(1)
    store.write(state.changes())
    store.content = dict.fromkeys(store.content, b"damaged")
    later = OperatorState("uid")
    later.begin(store, header)
    with pytest.raises(CheckpointError, match="The stored state 'seen' cannot be read"):
        later.get_list_state(seen)


@pytest.mark.parametrize(
    ("before", "after"),
    [(HashMapTables(), RocksDBTables()), (RocksDBTables(), HashMapTables())],
    ids=["to rocksdb", "to hashmap"],
)
def test_state_does_not_vanish_silently_when_the_backend_changes(before: TableFactory, after: TableFactory) -> None:
    descriptor = ValueStateDescriptor("kept", Types.LONG())
    store, header = MemoryStore(), TablesHeader()
    first = KeyedStateBackend("uid", before)
    kept = first.state(descriptor)
    first.begin(store, header)
    first.prepare(["k"])
    first.key = "k"
    kept.update(7)
    store.write(first.changes())

    second = KeyedStateBackend("uid", after)
    second.state(descriptor)
    with pytest.raises(ProgramError, match="was saved by another state backend"):
        second.begin(store, header)
