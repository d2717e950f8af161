"""Every kind of state against a plain dict or list, on both backends, through restarts and short memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Types
from firesteel.common.time import Time
from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.durable.headers import TablesHeader
from firesteel.errors import ProgramError
from firesteel.runtime.state import lists, maps, pages
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables
from firesteel.runtime.state.store import MemoryStore
from firesteel.runtime.state.tables import TableFactory

BLOCK, SMALL_MAP, PER_BLOCK = lists.BLOCK, maps.SMALL_MAP, maps.PER_BLOCK
BACKENDS: dict[str, TableFactory] = {
    "hashmap": HashMapTables(),
    "rocksdb": RocksDBTables(),
    "rocksdb with pages": RocksDBTables(resident=False),
    "rocksdb without memory": RocksDBTables(memory=0),
}


@pytest.fixture(params=list(BACKENDS))
def tables(request: pytest.FixtureRequest) -> TableFactory:
    return BACKENDS[request.param]


class CountingStore(MemoryStore):
    read = written = 0

    def get_many(self, keys: Any) -> list[bytes | None]:
        found = super().get_many(keys)
        self.read += sum(len(cell or b"") for cell in found)
        return found

    def write(self, changes: Any) -> None:
        listed = list(changes)
        self.written += sum(len(cell or b"") for _, cell in listed)
        super().write(listed)


class Subtask:
    """A backend with one state over several batches."""

    def __init__(self, tables: TableFactory, descriptor: StateDescriptor) -> None:
        self._tables, self._descriptor = tables, descriptor
        self.store, self.header = CountingStore(), TablesHeader()
        self.now = 0
        self.restart()

    def restart(self) -> None:
        """All that was in memory is gone."""
        self.backend = KeyedStateBackend("uid", self._tables)
        self.state = self.backend.state(self._descriptor)
        self._fresh = True

    def batch(self, *calls: tuple[Any, Callable[[Any], Any]]) -> list[Any]:
        """Calls each function with the state under its key."""
        self.backend.clock.processing_time = self.now
        self.backend.begin(self.store, self.header, unchanged=not self._fresh)
        self._fresh = False
        found = []
        for key, call in calls:
            self.backend.prepare([key])
            self.backend.key = key
            found.append(call(self.state))
        self.store.write(self.backend.changes())
        return found


class Mean(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        # In place, as users do.
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


LIST = ListStateDescriptor("list", Types.INT())
MAP = MapStateDescriptor("map", Types.PICKLED_BYTE_ARRAY(), Types.INT())


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """A few elements are enough to make a collection big."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "BLOCK", 4)
        patch.setattr(maps, "SMALL_MAP", 4)
        patch.setattr(maps, "PER_BLOCK", 2)
        patch.setattr(pages, "SMALL_PAGE", 2)
        yield


# Against a model

LIST_OPS = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 9)),
    st.tuples(st.just("add_all"), st.lists(st.integers(0, 9), max_size=12)),
    st.tuples(st.just("update"), st.lists(st.integers(0, 9), max_size=12)),
    st.tuples(st.just("clear")),
)
MAP_KEYS = st.one_of(st.integers(0, 12), st.sampled_from(["a", "b", (1, "c"), None]))
MAP_OPS = st.one_of(
    st.tuples(st.just("put"), MAP_KEYS, st.integers(0, 9)),
    st.tuples(st.just("put"), MAP_KEYS, st.integers(0, 9)),
    st.tuples(st.just("put_all"), st.dictionaries(MAP_KEYS, st.integers(0, 9), max_size=8)),
    st.tuples(st.just("remove"), MAP_KEYS),
    st.tuples(st.just("clear")),
)
STEPS = st.tuples(st.sampled_from("xyz"), st.booleans(), st.booleans())


