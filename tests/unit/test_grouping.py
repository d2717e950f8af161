"""Records by key for BATCH mode, in memory and in files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.runtime.grouping import KeyGroups
from firesteel.runtime.watermarks import MIN_TIMESTAMP

Chunk = tuple[list[Any], list[Any], list[int] | None]


def collected(chunks: list[Chunk], limit: int) -> dict[Any, tuple[list[Any], list[int] | None]]:
    groups = KeyGroups(limit=limit, files=4)
    for keys, values, times in chunks:
        groups.add(keys, values, times)
    found = {}
    for key, values, times in groups.groups():
        assert key not in found, "a key came twice"
        found[key] = (values, times)
    assert list(groups.groups()) == []
    return found


LIMITS = pytest.mark.parametrize("limit", [0, 3, 1000], ids=["all spilled", "some spilled", "in memory"])


@LIMITS
def test_without_timestamps_the_order_of_arrival_stays(limit: int) -> None:
    chunks: list[Chunk] = [(["a", "b"], [1, 2], None), (["b", "a"], [3, 4], None), (["a"], [5], None)]
    assert collected(chunks, limit) == {"a": ([1, 4, 5], None), "b": ([2, 3], None)}


@LIMITS
def test_with_timestamps_a_key_is_in_order_of_time_and_equal_times_in_that_of_arrival(limit: int) -> None:
    chunks: list[Chunk] = [
        (["a", "a", "b"], ["late", "early", "x"], [30, 10, 5]),
        (["a", "a"], ["early too", "middle"], [10, 20]),
    ]
    assert collected(chunks, limit) == {
        "a": (["early", "early too", "middle", "late"], [10, 10, 20, 30]),
        "b": (["x"], [5]),
    }


@LIMITS
def test_records_without_a_timestamp_come_first_where_others_have_one(limit: int) -> None:
    chunks: list[Chunk] = [(["a"], ["timed"], [10]), (["a", "b"], ["plain", "alone"], None)]
    assert collected(chunks, limit)["a"] == (["plain", "timed"], [MIN_TIMESTAMP, 10])
    assert collected(chunks, limit)["b"][0] == ["alone"]


@LIMITS
def test_equal_keys_of_different_types_are_one(limit: int) -> None:
    assert collected([([1, 1.0, True, None, None], list("abcde"), None)], limit) == {
        1: (["a", "b", "c"], None),
        None: (["d", "e"], None),
    }


@LIMITS
def test_nothing_gives_no_groups(limit: int) -> None:
    assert collected([], limit) == {}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(), st.integers(0, 99)), max_size=20), max_size=6),
    st.sampled_from([0, 7, 1000]),
)
def test_it_is_a_stable_sort_by_key_and_time(batches: list[list[tuple[int, int, int]]], limit: int) -> None:
    chunks: list[Chunk] = [([k for k, _, _ in b], [v for _, v, _ in b], [t for _, _, t in b]) for b in batches]
    found = collected(chunks, limit)
    every = [record for batch in batches for record in batch]
    for key in {k for k, _, _ in every}:
        expected = sorted((r for r in every if r[0] == key), key=lambda record: record[2])
        assert found[key] == ([v for _, v, _ in expected], [t for _, _, t in expected])
    assert len(found) == len({k for k, _, _ in every})


def merged(chunks: list[tuple[int, Chunk]], limit: int) -> dict[Any, list[tuple[int, Any, int | None]]]:
    groups = KeyGroups(limit=limit, files=4)
    for ordinal, chunk in chunks:
        groups.add(*chunk, ordinal)
    found = {}
    for key, ordinals, values, times in groups.merged_groups():
        assert key not in found, "a key came twice"
        found[key] = list(zip(ordinals, values, times or [None] * len(values), strict=True))
    assert list(groups.merged_groups()) == []
    return found


@LIMITS
def test_two_inputs_are_merged_by_time_and_in_turn_where_it_is_equal(limit: int) -> None:
    chunks: list[tuple[int, Chunk]] = [
        (0, (["a", "a", "a", "b"], ["a0", "a1", "a2", "b0"], [30, 10, 20, 1])),
        (1, (["a", "a", "c"], ["A0", "A1", "C0"], [20, 20, 5])),
    ]
    assert merged(chunks, limit) == {
        "a": [(0, "a1", 10), (1, "A0", 20), (0, "a2", 20), (1, "A1", 20), (0, "a0", 30)],
        "b": [(0, "b0", 1)],
        "c": [(1, "C0", 5)],
    }


@LIMITS
def test_two_inputs_without_timestamps_come_in_turn(limit: int) -> None:
    chunks: list[tuple[int, Chunk]] = [(1, (["a"] * 2, [1, 2], None)), (0, (["a"] * 4, [3, 4, 5, 6], None))]
    expected = [(0, 3, None), (1, 1, None), (0, 4, None), (1, 2, None), (0, 5, None), (0, 6, None)]
    assert merged(chunks, limit) == {"a": expected}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1), st.lists(st.tuples(st.integers(0, 4), st.integers(), st.integers(0, 9)), max_size=12)
        ),
        max_size=6,
    ),
    st.sampled_from([0, 7, 1000]),
)
def test_merging_loses_nothing_and_keeps_each_input_in_its_order(
    batches: list[tuple[int, list[tuple[int, int, int]]]], limit: int
) -> None:
    chunks: list[tuple[int, Chunk]] = [
        (side, ([k for k, _, _ in b], [v for _, v, _ in b], [t for _, _, t in b])) for side, b in batches
    ]
    found = merged(chunks, limit)
    assert sum(map(len, found.values())) == sum(len(batch) for _, batch in batches)
    for key, records in found.items():
        times = [time for _, _, time in records]
        assert times == sorted(times)  # type: ignore[type-var]
        for side in (0, 1):
            given_ = [(v, t) for s, batch in batches if s == side for k, v, t in batch if k == key]
            assert [(v, t) for s, v, t in records if s == side] == sorted(given_, key=lambda record: record[1])
