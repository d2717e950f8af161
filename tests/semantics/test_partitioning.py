"""Which subtask a record goes to."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.datastream import MapFunction, RuntimeContext
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import JobExecutionError
from firesteel.runtime.keys import key_group, stable_hash, subtask_of


class Here(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> Any:
        return value, self.subtask


def places(run: Any, ship: Any, count: int = 60, parallelism: int = 3, **settings: Any) -> list[tuple[int, int]]:
    """(number, subtask) of each number after it was shipped."""
    return run(lambda env: ship(env.from_collection(list(range(count)))).map(Here()), parallelism, **settings)


@pytest.mark.both_engines
def test_rebalance_is_even(run: Any) -> None:
    found = places(run, lambda stream: stream.rebalance())
    assert sorted(n for n, _ in found) == list(range(60))
    assert Counter(subtask for _, subtask in found) == {0: 20, 1: 20, 2: 20}


def test_rebalance_is_nearly_even_over_many_small_batches(run: Any) -> None:
    found = places(run, lambda stream: stream.rebalance(), 200, config={"firesteel.batch.max-records": "1"})
    counts = Counter(subtask for _, subtask in found)
    # Each batch begins at a subtask that its time chooses; several batches may have the same time here.
    assert min(counts[n] for n in range(3)) > 10


def test_rebalance_goes_round_record_by_record(run: Any) -> None:
    turns = [subtask for _, subtask in sorted(places(run, lambda stream: stream.rebalance(), 9))]
    assert all((second - first) % 3 == 1 for first, second in itertools.pairwise(turns))


def test_without_a_word_the_source_is_read_in_blocks(run: Any) -> None:
    assert places(run, lambda stream: stream, 6) == [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2)]


def test_broadcast_reaches_every_subtask(run: Any) -> None:
    found = places(run, lambda stream: stream.broadcast(), 5)
    assert Counter(found) == Counter((n, subtask) for n in range(5) for subtask in range(3))


def test_global_goes_to_the_first_subtask(run: Any) -> None:
    assert sorted(places(run, lambda stream: stream.global_(), 5)) == [(n, 0) for n in range(5)]


def test_shuffle_loses_nothing_and_reaches_all(run: Any) -> None:
    found = places(run, lambda stream: stream.shuffle(), 120)
    assert sorted(n for n, _ in found) == list(range(120))
    assert {subtask for _, subtask in found} == {0, 1, 2}


def test_rescale_stays_within_a_share(run: Any) -> None:
    def ship(env: Any) -> Any:
        numbers = env.from_source(NumberSequenceSource(0, 79), WatermarkStrategy.no_watermarks(), "numbers")
        return numbers.set_parallelism(2).map(Here()).set_parallelism(2).rescale().map(Here()).set_parallelism(4)

    found = Counter((sender, receiver) for (_, sender), receiver in run(ship))
    assert found == {(0, 0): 20, (0, 1): 20, (1, 2): 20, (1, 3): 20}


def test_rescale_to_fewer_subtasks(run: Any) -> None:
    def ship(env: Any) -> Any:
        numbers = env.from_source(NumberSequenceSource(0, 79), WatermarkStrategy.no_watermarks(), "numbers")
        return numbers.set_parallelism(4).map(Here()).set_parallelism(4).rescale().map(Here()).set_parallelism(2)

    found = Counter((sender, receiver) for (_, sender), receiver in run(ship))
    assert found == {(0, 0): 20, (1, 0): 20, (2, 1): 20, (3, 1): 20}


def test_forward_keeps_the_subtask(run: Any) -> None:
    found = run(lambda env: env.from_collection(list(range(9))).map(Here()).forward().map(Here()), 3)
    assert all(before == after for (_, before), after in found)


@pytest.mark.both_engines
@pytest.mark.spark_sample
def test_partition_custom_decides_itself(run: Any) -> None:
    found = places(
        run, lambda stream: stream.partition_custom(lambda key, n: (key + 1) % n, lambda number: number // 2)
    )
    assert all(subtask == (number // 2 + 1) % 3 for number, subtask in found)
    assert len(found) == 60


@pytest.mark.parametrize("answer", [3, -1, "0", None, 0.0])
def test_a_partitioner_must_name_a_subtask(run: Any, answer: Any) -> None:
    with pytest.raises(JobExecutionError, match=r"A partitioner must return an int from 0 to 2, it returned"):
        places(run, lambda stream: stream.partition_custom(lambda key, n: answer, lambda number: number))


@pytest.mark.both_engines
def test_keys_go_where_their_stable_hash_says(run: Any) -> None:
    found = places(run, lambda stream: stream.key_by(lambda n: f"key-{n}"))
    for number, subtask in found:
        assert subtask == subtask_of(key_group(stable_hash(f"key-{number}"), 128), 128, 3)


def test_operators_of_different_width(run: Any) -> None:
    def build(env: Any) -> Any:
        stream = env.from_collection(list(range(24))).map(Here()).set_parallelism(2)
        return stream.map(Here()).set_parallelism(3).map(Here()).set_parallelism(1)

    found = run(build)
    assert sorted(value for ((value, _), _), _ in found) == list(range(24))
    assert Counter(first for ((_, first), _), _ in found) == {0: 12, 1: 12}
    assert Counter(second for (_, second), _ in found) == {0: 8, 1: 8, 2: 8}
    assert {third for _, third in found} == {0}


def test_force_non_parallel(run: Any) -> None:
    found = run(lambda env: env.from_collection(list(range(6))).map(Here()).force_non_parallel(), 3)
    assert {subtask for _, subtask in found} == {0}
