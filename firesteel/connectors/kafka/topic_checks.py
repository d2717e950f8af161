"""What a topic takes, checked before a record is kept for later: its broker would refuse it when that is too late."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from firesteel.connectors.kafka.offsets import Cluster
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.record_size import OVERHEAD, client_limit, compressed_size, too_large, topic_limit
from firesteel.connectors.kafka.serializing import OutgoingRecord
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["TopicChecks"]


class _Topic(NamedTuple):
    partitions: int
    limit: int
    """Bytes that it takes at once."""
    needs_keys: bool
    behind: int | None
    """Milliseconds by which a timestamp may be before the clock's; None for any."""
    ahead: int | None


class TopicChecks:
    """Looks topics up when a record is first to go to one."""

    def __init__(self, properties: KafkaProperties) -> None:
        self._properties = properties
        self._cluster: Cluster | None = None
        self._known: dict[str, _Topic] = {}
        self._largest = client_limit(properties)
        self._codec = properties.get("compression.type") or properties.get("compression.codec") or "none"
        self._now = 0

    def look_at_the_clock(self) -> None:
        """Before each portion of records: not for each of them."""
        self._now = int(time.time() * 1000)

    def check(self, record: OutgoingRecord) -> int:
        """The size of a record that its topic takes."""
        topic, value, key, partition, timestamp, headers = record
        size = len(value or b"") + len(key or b"")
        if headers:
            size += sum(len(name) + len(content or b"") for name, content in headers)
        known = self._known.get(topic)
        if known is None:
            known = self._known[topic] = self._look_at(topic)
        partitions, limit, needs_keys, behind, ahead = known
        if partition >= partitions:
            # It may have got more of them since.
            self._known[topic] = self._look_at(topic)
            partitions = self._known[topic].partitions
            if partition >= partitions:
                raise self._refused(
                    f"topic {topic!r} has {partitions} partitions, and a record is to go to partition {partition}. "
                    "Check the partitioner."
                )
        if size > limit - OVERHEAD:
            self._check_size(record, size, limit)
        if needs_keys and key is None:
            raise self._refused(f"topic {topic!r} is compacted, and a record for it has no key. Give records keys.")
        # Without one it gets the time at which it is sent.
        if timestamp:
            if ahead is not None and timestamp - self._now > ahead:
                raise self._refused_time(topic, timestamp, f"ahead of the clock by more than the {ahead:,}", "after")
            if behind is not None and self._now - timestamp > behind:
                raise self._refused_time(topic, timestamp, f"behind the clock by more than the {behind:,}", "before")
        return size

    def _check_size(self, record: OutgoingRecord, size: int, limit: int) -> None:
        """Compression may make it fit, for the topic but not for the client."""
        if size <= self._largest - OVERHEAD and self._codec != "none":
            parts = [record.value or b"", record.key or b""]
            parts += [content or b"" for _, content in record.headers or ()]
            if compressed_size(self._codec, *parts) <= limit - OVERHEAD:
                return
        raise too_large(self._properties, self._cluster_now(), record.topic, size)

    def _refused(self, why: str) -> ConnectorError:
        return ConnectorError(f"Kafka at {self._properties.servers}: {why}", kind=FailureKind.PERMANENT)

    def _refused_time(self, topic: str, timestamp: int, what: str, which: str) -> ConnectorError:
        return self._refused(
            f"topic {topic!r} refuses a record with the timestamp {timestamp}, its event time: it is {what} ms of the "
            f"topic's message.timestamp.{which}.max.ms. Raise that, or set message.timestamp.type to LogAppendTime."
        )

    def smallest(self, topics: Iterable[str]) -> int:
        """What may be sent at once, for the topic that takes least."""
        return min(self._known[topic].limit for topic in set(topics))

    def _look_at(self, topic: str) -> _Topic:
        cluster = self._cluster_now()
        partitions = len(cluster.partitions(lambda name: True, [topic]))
        settings = cluster.topic_settings(topic)
        by_record = settings.get("message.timestamp.type", "CreateTime") == "CreateTime"
        return _Topic(
            partitions,
            min(self._largest, topic_limit(settings) or self._largest),
            "compact" in settings.get("cleanup.policy", ""),
            _milliseconds(settings, "message.timestamp.before.max.ms") if by_record else None,
            _milliseconds(settings, "message.timestamp.after.max.ms") if by_record else None,
        )

    def _cluster_now(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._properties)
        return self._cluster

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


def _milliseconds(settings: Mapping[str, str], name: str) -> int | None:
    # One setting for both in brokers before 3.6.
    given = settings.get(name, settings.get("message.timestamp.difference.max.ms"))
    # The largest number that there is stands for any.
    return None if given is None or int(given) >= 2**63 - 1 else int(given)
