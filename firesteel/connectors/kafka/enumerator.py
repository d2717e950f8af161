"""Plans what each batch reads of Kafka's partitions.

The position of a partition is ``[offset, stop, topic id]``: how far it was read, where it ends if the source is
bounded, and what tells the topic from another one of that name. All were found once, when the partition was new, and
are in the checkpoint: a job that goes on begins and ends where it was to, whatever "latest" means by then.

A partition may end before the place up to which it was read: its topic was made anew, or a broker has lost records.
Where the user has allowed for that, the next position has a fourth item, the offset from which the batch reads instead:
the first one of a topic that is another one, the end of one that is the same.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from firesteel.connectors.kafka.errors import lost_records
from firesteel.connectors.kafka.group_offsets import GroupOffsets
from firesteel.connectors.kafka.offsets import SHORTER_SECONDS, Cluster, OffsetsSpec, TopicPartition, begin_of
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.partitions import PartitionEnumerator
from firesteel.errors import ConnectorError, InputError

__all__ = ["KafkaEnumerator", "Subscription"]

logger = logging.getLogger("firesteel")

DISCOVERY_SECONDS = 300.0
"""As in Flink: every five minutes."""

LOOK_SECONDS = 10.0
"""Between two looks at whether records were deleted that are yet to be read, or a topic was made anew."""

Place = list[Any]


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
        self._group: GroupOffsets | None = None
        self._fails_on_loss = properties.get("fail.on.data.loss") != "false"
        self._looked = float("-inf")
        self._first: dict[TopicPartition, int] = {}

    def start(self, directory: str) -> None:
        self._cluster = Cluster(self._properties)
        self._group = GroupOffsets(self._cluster) if self._commits else None

    def stop(self) -> None:
        if self._group is not None:
            self._group.close()
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
            begins = self._brokers.starts(self._start, partitions)
        else:
            # Whatever was asked for at the beginning: of what is new nothing may be missed.
            begins = self._brokers.earliest(partitions)
        stops = {} if self._stop is None else self._brokers.resolve(self._stop, partitions)
        ids = self._brokers.topic_ids(one.topic for one in partitions)
        return {name: [begins[one], stops.get(one), ids[one.topic]] for name, one in splits.items()}

    def ends(self, splits: Mapping[str, TopicPartition], positions: Mapping[str, Place]) -> Mapping[str, Place]:
        if self._group is not None:
            self._group.go_on()
        try:
            return self._ends(splits, positions)
        except ConnectorError:
            left = self._without_deleted(splits)
            if len(left) == len(splits):
                raise
        return self._ends(left, positions)

    def _without_deleted(self, splits: Mapping[str, TopicPartition]) -> Mapping[str, TopicPartition]:
        """Without the topics that are no longer among those that a pattern matches: nobody has named them."""
        if self._subscription.pattern is None:
            return splits
        there = self.discover()
        gone = [name for name in splits if name not in there]
        if gone:
            which = ", ".join(gone[:5]) + (", …" if len(gone) > 5 else "")
            logger.warning("Kafka at %s: %s: the topic was deleted", self._properties.servers, which)
            self.leave_out(gone)
        return {name: one for name, one in splits.items() if name in there}

    def _ends(self, splits: Mapping[str, TopicPartition], positions: Mapping[str, Place]) -> Mapping[str, Place]:
        anew = self._look_for_losses(splits, positions)
        latest = self._latest({one: positions[name][0] for name, one in splits.items()})
        if any(latest[one] < positions[name][0] for name, one in splits.items()) and not anew:
            self._looked = float("-inf")
            anew = self._look_for_losses(splits, positions)
        ends = {}
        for name, one in splits.items():
            offset, stop, *more = positions[name]
            if name in anew or latest[one] < offset:
                ends[name] = self._elsewhere(name, one, positions[name], latest[one], anew)
            elif latest[one] == offset or (stop is not None and offset >= stop):
                ends[name] = positions[name]
            else:
                ends[name] = [latest[one] if stop is None else min(latest[one], stop), stop, *more[:1]]
        return ends

    def _elsewhere(
        self, name: str, partition: TopicPartition, position: Place, latest: int, anew: Mapping[str, str]
    ) -> Place:
        """Where to go on in a partition that does not reach to where it was read."""
        offset, stop, *known = position
        if self._fails_on_loss:
            raise InputError(
                f"Kafka at {self._properties.servers}: partition {name} was read up to offset {offset} and now ends at "
                f"{latest}. {_MADE_ANEW}"
            )
        begin = self._first[partition] if name in anew else latest
        logger.warning(
            "Kafka at %s: partition %s was read up to offset %d and %s. The job goes on at offset %d",
            self._properties.servers,
            name,
            offset,
            "its topic is another one now" if name in anew else f"ends at {latest} now",
            begin,
        )
        end = latest if stop is None else min(latest, max(stop, begin))
        return [end, stop, anew.get(name, *known[:1]), begin]

    def _latest(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        begun = time.monotonic()
        while True:
            latest = self._brokers.latest(positions)
            settled = all(latest[one] >= offset for one, offset in positions.items())
            if settled or time.monotonic() - begun > SHORTER_SECONDS:
                return latest
            time.sleep(0.1)

    def _look_for_losses(
        self, splits: Mapping[str, TopicPartition], positions: Mapping[str, Place]
    ) -> Mapping[str, str]:
        """The partitions whose topic is another one than it was, with its id. Looks from time to time only."""
        if time.monotonic() - self._looked < LOOK_SECONDS or not splits:
            return {}
        ids = self._brokers.topic_ids(one.topic for one in splits.values())
        # Positions of former versions say nothing of the topic.
        known = {name: (*positions[name][2:3], None)[0] or ids[one.topic] for name, one in splits.items()}
        anew = {name: ids[one.topic] for name, one in splits.items() if known[name] != ids[one.topic]}
        if anew and self._fails_on_loss:
            topic = splits[next(iter(anew))].topic
            raise InputError(f"Kafka at {self._properties.servers}: topic {topic!r} is another one. {_MADE_ANEW}")
        self._first = self._brokers.earliest(splits.values())
        for name, one in splits.items():
            if self._first[one] > positions[name][0] and self._fails_on_loss:
                raise lost_records(self._properties, name, positions[name][0], self._first[one])
        self._looked = time.monotonic()
        return anew

    def finished(self, split: TopicPartition, position: Place) -> bool:
        offset, stop, *_ = position
        return stop is not None and bool(offset >= stop)

    def limit(self, split: TopicPartition, start: Place, end: Place, records: int) -> Place:
        # What is known to be deleted takes no time.
        first = max(begin_of(start, end), self._first.get(split, 0))
        return [min(end[0], first + records), *end[1:]]

    def record_count(self, start: Place, end: Place) -> int:
        # Too many where there are gaps: compacted records, the marks of transactions.
        # The fourth item says how one came to a place, not where that is.
        return 0 if start[:3] == end[:3] else int(end[0] - begin_of(start, end))

    def checkpointed(self, positions: Mapping[str, Place]) -> None:
        if self._group is not None:
            self._group.commit({TopicPartition(*_split(name)): place[0] for name, place in positions.items()})


_MADE_ANEW = (
    "It was deleted and made anew, or a broker has lost records. Set the source's property fail.on.data.loss to "
    "'false' to go on with what there is now, or start the job without its checkpoint, or from a savepoint with "
    "another uid for the source."
)


def _split(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return topic, int(number)