def steps(ops: Any) -> Any:
    return st.lists(st.tuples(STEPS, ops), max_size=40)


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=80, deadline=None)
@given(steps(LIST_OPS))
def test_a_list_state_is_a_list(name: str, program: Any) -> None:
    subtask, model = Subtask(BACKENDS[name], LIST), dict[str, list[int]]()
    batch: list[Any] = []
    for (key, restart, end), (op, *arguments) in program:
        known = model.setdefault(key, [])
        if op == "add":
            known.append(arguments[0])
        elif op == "add_all":
            known.extend(arguments[0])
        else:
            model[key] = list(*arguments)
        batch.append((key, lambda state, op=op, arguments=arguments: getattr(state, op)(*arguments)))
        batch.append((key, lambda state: list(state.get())))
        if end or restart:
            assert subtask.batch(*batch)[-1] == model[key]
            batch = []
        if restart:
            subtask.restart()
    subtask.batch(*batch)
    subtask.restart()
    assert subtask.batch(*((key, lambda state: list(state.get())) for key in model)) == list(model.values())


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=80, deadline=None)
@given(steps(MAP_OPS))
def test_a_map_state_is_a_dict(name: str, program: Any) -> None:
    subtask, model = Subtask(BACKENDS[name], MAP), dict[str, dict[Any, int]]()
    batch: list[Any] = []

    def seen(state: Any) -> Any:
        entries = dict(state.items())
        assert set(state.keys()) == set(entries) == set(state)
        assert sorted(state.values()) == sorted(entries.values())
        assert state.is_empty() == (not entries)
        assert {key: state.get(key) for key in entries} == entries
        assert not state.contains("nowhere")
        assert state.get("nowhere") is None
        return entries

    for (key, restart, end), (op, *arguments) in program:
        known = model.setdefault(key, {})
        if op == "put":
            known[arguments[0]] = arguments[1]
        elif op == "put_all":
            known.update(arguments[0])
        elif op == "remove":
            known.pop(arguments[0], None)
        else:
            known.clear()
        batch.append((key, lambda state, op=op, arguments=arguments: getattr(state, op)(*arguments)))
        batch.append((key, seen))
        if end or restart:
            assert subtask.batch(*batch)[-1] == known
            batch = []
        if restart:
            subtask.restart()
    subtask.batch(*batch)
    subtask.restart()
    assert subtask.batch(*((key, seen) for key in model)) == list(model.values())
    # What was cleared leaves nothing in the store.
    subtask.batch(*((key, lambda state: state.clear()) for key in model))
    assert subtask.store.content == {}


# One by one


def test_reducing_and_aggregating(tables: TableFactory) -> None:
    largest = Subtask(tables, ReducingStateDescriptor("max", max, Types.INT()))
    mean = Subtask(tables, AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY()))
    for subtask in (largest, mean):
        assert subtask.batch(("a", lambda state: state.get())) == [None]
        subtask.batch(*(("a", lambda state, n=n: state.add(n)) for n in (3, 7, 2)), ("b", lambda state: state.add(1)))
        subtask.restart()
    assert largest.batch(("a", lambda s: s.get()), ("b", lambda s: s.get()), ("c", lambda s: s.get())) == [7, 1, None]
    assert mean.batch(("a", lambda s: s.get()), ("b", lambda s: s.get()), ("c", lambda s: s.get())) == [4.0, 1.0, None]
    assert mean.batch(("a", lambda s: s.clear()), ("a", lambda s: s.get())) == [None, None]


def test_a_map_may_be_changed_while_it_is_read(tables: TableFactory) -> None:
    subtask = Subtask(tables, MAP)

    def double(state: Any) -> list[Any]:
        met = []
        for key, value in state.items():
            # As anywhere, what is added meanwhile may or may not be met in a big map.
            if key < 1000:
                met.append(key)
                state.put(key + 1000, value)
                state.remove(key)
        return met

    for size in (3, 40):
        subtask.batch(*(("a", lambda state, n=n: state.put(n, n)) for n in range(size)))
        ((*met,), left) = subtask.batch(("a", double), ("a", lambda state: dict(state.items())))
        assert sorted(met) == list(range(size))
        assert left == {n + 1000: n for n in range(size)}
        subtask.batch(("a", lambda state: state.clear()))


