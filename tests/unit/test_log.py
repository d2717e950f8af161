"""The log behaves as a dict that is kept between batches; writing costs what a batch changed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.errors import CheckpointError
from firesteel.runtime.state import log as log_module
from firesteel.runtime.state.log import LogTable, scan_log
from firesteel.runtime.state.store import MemoryStore

Batch = dict[Any, Any]


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.read = self.written = self.bytes = 0

    def get_many(self, keys: Any) -> list[bytes | None]:
        self.read += len(keys)
        return super().get_many(keys)

    def write(self, changes: Any) -> None:
        listed = list(changes)
        self.written += len(listed)
        self.bytes += sum(len(cell or b"") for _, cell in listed)
        super().write(listed)


def apply(table: LogTable, store: MemoryStore, batch: Batch) -> None:
    """One batch: None deletes, anything else is put."""
    for key, value in batch.items():
        table.put(key, value)
    store.write(table.changes())


def content(table: LogTable) -> Batch:
    return {key: entry[0] for key, entry in table.live.items()}


KEYS = st.one_of(st.integers(0, 60), st.text(max_size=1), st.tuples(st.integers(0, 5), st.booleans()))
BATCHES = st.lists(
    st.tuples(st.dictionaries(KEYS, st.one_of(st.none(), st.integers()), max_size=40), st.booleans()), max_size=40
)


@settings(max_examples=150, deadline=None)
@given(BATCHES, st.sampled_from([1, 3, 16]))
def test_a_table_is_a_dict(batches: list[tuple[Batch, bool]], segment: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Small limits, so that few keys are enough to clean and join segments.
        for name, value in {"SEGMENT": segment, "PILE": 3, "SLACK": 4, "CLEANED_AT_LEAST": 5}.items():
            patch.setattr(log_module, name, value)
        store, shape, model = MemoryStore(), dict[str, Any](), dict[Any, Any]()
        table = LogTable(b"t", store, shape)
        for batch, restart in batches:
            apply(table, store, batch)
            model.update({key: value for key, value in batch.items() if value is not None})
            for key in [key for key, value in batch.items() if value is None]:
                model.pop(key, None)
            if restart:
                table = LogTable(b"t", store, shape)
            assert content(table) == model
            assert content(LogTable(b"t", store, shape)) == model
            assert len(store.content) == len(shape["segments"])


def test_a_batch_costs_what_it_changes() -> None:
    costs = {}
    for size in (1_000, 100_000):
        store, shape = CountingStore(), dict[str, Any]()
        table = LogTable(b"t", store, shape)
        apply(table, store, {n: n for n in range(size)})
        store.bytes = store.read = store.written = 0
        for batch in range(40):
            apply(table, store, dict.fromkeys(range(100), batch))
        costs[size] = (store.bytes, store.read, store.written)
    assert costs[100_000][0] < 1.5 * costs[1_000][0]
    assert costs[100_000][2] < 1.5 * costs[1_000][2]


def test_waste_stays_below_what_is_valid() -> None:
    store, shape = CountingStore(), dict[str, Any]()
    table = LogTable(b"t", store, shape)
    for batch in range(300):
        apply(table, store, {n * 7919 % 20_000: batch for n in range(batch * 500, batch * 500 + 500)})
    assert sum(shape["segments"].values()) <= 2 * 20_000 + 2 * log_module.CLEANED_AT_LEAST
    assert len(shape["segments"]) < 60
    assert content(LogTable(b"t", store, shape)) == content(table)


def test_keys_that_come_and_go_leave_no_marks_behind() -> None:
    store, shape = CountingStore(), dict[str, Any]()
    table = LogTable(b"t", store, shape)
    apply(table, store, {"stays": 1})
    for batch in range(300):
        apply(table, store, {(batch, n): 1 for n in range(100)})
        apply(table, store, {(batch, n): None for n in range(100)})
    assert sum(shape["segments"].values()) < 20_000
    assert content(LogTable(b"t", store, shape)) == {"stays": 1}


def test_what_comes_and_goes_within_a_batch_is_not_written() -> None:
    store, shape = CountingStore(), dict[str, Any]()
    table = LogTable(b"t", store, shape)
    apply(table, store, {"a": 1})
    store.written = 0
    table.put("b", 1)
    table.put("b", None)
    store.write(table.changes())
    assert store.written == 0


def test_an_emptied_table_leaves_nothing() -> None:
    store, shape = CountingStore(), dict[str, Any]()
    table = LogTable(b"t", store, shape)
    apply(table, store, {n: n for n in range(3000)})
    apply(table, store, dict.fromkeys(range(3000)))
    assert store.content == {}


def test_large_entries_make_short_segments() -> None:
    store, shape = CountingStore(), dict[str, Any]()
    table = LogTable(b"t", store, shape)
    for start in range(0, 1000, 100):
        apply(table, store, dict.fromkeys(range(start, start + 100), "x" * 20000))
    assert max(map(len, store.content.values())) < 6 * log_module.SEGMENT_BYTES


def test_a_missing_segment_is_told() -> None:
    store, shape = CountingStore(), dict[str, Any]()
    apply(LogTable(b"t", store, shape), store, {"a": 1})
    store.content.clear()
    with pytest.raises(CheckpointError, match=r"The stored state 't' cannot be read \(segment 1 is missing\)"):
        LogTable(b"t", store, shape)


def test_sweeping_goes_round() -> None:
    from firesteel.runtime.state.tables import KEEP

    store = MemoryStore()
    table = LogTable(b"t", store, {})
    apply(table, store, {n: n for n in range(10)})
    seen: list[int] = []

    def expiry_check(key: Any, entry: Any) -> Any:
        seen.append(key)
        return None if key == 3 else 33 if key == 4 else KEEP

    for _ in range(5):
        table.sweep(4, expiry_check)
    assert set(seen[:12]) == set(range(10))
    assert {entry[2] for entry in table.dirty} == {3, 4}
    assert table.get(3) is None
    assert table.get(4) == 33


def test_what_is_stored_is_scanned_without_a_table() -> None:
    """Of a key that several segments know, the newest counts, and what was removed is not there."""
    store, shape = MemoryStore(), {}
    table = LogTable(b"t", store, shape)
    for key in range(5000):
        table.put(key, key)
    store.write(table.changes())
    for key in range(0, 5000, 10):
        table.put(key, -key - 1)
    store.write(table.changes())
    for key in range(5, 5000, 10):
        table.put(key, None)
    store.write(table.changes())
    assert len(shape["segments"]) > 2, "several segments are the point"

    scanned = [pair for keys, values in scan_log(b"t", store, shape) for pair in zip(keys, values, strict=True)]

    expected = {key: -key - 1 if key % 10 == 0 else key for key in range(5000) if key % 10 != 5}
    assert len(scanned) == len(expected)
    assert dict(scanned) == expected


def test_large_values_do_not_share_a_segment_and_are_not_written_again_and_again() -> None:
    store = CountingStore()
    table = LogTable(b"t", store, {})
    size = 3 << 20
    apply(table, store, {n: b"%08d" % n * (size // 8) for n in range(40)})
    assert max(len(cell) for cell in store.content.values()) < 3 * size
    before = store.bytes
    for n in range(40, 50):
        apply(table, store, {n: "small"})
    assert store.bytes - before < size, "cleaning leaves them where they are"
