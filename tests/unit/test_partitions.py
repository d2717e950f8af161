"""P subtasks occupy P Spark partitions, one each."""

from __future__ import annotations

import pytest

from firesteel.runtime.partitions import murmur3_int, partition_tokens


@pytest.mark.parametrize(
    ("value", "expected"),
    # From Spark: SELECT hash(CAST(value AS INT))
    [(0, 933211791), (1, -559580957), (2, 1765031574), (42, 29417773), (-1, -1604776387)],
)
def test_murmur3_is_sparks(value: int, expected: int) -> None:
    assert murmur3_int(value) == expected


@pytest.mark.parametrize("partitions", range(1, 33))
def test_every_subtask_has_a_partition_of_its_own(partitions: int) -> None:
    tokens = partition_tokens(partitions)
    assert len(tokens) == partitions
    # Spark's pmod is Python's %.
    assert [murmur3_int(token) % partitions for token in tokens] == list(range(partitions))


def test_subtask_numbers_themselves_would_collide() -> None:
    """The reason for tokens."""
    assert len({murmur3_int(subtask) % 4 for subtask in range(4)}) < 4


def test_tokens_are_small_and_stay_the_same() -> None:
    assert max(max(partition_tokens(partitions)) for partitions in range(1, 33)) < 1000
    assert partition_tokens(1) == (0,)
    assert partition_tokens(8) is partition_tokens(8)