def test_a_list_may_grow_while_it_is_read(tables: TableFactory) -> None:
    subtask = Subtask(tables, LIST)
    for size in (3, 40):
        subtask.batch(("a", lambda state, size=size: state.update(list(range(size)))))
        met, left = subtask.batch(
            ("a", lambda state: [state.add(n) or n for n in state.get()]), ("a", lambda state: list(state.get()))
        )
        assert met == list(range(size))
        assert left == [*range(size), *range(size)]


@pytest.mark.parametrize("descriptor", [LIST, MAP], ids=["list", "map"])
def test_a_touch_of_a_big_collection_costs_a_touch(
    tables: TableFactory, descriptor: StateDescriptor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "BLOCK", 256)
    monkeypatch.setattr(maps, "SMALL_MAP", 256)
    monkeypatch.setattr(maps, "PER_BLOCK", 64)
    subtask = Subtask(tables, descriptor)
    touch = (lambda s, n: s.add(n)) if descriptor is LIST else (lambda s, n: s.put(n, n))
    fill = (lambda s: s.update(list(range(100_000)))) if descriptor is LIST else None
    if fill is None:
        subtask.batch(*(("a", lambda state, n=n: state.put(n, n)) for n in range(20_000)))
    else:
        subtask.batch(("a", fill))
    for batch in range(5):
        subtask.store.read = subtask.store.written = 0
        subtask.batch(("a", lambda state, batch=batch: touch(state, 1_000_000 + batch)))
        # A block or two, not the hundreds of kilobytes of the whole.
        assert subtask.store.read + subtask.store.written < 20_000


