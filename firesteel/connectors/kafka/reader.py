"""Reads ranges of partitions in a task, with a consumer that stays where it is between batches.

A range ends when its last offset was seen, or a later one, or the end of the partition behind it: transactions and
compaction leave gaps, so the last offset itself may never come. What was fetched beyond the range is kept for the
next one, which as a rule goes on there.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import methodcaller
from typing import Any

from firesteel.connectors.kafka.deserializing import Deserializing
from firesteel.connectors.kafka.errors import LastError, explained, load_client
from firesteel.connectors.kafka.offsets import TopicPartition
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.source import CHUNK_RECORDS, Records, SourceReader
from firesteel.errors import ConnectorError, InputError

__all__ = ["KafkaReader"]

PATIENCE = 120.0
"""Seconds without any answer after which a read fails."""
_WAIT = 0.05
_BUFFERED_BYTES = 64 << 20
"""What may wait of other partitions while one is read."""

_offset, _value, _error = methodcaller("offset"), methodcaller("value"), methodcaller("error")


def _place(message: Any) -> TopicPartition:
    return TopicPartition(message.topic(), message.partition())


@dataclass
class _Partition:
    """What is known of a partition that the consumer is assigned to."""

    next: int
    """The offset that the next range is expected to begin with."""
    waiting: deque[list[Any]] = field(default_factory=deque)
    """Messages that were fetched and not handed on, in order and in portions."""
    bytes: int = 0
    """About what these hold."""
    end: int = -1
    """The end of the partition, where the consumer has reached it."""
    paused: bool = False


class KafkaReader(SourceReader[TopicPartition, Any]):
    """Serves all partitions of a subtask with one consumer."""

    interleaves = True

    def __init__(self, properties: KafkaProperties, deserializer: Deserializing) -> None:
        self._properties, self._deserializer = properties, deserializer
        self._known: dict[TopicPartition, _Partition] = {}
        self._client: Any = None
        self._last: LastError | None = None

    def open(self, context: Any) -> None:
        kafka = self._kafka = load_client()
        self._last = LastError()
        own = {
            "group_id": "firesteel",
            "isolation_level": "read_committed",
            "fetch_wait_max_ms": 20,
            "queued_max_messages_kbytes": 65_536,
        }
        given = {name: value for name, value in own.items() if self._properties.get(name.replace("_", ".")) is None}
        settings = self._properties.client(
            **given, enable_auto_commit="false", enable_partition_eof="true", auto_offset_reset="error"
        )
        prefix = self._properties.get("client.id.prefix")
        if prefix is not None:
            settings["client.id"] = f"{prefix}-{context.get_index_of_this_subtask()}"
        try:
            self._client = kafka.Consumer({**settings, "error_cb": self._last, "log_level": 0})
        except kafka.KafkaException as error:
            raise explained(error, self._properties, "the start of a consumer") from None
        self._deserializer.open(context)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def read(self, split: TopicPartition, start: Any, end: Any) -> Iterator[Records[Any] | int]:
        first, behind = start[0], end[0]
        partition = self._seek(split, first)
        while True:
            messages = self._ready(partition, behind)
            if messages:
                partition.next = messages[-1].offset() + 1
                yield self._deserializer.records(messages)
            if self._is_read(partition, behind):
                partition.next = behind
                return
            if not messages:
                self._fetch(split)

    @staticmethod
    def _ready(partition: _Partition, behind: int) -> list[Any]:
        """What was fetched of a range, in a portion of some thousand."""
        if not partition.waiting:
            return []
        portion = partition.waiting.popleft()
        if portion[-1].offset() >= behind:
            here = bisect_left(portion, behind, key=_offset)
            partition.waiting.appendleft(portion[here:])
            portion = portion[:here]
        partition.bytes = 0 if not partition.waiting else partition.bytes
        return portion

    @staticmethod
    def _is_read(partition: _Partition, behind: int) -> bool:
        if partition.waiting:
            return bool(partition.waiting[0][0].offset() >= behind)
        return partition.next >= behind or partition.end >= behind

    def _seek(self, split: TopicPartition, first: int) -> _Partition:
        known = self._known.get(split)
        kafka = self._kafka
        if known is None or known.next != first:
            place = kafka.TopicPartition(*split, first)
            try:
                if known is not None:
                    self._client.incremental_unassign([kafka.TopicPartition(*split)])
                self._client.incremental_assign([place])
            except kafka.KafkaException as error:
                raise self._explained(error, f"reading {split.name} from offset {first}") from None
            known = self._known[split] = _Partition(first)
        if known.paused:
            known.paused = False
            self._client.resume([kafka.TopicPartition(*split)])
        return known

    def _fetch(self, split: TopicPartition) -> None:
        """Waits for messages of this partition. Those of others are kept for later."""
        end = time.monotonic() + PATIENCE
        while not self._take(self._client.consume(CHUNK_RECORDS, _WAIT), split):
            if time.monotonic() > end:
                timed_out = self._kafka.KafkaError(self._kafka.KafkaError._TIMED_OUT)
                raise self._explained(timed_out, f"reading {split.name}")

    def _take(self, messages: list[Any], split: TopicPartition) -> bool:
        """Sorts messages by partition. Returns whether there was something of this one."""
        if not messages:
            return False
        mine = False
        if any(map(_error, messages)):
            mine = self._look_at_errors([message for message in messages if message.error() is not None], split)
            messages = [message for message in messages if message.error() is None]
        # Nothing is asked of each message that can be asked of all: most often they are of one partition.
        for place, portion in groupby(messages, _place) if len(self._known) > 1 else [(split, messages)]:
            known = self._known.get(place)
            messages = list(portion)
            if known is None or not messages:
                continue
            known.waiting.append(messages)
            if place == split:
                mine = True
            else:
                known.bytes += sum(map(len, filter(None, map(_value, messages))))
                self._hold_back(place, known)
        return mine

    def _look_at_errors(self, messages: list[Any], split: TopicPartition) -> bool:
        mine = False
        for message in messages:
            place = _place(message) if message.topic() else split
            if message.error().code() != self._kafka.KafkaError._PARTITION_EOF:
                self._failed(message.error(), place)
            elif place in self._known:
                self._known[place].end = message.offset()
                mine = mine or place == split
        return mine

    def _hold_back(self, place: TopicPartition, known: _Partition) -> None:
        """Another partition than the one that is read waits, where too much of it was fetched already."""
        if not known.paused and known.bytes > _BUFFERED_BYTES:
            known.paused = True
            self._client.pause([self._kafka.TopicPartition(*place)])

    def _failed(self, error: Any, place: TopicPartition) -> None:
        kafka = self._kafka.KafkaError
        if error.code() in (kafka._AUTO_OFFSET_RESET, kafka.OFFSET_OUT_OF_RANGE):
            known = self._known.get(place)
            raise InputError(
                f"Kafka at {self._properties.servers}: the records of {place.name} from offset "
                f"{known.next if known else '?'} on, which the job has yet to read, are not there any more. The "
                "topic's retention has deleted them, or the topic was made anew. Start the job without its checkpoint."
            )
        if error.code() in (kafka._ALL_BROKERS_DOWN, kafka._TRANSPORT, kafka._TIMED_OUT):
            # The client goes on trying.
            return
        raise self._explained(error, f"reading {place.name}")

    def _explained(self, error: Any, doing: str) -> ConnectorError:
        return explained(error, self._properties, doing, None if self._last is None else self._last.behind)
