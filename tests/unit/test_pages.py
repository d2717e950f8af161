"""The paged table behaves as a dict that is kept between batches, and reads only what a batch touches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.runtime.state import pages as pages_module
from firesteel.runtime.state.pages import LARGE_PAGE, SMALL_PAGE, PagedTable, pages_of, scan_pages, slot
from firesteel.runtime.state.store import MemoryStore

Shape = dict[str, Any]


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.read = self.written = 0

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.read += len(keys)
        return super().get_many(keys)

    def write(self, changes: Any) -> None:
        listed = list(changes)
        self.written += len(listed)
        super().write(listed)


def apply(store: MemoryStore, shape: Shape, batch: dict[Any, Any]) -> None:
    """One batch: None deletes, anything else is put."""
    table = PagedTable(b"t", store, shape)
    table.load(batch)
    for key, value in batch.items():
        table.put(key, value)
    store.write(table.changes())


def content(store: MemoryStore, shape: Shape, keys: Any) -> dict[Any, Any]:
    table = PagedTable(b"t", store, shape)
    table.load(keys)
    return {key: table.get(key) for key in keys if table.get(key) is not None}


KEYS = st.one_of(st.integers(0, 400), st.text(max_size=2), st.tuples(st.integers(0, 5), st.booleans()))
BATCHES = st.lists(st.dictionaries(KEYS, st.one_of(st.none(), st.integers()), max_size=200), max_size=8)


@settings(max_examples=60, deadline=None)
@given(BATCHES, st.sampled_from([1, 3, SMALL_PAGE]), st.sampled_from([1, 4]))
def test_a_table_is_a_dict(batches: list[dict[Any, Any]], small_page: int, joined_from: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Small pages, so that few keys are enough to split them.
        patch.setattr(pages_module, "SMALL_PAGE", small_page)
        patch.setattr(pages_module, "LARGE_PAGE", small_page * 4)
        patch.setattr(pages_module, "JOINED_FROM", joined_from)
        store, shape, model = MemoryStore(), Shape(), {}
        for batch in batches:
            apply(store, shape, batch)
            for key, value in batch.items():
                if value is None:
                    model.pop(key, None)
                else:
                    model[key] = value
            every = {key: None for batch in batches for key in batch}
            assert content(store, shape, every) == model
            assert shape.get("entries", 0) == len(model)
            # Nothing lies where nobody would look for it.
            assert set(store.content) <= {b"t\0" + number.to_bytes(4, "big") for number in range(shape["pages"])}


def test_a_table_grows_page_by_page_and_finds_everything() -> None:
    store, shape = MemoryStore(), Shape()
    for start in range(0, 5000, 500):
        apply(store, shape, {f"key-{n}": n for n in range(start, start + 500)})
    assert shape["entries"] == 5000
    assert 5000 // LARGE_PAGE < shape["pages"] <= 5000 // SMALL_PAGE + 1
    assert content(store, shape, [f"key-{n}" for n in range(5000)]) == {f"key-{n}": n for n in range(5000)}


@pytest.mark.parametrize("size", [1_000, 20_000])
def test_the_cost_of_a_batch_depends_on_what_it_touches(size: int) -> None:
    store, shape = CountingStore(), Shape()
    apply(store, shape, {n: n for n in range(size)})
    for batch in ({n: -n for n in range(10)}, {size + n: n for n in range(10)}, dict.fromkeys(range(10))):
        store.read = store.written = 0
        apply(store, shape, batch)
        # Ten pages, and at most as many new ones split off others.
        assert store.read <= 20
        assert store.written <= 30


def test_scattered_touches_make_pages_small_and_dense_ones_leave_them_large() -> None:
    sizes = {}
    for touched in (10, 4000):
        store, shape = CountingStore(), Shape()
        apply(store, shape, {n: n for n in range(4000)})
        for _ in range(40):
            apply(store, shape, dict.fromkeys(range(touched), 1))
        sizes[touched] = 4000 / shape["pages"]
    assert sizes[10] <= SMALL_PAGE < sizes[4000] <= LARGE_PAGE


def make_small_pages(store: MemoryStore, shape: Shape) -> int:
    apply(store, shape, {n: n for n in range(4000)})
    for start in range(400):
        apply(store, shape, {n: -n for n in range(start, 4000, 400)})
    assert shape["pages"] >= 4000 / SMALL_PAGE
    return int(shape["pages"])


def test_dense_batches_join_small_pages() -> None:
    store, shape = CountingStore(), Shape()
    small = make_small_pages(store, shape)
    for _ in range(2):
        apply(store, shape, dict.fromkeys(range(4000), 1))
    assert shape["pages"] <= small / 16
    assert len(store.content) == shape["pages"]
    assert content(store, shape, range(4000)) == dict.fromkeys(range(4000), 1)
    store.read = 0
    apply(store, shape, dict.fromkeys(range(4000), 2))
    assert store.read <= small / 16


def test_no_page_moves_behind_one_who_goes_through_all() -> None:
    store, shape = MemoryStore(), Shape()
    make_small_pages(store, shape)
    table = PagedTable(b"t", store, shape)
    seen = []
    for keys in table.every_key():
        seen += keys
        table.load(range(4000))
        for key in range(4000):
            table.put(key, 1)
        store.write(table.changes())
    assert sorted(seen) == list(range(4000))


def test_keys_of_one_page_are_read_once() -> None:
    store, shape = CountingStore(), Shape()
    apply(store, shape, {n: n for n in range(2000)})
    store.read = 0
    table = PagedTable(b"t", store, shape)
    pages = pages_of(range(2000), shape["pages"])
    neighbours = [n for n in range(2000) if pages[n] == pages[7]]
    table.load(neighbours)
    table.load(neighbours)
    assert store.read == 1
    assert len(neighbours) > 10


def test_an_empty_table_is_not_read_and_an_emptied_one_leaves_nothing() -> None:
    store, shape = CountingStore(), Shape()
    apply(store, shape, {n: n for n in range(300)})
    assert store.read == 0
    apply(store, shape, dict.fromkeys(range(300)))
    assert store.content == {}
    assert shape["entries"] == 0
    store.read = 0
    apply(store, shape, {1: 1})
    assert store.read == 0
    assert content(store, shape, range(300)) == {1: 1}


def test_reading_changes_nothing() -> None:
    store, shape = CountingStore(), Shape()
    apply(store, shape, {n: n for n in range(100)})
    store.written = 0
    table = PagedTable(b"t", store, shape)
    table.load(range(100))
    store.write(table.changes())
    assert store.written == 0


def test_tables_of_different_prefixes_share_a_store() -> None:
    store, shapes = MemoryStore(), (Shape(), Shape())
    for number, prefix in enumerate((b"a", b"b")):
        table = PagedTable(prefix, store, shapes[number])
        table.load(["k"])
        table.put("k", number)
        store.write(table.changes())
    table = PagedTable(b"a", store, shapes[0])
    table.load(["k"])
    assert table.get("k") == 0


@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_a_split_moves_keys_to_the_new_page_only(pages: int, hashed: int) -> None:
    before, after = slot(hashed, pages), slot(hashed, pages + 1)
    assert 0 <= before < pages
    assert after in (before, pages)


def test_large_entries_make_pages_of_few() -> None:
    store, shape = MemoryStore(), Shape()
    for _ in range(12):
        apply(store, shape, dict.fromkeys(range(200), "x" * 20000))
    assert max(map(len, store.content.values())) < 3 * pages_module.PAGE_BYTES


def test_what_was_let_go_is_read_again() -> None:
    store, shape = CountingStore(), Shape()
    table = PagedTable(b"t", store, shape)
    table.load(["a"])
    table.put("a", 1)
    store.write(table.changes())
    assert table.releasable_bytes > 0
    table.relieve()
    assert (table.releasable_bytes, table.live) == (0, {})
    table.load(["a"])
    assert table.get("a") == 1


def test_pages_stay_where_entries_have_to_go() -> None:
    """The pages that were used last, as many as may stay."""
    store, shape = CountingStore(), Shape()
    make_small_pages(store, shape)
    table = PagedTable(b"t", store, shape)
    table.load(range(4000))
    table.put(7, "changed")
    store.write(table.changes())
    full = table.releasable_bytes
    for keep, most in ((full, 0), (full // 8, shape["pages"] * 3 // 4), (0, shape["pages"])):
        table.relieve(keep)
        assert (len(table.live), table.releasable_bytes <= keep) == (0, True)
        store.read = 0
        table.load([7])
        assert table.get(7) == "changed"
        assert store.read == (1 if keep == 0 else 0), "the page of 7 was used last"
        table.load(range(4000))
        assert 0 <= store.read <= most
        assert {key: table.get(key) for key in range(4000)} == {n: -n for n in range(4000)} | {7: "changed"}
        table.load([7])
        table.put(7, "changed")
        store.write(table.changes())


def test_few_changes_are_put_behind_a_page_until_it_has_grown_by_half() -> None:
    store, shape = MemoryStore(), Shape()
    model: dict[int, Any] = {n: f"value of {n}" for n in range(20)}
    apply(store, shape, model)
    (cell,) = store.content
    lengths, anew = [len(store.content[cell])], 0
    for number in range(60):
        before = store.content[cell]
        change = {number % 20: f"new value {number}", (number + 7) % 20: None if number % 3 else "back"}
        apply(store, shape, change)
        model |= change
        anew += not store.content[cell].startswith(before)
        lengths.append(len(store.content[cell]))
        assert content(store, shape, range(20)) == {key: value for key, value in model.items() if value is not None}
    assert 1 <= anew <= 40
    assert len(store.content) == 1
    assert max(lengths) <= 1.5 * lengths[0]
    assert shape["bytes"] == lengths[-1]
    assert dict(zip(*next(scan_pages(b"t", store, shape)), strict=True)) == content(store, shape, range(20))
