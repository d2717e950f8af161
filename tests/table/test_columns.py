"""Batches of columns: the same hashes, key groups and routes as those of single records; bytes that come back."""

import datetime
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from firesteel.common import Instant, Row
from firesteel.runtime.columns.nested import arrow_column
from firesteel.runtime.columns.packing import joined, pack, unpack
from firesteel.runtime.columns.routing import KeyColumns, key_groups, row_hashes, subtasks_by_group
from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.keys import KeyRoutes, key_group, stable_hash
from firesteel.runtime.state.columnar import SlotColumn, SlotTable
from firesteel.runtime.state.columnar.slots import scan_slots
from firesteel.runtime.state.store import MemoryStore

EDGES = [-1, 0, 2**61 - 1, 1 - 2**61, -(2**61)]
COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from(EDGES))),
    (pa.int8(), st.integers(-128, 127)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(st.characters(codec="utf-8"), max_size=5)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.decimal128(10, 2), st.decimals(-1000, 1000, places=2)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2100, 1, 1))),
]


@given(st.data())
@settings(max_examples=150)
def test_keys_have_the_engines_hashes_groups_and_subtasks(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(COLUMNS), max_size=3))
    rows = data.draw(st.integers(1, 8))
    columns = [
        pa.array(data.draw(st.lists(st.one_of(st.none(), values), min_size=rows, max_size=rows)), kind)
        for kind, values in chosen
    ]
    names = [str(number) for number in range(len(columns) + 1)]
    batch = pa.RecordBatch.from_arrays([*columns, pa.array([0] * rows)], names=names)
    keys = KeyColumns(range(len(columns))).get_key(batch)
    hashed = row_hashes(columns, rows)
    assert hashed.tolist() == [stable_hash(key) for key in keys]
    groups = key_groups(hashed, 128)
    assert groups.tolist() == [key_group(stable_hash(key), 128) for key in keys]
    assert subtasks_by_group(128, 3)[groups].tolist() == KeyRoutes(3, 128).of(keys)


def test_batches_with_and_without_kinds_are_joined() -> None:
    inserts = pa.record_batch({"a": [1]})
    changes = pa.record_batch({"a": [2], "$kind": pa.array([3], pa.int8())})
    assert joined([inserts, changes]).to_pydict() == {"a": [1, 2], "$kind": [0, 3]}
    assert unpack(pack(changes.slice(0, 1))).equals(changes)


@pytest.mark.parametrize("rounds", [3, 40])
def test_a_table_of_slots_through_many_batches(rounds: int) -> None:
    """What is put, changed and removed over many batches is there after a restart, and the log does not grow on."""
    store = MemoryStore()
    shape: dict[str, Any] = {}
    random = np.random.default_rng(rounds)

    def opened() -> SlotTable:
        table = SlotTable([pa.string(), pa.int64()], [SlotColumn("count", pa.int64(), np.int64)])
        table.attach(b"t", store, shape)
        return table

    table = opened()
    expected: dict[Any, Any] = {}
    for number in range(rounds):
        names = np.unique(random.integers(0, 6000, 3000)).tolist()
        numbers = [None if name % 3 else name for name in names]
        slots = table.slots([pa.array([f"k{name}" for name in names]), pa.array(numbers, pa.int64())])
        gone = random.random(len(slots)) < 0.3
        table.values[0][slots] = number
        table.put(slots[~gone])
        table.remove(slots[gone])
        for name, second, removed in zip(names, numbers, gone.tolist(), strict=True):
            if removed:
                expected.pop((f"k{name}", second), None)
            else:
                expected[f"k{name}", second] = (number,)
        store.write(table.changes())
        if number % 7 == 3:
            table = opened()
        else:
            table.attach(b"t", store, shape, unchanged=True)
    found = {}
    for keys, values in scan_slots(b"t", store, shape):
        found.update(zip(keys, values, strict=True))
    assert found == expected
    assert table.entries == len(expected)
    assert len(store.content) == len(shape["segments"])
    assert sum(shape["segments"].values()) < 6 * 6000
    assert sum(map(len, store.content.values())) == shape["bytes"]


@pytest.mark.parametrize("begin", [0, 1_700_000_000_000_000, -1_700_000_000_000_000])
def test_the_largest_so_far_of_moments_in_many_groups(begin: int) -> None:
    """Microseconds since 1970 are large numbers that are close to each other: ranges of groups must not overlap."""
    groups = 10_000
    segments = Segments(np.arange(0, 2 * groups, 2), 2 * groups)
    values = begin + np.arange(2 * groups)[::-1]
    assert segments.fits(int(values.min()) - 1, int(values.max()))
    largest = segments.running_max(values, np.full(groups, values.min() - 1))
    assert (largest == np.repeat(values[::2], 2)).all()


def test_values_of_programs_as_columns() -> None:
    """Rows by name, also with more fields than are wanted, or by place; maps as dicts or pairs; moments inside."""
    kind = pa.struct({"at": pa.timestamp("ms"), "by": pa.map_(pa.string(), pa.list_(pa.timestamp("ms")))})
    moment = Instant(1, 2_999_999)
    values = [
        Row(by={"k": [moment, None]}, more=7, at=moment),
        (moment, [("k", (moment, None))]),
        {"at": moment, "by": {"k": [moment, None]}},
        None,
    ]
    shown = [{"at": 1002, "by": [("k", [1002, None])]}] * 3
    numbers = pa.struct({"at": pa.int64(), "by": pa.map_(pa.string(), pa.list_(pa.int64()))})
    assert arrow_column(values, kind).equals(pa.array([*shown, None], numbers).cast(kind))


@pytest.mark.parametrize("value", [7, "text", (1, 2, 3), {"at": 1, "by": ["no pair"]}])
def test_what_is_no_row_is_told_by_arrow(value: Any) -> None:
    kind = pa.struct({"at": pa.int32(), "by": pa.map_(pa.string(), pa.int32())})
    with pytest.raises((pa.ArrowException, TypeError, ValueError)):
        arrow_column([value], kind)


def test_a_nan_has_a_route() -> None:
    first, second, number = row_hashes([pa.array([float("nan"), float("nan"), 1.0])], 3).tolist()
    assert first == second != number == stable_hash(1)
