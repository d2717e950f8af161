"""What Kafka's enumerator plans, against a cluster of this test."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from firesteel.connectors.kafka import enumerator as module
from firesteel.connectors.kafka.enumerator import KafkaEnumerator, Subscription
from firesteel.connectors.kafka.group_offsets import GroupOffsets
from firesteel.connectors.kafka.offsets import OffsetsSpec, TopicPartition
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.errors import ConnectorError, FailureKind

EARLIEST, LATEST = OffsetsSpec("earliest"), OffsetsSpec("latest")


class Cluster:
    """Topics of one partition and five records each."""

    def __init__(self, *topics: str) -> None:
        self.ids = {topic: f"id of {topic}" for topic in topics}
        self.committing: list[tuple[dict[TopicPartition, int], bool]] = []

    def _there(self, partitions: Iterable[TopicPartition], offset: int) -> dict[TopicPartition, int]:
        for one in partitions:
            if one.topic not in self.ids:
                raise ConnectorError("Create the topic, or check its name.", kind=FailureKind.PERMANENT)
        return dict.fromkeys(partitions, offset)

    def partitions(self, wanted: Callable[[str], bool], topics: Iterable[str] | None) -> list[TopicPartition]:
        return [TopicPartition(topic, 0) for topic in (topics or self.ids) if wanted(topic)]

    def starts(self, spec: OffsetsSpec, partitions: Any) -> dict[TopicPartition, int]:
        return self._there(partitions, 0)

    def resolve(self, spec: OffsetsSpec, partitions: Any) -> dict[TopicPartition, int]:
        return self._there(partitions, 5)

    def earliest(self, partitions: Any) -> dict[TopicPartition, int]:
        return self._there(list(partitions), 0)

    def latest(self, partitions: Any) -> dict[TopicPartition, int]:
        return self._there(list(partitions), 5)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return {topic: self.ids[topic] for topic in topics if self._there([TopicPartition(topic, 0)], 0)}

    def begin_commit(self, offsets: dict[TopicPartition, int]) -> Callable[[float], bool]:
        self.committing.append((offsets, False))
        number = len(self.committing) - 1
        return lambda seconds: self.committing[number][1]

    def committed(self, number: int) -> None:
        self.committing[number] = self.committing[number][0], True


def enumerator(
    cluster: Cluster, subscription: Subscription, stop: OffsetsSpec | None = None, bounded: bool = False, **more: str
) -> KafkaEnumerator:
    given = {name.replace("_", "."): value for name, value in more.items()}
    properties = KafkaProperties().having({"bootstrap.servers": "nowhere:1", **given})
    made = KafkaEnumerator(properties, subscription, EARLIEST, stop, bounded)
    made._cluster = cluster  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("bounded", [True, False])
def test_a_stop_ends_what_is_read_and_only_a_bounded_source(bounded: bool) -> None:
    """Flink's enumerator tells its readers that there is nothing more for bounded sources only."""
    made = enumerator(Cluster("t"), Subscription(topics=["t"]), LATEST, bounded, partition_discovery_interval_ms="-1")
    position = made.latest(None, 100)
    assert position == {"t-0": [[0, 5, "id of t"], [5, 5, "id of t"]]}
    assert made.latest(position, 100) == position
    assert made.ended(position) is bounded


def test_a_deleted_topic_that_nobody_has_named_is_left_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    cluster = Cluster("orders-a", "orders-b")
    made = enumerator(cluster, Subscription(pattern="orders-.*"), partition_discovery_interval_ms="-1")
    position = made.latest(None, 4)
    assert {name: at[0] for name, (_, at) in position.items()} == {"orders-a-0": 2, "orders-b-0": 2}
    del cluster.ids["orders-b"]
    cluster.ids["orders-new"] = "id of orders-new"
    later = made.latest(position, 100)
    assert {name: at[0] for name, (_, at) in later.items()} == {"orders-a-0": 5, "orders-b-0": 2}
    assert "orders-b-0: the topic was deleted" in caplog.text
    caplog.clear()
    assert made.latest(later, 100) == later, "and nothing new is looked for where that is off"
    assert caplog.text == ""
    assert made.splits(later, 1) == [["orders-a-0"]]
    # A failure that has nothing to do with that stays one.
    del cluster.ids["orders-a"]
    monkeypatch.setattr(cluster, "partitions", lambda wanted, topics: [TopicPartition("orders-a", 0)])
    with pytest.raises(ConnectorError, match="Create the topic"):
        made.latest(later, 100)


def test_a_deleted_topic_that_was_named_ends_the_job() -> None:
    cluster = Cluster("t", "u")
    made = enumerator(cluster, Subscription(topics=["t", "u"]))
    position = made.latest(None, 100)
    del cluster.ids["u"]
    made._looked = float("-inf")
    with pytest.raises(ConnectorError, match="Create the topic"):
        made.latest(position, 100)


def test_nothing_is_pending_of_a_topic_that_was_made_anew_and_is_read(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    made = enumerator(Cluster("t"), Subscription(topics=["t"]), fail_on_data_loss="false")
    read = made.latest({"t-0": [[0, None, "old id"], [9, None, "old id"]]}, 100)
    assert read["t-0"][1] == [5, None, "id of t", 0]
    assert made.count({"t-0": [[0, None, "old id"], [9, None, "old id"]]}, read) == 5
    assert made.pending(made.latest(read, 100)) == 0


def test_offsets_that_waited_for_a_slow_commit_are_sent_while_nothing_is_read() -> None:
    cluster, place = Cluster("t"), TopicPartition("t", 0)
    made = enumerator(cluster, Subscription(topics=["t"]))
    made._group = GroupOffsets(cluster)  # type: ignore[arg-type]
    position = made.latest(None, 100)
    made.checkpointed({"t-0": [3, None, "id of t"]})
    made.checkpointed({"t-0": [5, None, "id of t"]})
    assert made.latest(position, 100) == position
    assert cluster.committing == [({place: 3}, False)]
    cluster.committed(0)
    for _ in range(3):
        made.latest(position, 100)
    assert cluster.committing == [({place: 3}, True), ({place: 5}, False)]
    cluster.committed(1)
    for _ in range(3):
        made.latest(position, 100)
    assert len(cluster.committing) == 2
