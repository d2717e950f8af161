"""A table that begins as a log and turns into pages behaves as a dict all the while."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.runtime.state.growing import GrowingTable, scan_growing
from firesteel.runtime.state.pages import LARGE_PAGE_OUTGROWN
from firesteel.runtime.state.store import MemoryStore

Shape = dict[str, Any]

KEYS = st.one_of(st.integers(0, 30), st.text(max_size=1))
STEPS = st.lists(
    st.one_of(
        st.dictionaries(KEYS, st.one_of(st.none(), st.integers()), max_size=20),
        st.sampled_from(["written within the batch", "short of memory", "committed", "failed", "restarted"]),
    ),
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.booleans())
def test_a_table_is_a_dict(steps: list[Any], fits: bool) -> None:
    store, shape = MemoryStore(), Shape()
    model: dict[Any, Any] = {}
    table = GrowingTable(b"t", store, shape, fits)
    committed = copy.deepcopy((store, shape, model))

    def end_of_batch() -> None:
        nonlocal committed
        store.write(table.changes())
        committed = copy.deepcopy((store, shape, model))

    for step in steps:
        live, dirty = table.live, table.dirty
        if step == "written within the batch":
            store.write(table.changes())
        elif step == "short of memory":
            store.write(table.changes())
            table.relieve()
        elif step == "committed":
            end_of_batch()
            table.reopen(store, shape)
        elif step == "failed":
            store, shape, model = copy.deepcopy(committed)
            table = GrowingTable(b"t", store, shape, fits)
            continue
        elif step == "restarted":
            end_of_batch()
            table = GrowingTable(b"t", store, shape, fits)
            continue
        else:
            table.load(step)
            for key, value in step.items():
                table.put(key, value)
                model.pop(key, None)
                if value is not None:
                    model[key] = value
        assert table.live is live
        assert table.dirty is dirty
        every = [*range(31), *model]
        assert dict(zip(every, table.peek(every), strict=True)) == {key: model.get(key) for key in every}
    end_of_batch()
    found = [pair for keys, values in scan_growing(b"t", store, shape) for pair in zip(keys, values, strict=True)]
    assert sorted(found, key=repr) == sorted(model.items(), key=repr)
    assert sorted((key for keys in table.every_key() for key in keys), key=repr) == sorted(model, key=repr)


def filled(entries: int) -> tuple[MemoryStore, Shape, GrowingTable]:
    store, shape = MemoryStore(), Shape()
    table = GrowingTable(b"t", store, shape)
    for key in range(entries):
        table.put(key, f"{key:0100d}")
    store.write(table.changes())
    return store, shape, table


def test_nothing_turns_while_there_is_memory() -> None:
    store, shape, table = filled(1000)
    table.relieve(keep=10**9)
    table.put(1, "y")
    store.write(table.changes())
    assert "pages" not in shape
    assert len(table.live) == 1000


def test_a_turn_leaves_nothing_behind_and_makes_no_large_pages() -> None:
    store, shape, table = filled(1000)
    before = set(store.content)
    table.relieve()
    store.write(table.changes())
    assert not before & set(store.content)
    assert "segments" not in shape
    assert shape["entries"] == 1000
    assert shape["pages"] >= 1000 / LARGE_PAGE_OUTGROWN
    table.relieve()
    assert table.releasable_bytes == len(table.live) == 0
    assert table.peek([7]) == [f"{7:0100d}"]


def test_what_it_holds_is_about_the_same_before_and_after() -> None:
    store, _, table = filled(1000)
    before = table.releasable_bytes
    assert before > 1000 * 300
    table.relieve()
    store.write(table.changes())
    assert 0.5 < table.releasable_bytes / before < 2


def test_waste_in_the_log_is_not_held() -> None:
    store, _, table = filled(1000)
    before = table.releasable_bytes
    for _ in range(5):
        for key in range(300):
            table.put(key, f"{key:0100d}")
        store.write(table.changes())
    assert 0.9 < table.releasable_bytes / before < 1.1


def test_a_log_of_a_process_that_stayed_is_read_by_one_that_does_not() -> None:
    store, shape, _ = filled(1000)
    table = GrowingTable(b"t", store, shape, fits=False)
    assert table.peek([1, 1001]) == [f"{1:0100d}", None]
    store.write(table.changes())
    assert GrowingTable(b"t", store, shape, fits=False).live == {}
