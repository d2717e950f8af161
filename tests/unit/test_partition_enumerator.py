"""Splits with a position each: discovery, fair shares of a batch, and plans that a replay repeats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sourcekit import read, read_all

from firesteel.connectors.partitions import PartitionEnumerator
from firesteel.connectors.source import Records, SourceReader, SplitRange
from firesteel.errors import ConnectorError, ProgramError


class Broker(PartitionEnumerator[str]):
    """Partitions by name; the split is the name."""

    def __init__(self, partitions: dict[str, list[int]], bounded: bool = True, start: int = 0) -> None:
        self.partitions = partitions
        self.bounded = bounded
        self.start_at = start
        self.done: list[Mapping[str, int]] = []
        self.asked = 0

    def discover(self) -> dict[str, str]:
        self.asked += 1
        return {name: name for name in self.partitions}

    def starts(self, splits: Mapping[str, str], initial: bool) -> dict[str, int]:
        return dict.fromkeys(splits, self.start_at if initial else 0)

    def ends(self, splits: Mapping[str, str], positions: Mapping[str, int]) -> dict[str, int]:
        return {name: len(self.partitions[name]) for name in splits}

    def finished(self, split: str, position: int) -> bool:
        return self.bounded and position >= len(self.partitions[split])

    def byte_size(self, split: str, start: int, end: int) -> int:
        return sum(self.partitions[split][start:end])

    def checkpointed(self, positions: Mapping[str, int]) -> None:
        self.done.append(positions)


class BrokerReader(SourceReader[str, tuple[str, int]]):
    def __init__(self, partitions: dict[str, list[int]]) -> None:
        self.partitions = partitions

    def read(self, split: str, start: int, end: int) -> Iterator[Records[tuple[str, int]]]:
        yield Records([(split, value) for value in self.partitions[split][start:end]])


def logged(position: Any) -> Any:
    return json.loads(json.dumps(position))


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=6).map(
        lambda sizes: {f"p{n}": [1] * s for n, s in enumerate(sizes)}
    ),
    st.integers(1, 40),
    st.integers(1, 4),
)
def test_every_record_once_and_no_batch_above_its_limit(
    partitions: dict[str, list[int]], batch: int, parallelism: int
) -> None:
    broker = Broker(partitions)
    assert sorted(read_all(broker, BrokerReader(partitions), batch, parallelism)) == sorted(
        (name, value) for name, values in partitions.items() for value in values
    )
    position = broker.initial()
    end: Any = broker.latest(position, batch)
    assert broker.count(position, end) == min(batch, sum(map(len, partitions.values())))


def test_what_one_split_leaves_goes_to_the_others() -> None:
    broker = Broker({"small": [0] * 3, "large": [0] * 100, "larger": [0] * 200})
    assert broker.latest(None, 90) == {"small": [0, 3], "large": [0, 43], "larger": [0, 44]}


def test_a_batch_of_fewer_records_than_splits_takes_them_by_turns() -> None:
    broker = Broker({name: [1] * 4 for name in "abcde"})
    position: Any = broker.initial()
    for _ in range(5):
        end = broker.latest(position, 2)
        assert broker.count(position, end) == 2
        position = end
    assert [at for _, at in position.values()] == [2, 2, 2, 2, 2]


def test_a_split_that_appears_is_read_from_its_beginning_and_where_it_begins_is_logged() -> None:
    broker = Broker({"a": [1, 2, 3]}, bounded=False, start=2)
    first = logged(broker.latest(broker.initial(), 10))
    assert first == {"a": [2, 3]}
    broker.partitions["b"] = [7, 8]
    second = logged(broker.latest(first, 10))
    assert second == {"a": [2, 3], "b": [0, 2]}
    # Another process plans them again, and its broker would say otherwise now.
    later = Broker({"b": [7, 8, 9], "a": [1, 2, 3, 4]}, start=4)
    assert later.plan(None, first, 2) == [[SplitRange("a", 2, 3, "a")], []]
    assert later.plan(first, second, 2) == [[], [SplitRange("b", 0, 2, "b")]]
    assert read(BrokerReader(later.partitions), later.plan(first, second, 2)) == [("b", 7), ("b", 8)]


def test_a_split_stays_with_its_subtask_when_others_appear_or_finish() -> None:
    broker = Broker({"c": [1], "a": [1, 1, 1]})
    first = logged(broker.latest(None, 2))
    assert broker.splits(first, 2) == [[], ["a"]], "the first one is read to its end"
    broker.partitions["b"] = [1]
    second = logged(broker.latest(first, 10))
    assert [[one.name for one in share] for share in broker.plan(first, second, 2)] == [["b"], ["a"]]


def test_the_first_look_counts_even_if_there_is_nothing() -> None:
    """Whoever asked for the latest records only does not mean those of a topic that was made meanwhile."""
    broker = Broker({}, bounded=False, start=1)
    nothing = logged(broker.latest(broker.initial(), 10))
    assert nothing == {} != broker.initial()
    broker.partitions["a"] = [1, 2]
    assert broker.latest(nothing, 10) == {"a": [0, 2]}


def test_bytes_are_known_where_the_source_tells_them() -> None:
    broker = Broker({"a": [100, 200], "b": [1000]})
    assert broker.size(None, broker.latest(None, 10)) == 1300
    assert PartitionEnumerator.byte_size(broker, "a", 0, 1) is None


def test_a_split_that_is_gone() -> None:
    broker = Broker({"a": [1], "b": [2]}, bounded=False)
    end = broker.latest(None, 10)
    del broker.partitions["b"]
    assert broker.splits(end, 1) == [["a"]], "it holds up nobody"
    assert broker.latest(end, 10) == end
    with pytest.raises(
        ConnectorError, match="The split 'b' is gone, and a batch that was decided before has to read it"
    ):
        broker.plan(None, end, 1)


def test_positions_are_checked_once_for_each_split() -> None:
    broker = Broker({"a": [1]})
    broker.start_at = object()  # type: ignore[assignment]
    with pytest.raises(ProgramError, match=r"The position of a split is a JSON value.* split 'a' begins at <object"):
        broker.latest(None, 10)
    broker.starts = lambda splits, initial: {}  # type: ignore[method-assign]
    with pytest.raises(ProgramError, match=r"starts\(\) must say where each new split begins; 'a' is missing"):
        broker.latest(None, 10)


def test_discovery_is_not_repeated_within_its_interval() -> None:
    broker = Broker({"a": [1, 2, 3]})
    broker.discovery_interval = 3600
    position: Any = None
    for _ in range(3):
        position = broker.latest(position, 1)
        broker.splits(position, 2)
    assert broker.asked == 1


def test_what_is_checkpointed_is_told_by_split() -> None:
    broker = Broker({"a": [1, 2], "b": [3]})
    broker.committed(broker.latest(None, 2))
    broker.committed(None)
    assert broker.done == [{"a": 1, "b": 1}, {}]