@pytest.mark.parametrize("descriptor", [LIST, MAP], ids=["list", "map"])
def test_many_elements_of_one_key(descriptor: StateDescriptor, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the blocks that jobs have: a touch reads and writes a block, and iterating reads as far as it gets."""
    for module, name, size in ((lists, "BLOCK", BLOCK), (maps, "SMALL_MAP", SMALL_MAP), (maps, "PER_BLOCK", PER_BLOCK)):
        monkeypatch.setattr(module, name, size)
    subtask = Subtask(RocksDBTables(), descriptor)
    many = 1_000_000 if descriptor is LIST else 100_000
    if descriptor is LIST:
        subtask.batch(("a", lambda state: state.update(range(many))))
    else:
        subtask.batch(("a", lambda state: state.put_all(dict.fromkeys(range(many), 1))))
    whole = subtask.store.written
    touch = (lambda s: s.add(7)) if descriptor is LIST else (lambda s: s.put(7, 7))
    for call in (touch, lambda state: list(itertools.islice(state, 100))):
        subtask.restart()
        subtask.store.read = subtask.store.written = 0
        subtask.batch(("a", call))
        assert subtask.store.read + subtask.store.written < whole / 50


def test_keys_do_not_share_and_none_is_a_key(tables: TableFactory) -> None:
    subtask = Subtask(tables, ValueStateDescriptor("v", Types.STRING()))
    keys = [None, "a", 1, (1, "a")]
    subtask.batch(*((key, lambda state, key=key: state.update(repr(key))) for key in keys))
    subtask.restart()
    assert subtask.batch(*((key, lambda state: state.value()) for key in keys)) == [repr(key) for key in keys]


# What is refused


def test_state_without_a_current_key_says_so(tables: TableFactory) -> None:
    subtask = Subtask(tables, LIST)
    for use in (lambda: subtask.state.get(), lambda: subtask.state.add(1), lambda: subtask.state.clear()):
        with pytest.raises(ProgramError, match="there is no current key"):
            use()
    subtask.batch(("a", lambda state: state.add(1)))
    with pytest.raises(ProgramError, match="there is no current key"):
        subtask.state.get()


@pytest.mark.parametrize(
    ("descriptor", "call", "message"),
    [
        (LIST, lambda s: s.add("x"), "State 'list', element 'x'"),
        (LIST, lambda s: s.add(None), "None cannot be an element"),
        (LIST, lambda s: s.add_all([1, "x"]), "State 'list', element 'x'"),
        (LIST, lambda s: s.update(None), "takes a list of elements"),
        (MAP, lambda s: s.put(1, "x"), "State 'map', a value"),
        (MAP, lambda s: s.put_all([1]), r"put_all\(\) takes a dict, got list"),
        (MapStateDescriptor("map", Types.INT(), Types.INT()), lambda s: s.put("x", 1), "State 'map', a key"),
        (ReducingStateDescriptor("r", max, Types.INT()), lambda s: s.add("x"), "State 'r'"),
        (AggregatingStateDescriptor("g", Mean(), Types.INT()), lambda s: s.add(1), "accumulator"),
    ],
)
def test_what_does_not_fit_is_refused(descriptor: StateDescriptor, call: Any, message: str) -> None:
    subtask = Subtask(HashMapTables(), descriptor)
    with pytest.raises(ProgramError, match=message):
        subtask.batch(("a", call))


def test_one_name_is_one_kind_and_type() -> None:
    backend = KeyedStateBackend("uid")
    assert backend.state(LIST) is backend.state(ListStateDescriptor("list", Types.INT()))
    with pytest.raises(ProgramError, match=r"list state of LIST<INT> and value state of INT"):
        backend.state(ValueStateDescriptor("list", Types.INT()))


def test_a_type_that_changed_since_it_was_saved_is_refused(tables: TableFactory) -> None:
    subtask = Subtask(tables, ValueStateDescriptor("v", Types.INT()))
    subtask.batch(("a", lambda state: state.update(1)))
    later = Subtask(tables, ValueStateDescriptor("v", Types.STRING()))
    later.store, later.header = subtask.store, subtask.header
    with pytest.raises(ProgramError, match="what was saved of it is value state of INT"):
        later.batch(("a", lambda state: state.value()))


# Time to live


def expiring(descriptor: StateDescriptor, *settings: str) -> StateDescriptor:
    builder = StateTtlConfig.new_builder(Time.milliseconds(100))
    for setting in settings:
        builder = getattr(builder, setting)()
    descriptor.enable_time_to_live(builder.build())
    return descriptor


def value(*settings: str) -> StateDescriptor:
    return expiring(ValueStateDescriptor("v", Types.INT()), *settings)


def test_a_value_expires_after_its_last_write(tables: TableFactory) -> None:
    subtask = Subtask(tables, value("disable_cleanup_in_background"))
    subtask.batch(("a", lambda s: s.update(1)))
    for now, expected in ((99, 1), (100, None)):
        subtask.now = now
        assert subtask.batch(("a", lambda s: s.value())) == [expected]
    subtask.batch(("a", lambda s: s.update(2)))
    subtask.now = 199
    subtask.restart()
    assert subtask.batch(("a", lambda s: s.value())) == [2]


def test_reading_prolongs_if_asked(tables: TableFactory) -> None:
    subtask = Subtask(tables, value("update_ttl_on_read_and_write"))
    subtask.batch(("a", lambda s: s.update(1)))
    for subtask.now in (60, 120, 180, 240):
        assert subtask.batch(("a", lambda s: s.value())) == [1]
    subtask.now = 340
    assert subtask.batch(("a", lambda s: s.value())) == [None]


def test_an_expired_value_may_be_seen_once(tables: TableFactory) -> None:
    subtask = Subtask(tables, value("return_expired_if_not_cleaned_up", "disable_cleanup_in_background"))
    subtask.batch(("a", lambda s: s.update(1)))
    subtask.now = 500
    assert subtask.batch(("a", lambda s: s.value()), ("a", lambda s: s.value())) == [1, None]


@pytest.mark.parametrize("size", [2, 20])
@pytest.mark.parametrize("background", [True, False])
def test_list_elements_expire_one_by_one(tables: TableFactory, size: int, background: bool) -> None:
    settings = () if background else ("disable_cleanup_in_background",)
    subtask = Subtask(tables, expiring(ListStateDescriptor("l", Types.INT()), *settings))
    subtask.batch(("a", lambda s: s.add_all(list(range(size)))))
    subtask.now = 50
    subtask.batch(("a", lambda s: s.add(77)))
    subtask.now = 120
    assert subtask.batch(("a", lambda s: list(s.get()))) == [[77]]
    subtask.now = 200
    subtask.restart()
    assert subtask.batch(("a", lambda s: list(s.get()))) == [[]]
    assert subtask.store.content == {}


@pytest.mark.parametrize("size", [2, 20])
@pytest.mark.parametrize("background", [True, False])
def test_map_entries_expire_one_by_one(tables: TableFactory, size: int, background: bool) -> None:
    settings = () if background else ("disable_cleanup_in_background",)
    subtask = Subtask(tables, expiring(MapStateDescriptor("m", Types.INT(), Types.INT()), *settings))
    subtask.batch(("a", lambda s: s.put_all({n: n for n in range(size)})))
    subtask.now = 50
    subtask.batch(("a", lambda s: s.put(0, -1)), ("a", lambda s: s.put(size, size)))
    subtask.now = 120
    subtask.restart()
    for look in (lambda s: dict(s.items()), lambda s: {k: s.get(k) for k in range(size + 1) if s.contains(k)}):
        assert subtask.batch(("a", look)) == [{0: -1, size: size}]
    subtask.now = 200
    assert subtask.batch(("a", lambda s: s.is_empty())) == [True]
    assert subtask.store.content == {}


def test_what_is_added_to_something_expired_starts_anew(tables: TableFactory) -> None:
    total = Subtask(tables, expiring(ReducingStateDescriptor("r", lambda a, b: a + b, Types.INT())))
    mean = Subtask(tables, expiring(AggregatingStateDescriptor("m", Mean(), Types.PICKLED_BYTE_ARRAY())))
    for subtask in (total, mean):
        subtask.batch(("a", lambda s: s.add(10)), ("a", lambda s: s.add(20)))
        subtask.now = 100
    assert total.batch(("a", lambda s: s.add(1)), ("a", lambda s: s.get())) == [None, 1]
    assert mean.batch(("a", lambda s: s.add(1)), ("a", lambda s: s.get())) == [None, 1.0]


@pytest.mark.parametrize("kind", ["value", "list", "map"])
def test_nobody_need_read_what_expired(tables: TableFactory, kind: str) -> None:
    descriptor, put = {
        "value": (value(), lambda s: s.update(1)),
        "list": (expiring(ListStateDescriptor("l", Types.INT())), lambda s: s.update(list(range(10)))),
        "map": (
            expiring(MapStateDescriptor("m", Types.INT(), Types.INT())),
            lambda s: s.put_all({n: n for n in range(3)}),
        ),
    }[kind]
    subtask = Subtask(tables, descriptor)
    subtask.batch(*((n, put) for n in range(200)))
    full = sum(map(len, subtask.store.content.values()))
    subtask.now = 100
    for round_ in range(300):
        subtask.batch((1000 + round_ % 2, put))
        subtask.now += 1
    subtask.restart()
    subtask.batch(*((n, lambda s: None) for n in range(200)))
    if tables in (HashMapTables(), RocksDBTables()):
        # The store holds a few segments of the log; what counts is what they amount to.
        assert {key for key, entry in subtask.state.live.items() if entry[0] is not None} == {1000, 1001}
    else:
        assert sum(map(len, subtask.store.content.values())) < full / 10


def test_a_snapshot_leaves_out_what_expired() -> None:
    descriptor = value("cleanup_full_snapshot", "disable_cleanup_in_background")
    subtask = Subtask(HashMapTables(), descriptor)
    subtask.batch(*((n, lambda s: s.update(1)) for n in range(50)))
    subtask.now = 100
    subtask.batch(("new", lambda s: s.update(1)))
    assert len(subtask.state.live) == 51
    subtask.restart()
    subtask.batch(("new", lambda s: s.value()))
    assert set(subtask.state.live) == {"new"}
