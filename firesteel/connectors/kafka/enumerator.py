"""Plans what each batch reads of Kafka's partitions.

The position of a partition is ``[offset, stop]``: how far it was read, and where it ends if the source is bounded. Both
are numbers that were found once, when the partition was new, and that the checkpoint holds: a job that goes on begins
and ends where it was to, whatever "latest" means by then.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

from firesteel.connectors.kafka.offsets import Cluster, OffsetsSpec, TopicPartition
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.partitions import PartitionEnumerator
from firesteel.errors import ConnectorError, InputError

__all__ = ["KafkaEnumerator", "Subscription"]

logger = logging.getLogger("firesteel")

DISCOVERY_SECONDS = 300.0
"""As in Flink: every five minutes."""

Place = list[int | None]


class Subscription:
    """Which partitions are read: of named topics, of topics whose names match a pattern, or named ones."""

    def __init__(
        self,
        topics: Iterable[str] | None = None,
        pattern: str | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> None:
        self.topics = None if topics is None else list(dict.fromkeys(topics))
        self.pattern = pattern
        self.chosen = None if partitions is None else sorted(set(partitions))

    def partitions(self, cluster: Cluster) -> list[TopicPartition]:
        """Those that there are now."""
        if self.chosen is not None:
            topics = sorted({one.topic for one in self.chosen})
            there = set(cluster.partitions(lambda name: True, topics))
            missing = [one.name for one in self.chosen if one not in there]
            if missing:
                raise InputError(f"Kafka has no partition {', '.join(missing)}. Check the numbers of partitions.")
            return self.chosen
        if self.pattern is not None:
            matches = re.compile(self.pattern).fullmatch
            return cluster.partitions(lambda name: matches(name) is not None, None)
        return cluster.partitions(lambda name: True, self.topics)

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics like {self.pattern!r}"
        return ", ".join(self.topics or [one.name for one in self.chosen or ()])


class KafkaEnumerator(PartitionEnumerator[TopicPartition]):
    """Partitions are splits."""

    def __init__(
        self,
        properties: KafkaProperties,
        subscription: Subscription,
        start: OffsetsSpec,
        stop: OffsetsSpec | None,
        bounded: bool,
    ) -> None:
        self._properties, self._subscription = properties, subscription
        self._start, self._stop = start, stop
        self.bounded = bounded
        interval = properties.get("partition.discovery.interval.ms")
        # Below 0: never again.
        seconds = DISCOVERY_SECONDS if interval is None else int(interval) / 1000
        self.discovery_interval = float("inf") if seconds <= 0 or bounded else seconds
        self._commits = (
            properties.get("group.id") is not None and properties.get("commit.offsets.on.checkpoint") != "false"
        )
        self._cluster: Cluster | None = None
        self._committed: dict[str, int] = {}
        self._warned = False

    def start(self, directory: str) -> None:
        self._cluster = Cluster(self._properties)

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    @property
    def _brokers(self) -> Cluster:
        assert self._cluster is not None, "start() comes first"
        return self._cluster

    def discover(self) -> Mapping[str, TopicPartition]:
        return {one.name: one for one in self._subscription.partitions(self._brokers)}

    def starts(self, splits: Mapping[str, TopicPartition], initial: bool) -> Mapping[str, Place]:
        partitions = list(splits.values())
        if initial:
            begins = self._brokers.resolve(self._start, partitions)
        else:
            # Whatever was asked for at the beginning: of what is new nothing may be missed.
            begins = self._brokers.earliest(partitions)
        stops = {} if self._stop is None else self._brokers.resolve(self._stop, partitions)
        return {name: [begins[one], stops.get(one)] for name, one in splits.items()}

    def ends(self, splits: Mapping[str, TopicPartition], positions: Mapping[str, Place]) -> Mapping[str, Place]:
        latest = self._brokers.latest(splits.values())
        ends = {}
        for name, one in splits.items():
            offset, stop = positions[name]
            assert offset is not None
            if latest[one] < offset:
                raise InputError(
                    f"Kafka at {self._properties.servers}: partition {name} was read up to offset {offset} and now "
                    f"ends at {latest[one]}. Its topic was deleted and made anew, or a broker has lost records. Start "
                    "the job without its checkpoint, or from a savepoint with another uid for the source."
                )
            ends[name] = [latest[one] if stop is None else min(latest[one], max(stop, offset)), stop]
        return ends

    def finished(self, split: TopicPartition, position: Place) -> bool:
        offset, stop = position
        return stop is not None and offset is not None and offset >= stop

    def limit(self, split: TopicPartition, start: Place, end: Place, records: int) -> Place:
        assert start[0] is not None
        assert end[0] is not None
        return [min(end[0], start[0] + records), end[1]]

    def record_count(self, start: Place, end: Place) -> int:
        # Too many where there are gaps: compacted records, the marks of transactions.
        return (end[0] or 0) - (start[0] or 0)

    def checkpointed(self, positions: Mapping[str, Place]) -> None:
        if not self._commits:
            return
        known = {name: offset for name, (offset, _) in positions.items() if offset is not None}
        new = {name: offset for name, offset in known.items() if self._committed.get(name) != offset}
        if not new:
            return
        partitions = {name: TopicPartition(*_split(name)) for name in new}
        try:
            self._brokers.commit({partitions[name]: offset for name, offset in new.items()})
        except ConnectorError as error:
            # Nothing depends on it but those who look on: the job's positions are in its checkpoint.
            if not self._warned:
                self._warned = True
                logger.warning("%s The job goes on; its own positions are in its checkpoint.", error)
            return
        self._warned = False
        self._committed.update(new)


def _split(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return topic, int(number)
