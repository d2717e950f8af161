"""Reads ranges of partitions in a task, with a consumer that stays where it is between batches.

A range ends when its last offset was seen, or a later one, or the end of the partition behind it: transactions and
compaction leave gaps, so the last offset itself may never come. What was fetched beyond the range is kept for the
next one, which as a rule goes on there.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import methodcaller
from typing import Any

from firesteel.connectors.kafka.deserializing import Deserializing
from firesteel.connectors.kafka.errors import LastError, explained, load_client, lost_records
from firesteel.connectors.kafka.offsets import SHORTER_SECONDS, TopicPartition, begin_of
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.source import CHUNK_RECORDS, Records, SideRecords, SourceReader, SplitRange
from firesteel.errors import ConnectorError

__all__ = ["KafkaReader"]

logger = logging.getLogger("firesteel")

PATIENCE = 120.0
"""Seconds without any answer after which a read fails."""
_WAIT = 0.05
_MOMENT = 0.005
_BUFFERED_BYTES = 64 << 20
"""What may wait of other partitions while one is read."""
_LOOK_SECONDS = 30.0
_APPEAR_SECONDS = 10.0
"""For so long a broker may not know a partition yet that another one knew."""

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
    """About what these hold, where they came while another partition was read."""
    end: int = -1
    """The end of the partition, where the consumer has reached it."""
    floor: int = -1
    """The first offset that there is, where those before it turned out to be deleted."""
    deleted_from: int = -1
    """Where those begin that were deleted."""
    gone: bool = False
    """Whether the partition ends before what is to be read."""
    tried_again: bool = False
    """Whether it was taken up again where it was, and has brought nothing since."""
    paused: bool = False

    @property
    def fetched(self) -> int:
        """The offset behind all that was fetched."""
        return max(self.next, self.waiting[-1][-1].offset() + 1) if self.waiting else self.next


class KafkaReader(SourceReader[TopicPartition, Any]):
    """Serves all partitions of a subtask with one consumer."""

    interleaves = True

    def __init__(self, properties: KafkaProperties, deserializer: Deserializing) -> None:
        self._properties, self._deserializer = properties, deserializer
        self._known: dict[TopicPartition, _Partition] = {}
        self._held = 0
        """The bytes of all partitions together."""
        self._client: Any = None
        self._last: LastError | None = None
        self._fails_on_loss = properties.get("fail.on.data.loss") != "false"
        self._deleted: Any = None

    def open(self, context: Any) -> None:
        kafka = self._kafka = load_client()
        self._last = LastError()
        own = {
            "group_id": "firesteel",
            "isolation_level": "read_committed",
            "fetch_wait_max_ms": 20,
            "queued_max_messages_kbytes": 65_536,
            # The client's own 100,000 are read in a third of a second, and it would not look for a second whether they
            # were.
            "queued_min_messages": 1_000_000,
            "fetch_queue_backoff_ms": 10,
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
        self._deleted = context.get_metrics_group().counter("deletedRecords")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def begin(self, ranges: Sequence[SplitRange[TopicPartition]]) -> None:
        # All of them at once: while one is read, the others are fetched.
        new = {
            split: begin_of(start, end)
            for split, start, end, _ in ranges
            if start[:1] != [begin_of(start, end)] or not self._stands_at(split, start[0])
        }
        if new:
            self._assign(new)

    def read(self, split: TopicPartition, start: Any, end: Any) -> Iterator[Records[Any] | SideRecords | int]:
        first, behind = begin_of(start, end), end[0]
        if not self._stands_at(split, first):
            self._assign({split: first})
        partition = self._known[split]
        while True:
            messages = self._ready(partition, behind)
            if messages:
                partition.next = messages[-1].offset() + 1
                partition.tried_again = False
                yield from self._deserializer.records(messages)
            if self._is_read(partition, behind):
                break
            if not messages:
                self._fetch(split, behind - partition.next)
        if partition.floor > first:
            self._count_deleted(split, max(first, partition.deleted_from), min(partition.floor, behind))
        elif partition.gone and not partition.waiting:
            self._count_deleted(split, partition.next, behind)
            # Whatever comes next begins anew.
            del self._known[split]
            self._client.incremental_unassign([self._kafka.TopicPartition(*split)])
        partition.next = behind

    def _stands_at(self, split: TopicPartition, first: int) -> bool:
        known = self._known.get(split)
        return known is not None and known.next == first

    def _assign(self, places: dict[TopicPartition, int]) -> None:
        kafka = self._kafka
        known = [kafka.TopicPartition(*split) for split in places if split in self._known]
        try:
            if known:
                self._client.incremental_unassign(known)
            self._client.incremental_assign([kafka.TopicPartition(*split, first) for split, first in places.items()])
        except kafka.KafkaException as error:
            names = ", ".join(f"{split.name} from offset {first}" for split, first in places.items())
            raise self._explained(error, f"reading {names}") from None
        for split, first in places.items():
            if split in self._known:
                self._held -= self._known[split].bytes
            self._known[split] = _Partition(first)

    def _ready(self, partition: _Partition, behind: int) -> list[Any]:
        """What was fetched of a range, in a portion of some thousand."""
        if not partition.waiting:
            return []
        portion = partition.waiting.popleft()
        if portion[-1].offset() >= behind:
            here = bisect_left(portion, behind, key=_offset)
            partition.waiting.appendleft(portion[here:])
            portion = portion[:here]
        if not partition.waiting:
            self._held -= partition.bytes
            partition.bytes = 0
        return portion

    @staticmethod
    def _is_read(partition: _Partition, behind: int) -> bool:
        if partition.waiting:
            return bool(partition.waiting[0][0].offset() >= behind)
        return partition.gone or max(partition.next, partition.end, partition.floor) >= behind

    def _fetch(self, split: TopicPartition, wanted: int) -> None:
        """Waits for messages of this partition. Those of others are kept for later."""
        end = time.monotonic() + PATIENCE
        consume = self._client.consume
        if self._known[split].paused:
            # Here and not when its range was begun: while several are read in turn, each may have to wait.
            self._known[split].paused = False
            self._client.resume([self._kafka.TopicPartition(*split)])
        while True:
            # It waits until it has as many as it was asked for, or for the whole time: so for as many as there should
            # be, a moment; then for one, and for what else is there.
            messages = consume(max(1, min(CHUNK_RECORDS, wanted)), _MOMENT)
            if not messages:
                messages = consume(1, _WAIT)
                if messages:
                    messages += consume(CHUNK_RECORDS - 1, 0)
            if self._take(messages, split):
                if self._last is not None:
                    self._last.forget()
                return
            if time.monotonic() > end:
                timed_out = self._kafka.KafkaError(self._kafka.KafkaError._TIMED_OUT)
                raise self._explained(timed_out, f"reading {split.name}")

    def _take(self, messages: list[Any], split: TopicPartition) -> bool:
        """Sorts messages by partition. Returns whether there was something of this one."""
        if not messages:
            return False
        mine, failed = False, []
        if any(map(_error, messages)):
            failed = [message for message in messages if message.error() is not None]
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
                size = sum(map(len, filter(None, map(_value, messages))))
                known.bytes += size
                self._held += size
                self._hold_back(place, known)
        # Now: where a partition is taken up again depends on what came before.
        return self._look_at_errors(failed, split) or mine

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
        """Another partition than the one that is read waits, where too much was fetched already."""
        if not known.paused and self._held > _BUFFERED_BYTES:
            known.paused = True
            self._client.pause([self._kafka.TopicPartition(*place)])

    def _failed(self, error: Any, place: TopicPartition) -> None:
        kafka = self._kafka.KafkaError
        if error.code() in (kafka._AUTO_OFFSET_RESET, kafka.OFFSET_OUT_OF_RANGE):
            if place in self._known:
                self._go_on_behind_deleted(place, self._known[place])
            return
        if error.code() in (kafka._ALL_BROKERS_DOWN, kafka._TRANSPORT, kafka._TIMED_OUT):
            # The client goes on trying.
            return
        unknown = (kafka._UNKNOWN_PARTITION, kafka._UNKNOWN_TOPIC, kafka.UNKNOWN_TOPIC_OR_PART)
        if error.code() in unknown and place in self._known and self._is_there(place):
            # Somebody has counted its records, so a client that does not know it has an older view of the topic.
            self._take_up(place, self._known[place].fetched)
            return
        if error.code() == kafka.GROUP_AUTHORIZATION_FAILED:
            # Reading does without the group. Whoever commits its offsets says so.
            return
        raise self._explained(error, f"reading {place.name}")

    def _go_on_behind_deleted(self, place: TopicPartition, known: _Partition) -> None:
        # What was fetched is handed on yet, and must not come twice.
        wanted = known.fetched
        first, end = self._bounds(place, wanted)
        if first <= wanted <= end and not known.tried_again:
            # A broker that is back has found its end again.
            known.tried_again = True
            first = wanted
        elif self._fails_on_loss:
            raise lost_records(self._properties, place.name, wanted, first)
        elif first <= wanted:
            known.gone = True
            return
        else:
            known.floor, known.deleted_from = first, wanted
        self._take_up(place, first)

    def _take_up(self, place: TopicPartition, first: int) -> None:
        self._client.incremental_unassign([self._kafka.TopicPartition(*place)])
        self._client.incremental_assign([self._kafka.TopicPartition(*place, first)])

    def _is_there(self, place: TopicPartition) -> bool:
        """Looks for a partition, for a while: not every broker knows a new one at once."""
        begun = time.monotonic()
        while True:
            try:
                found = self._client.list_topics(place.topic, timeout=_LOOK_SECONDS).topics[place.topic]
            except self._kafka.KafkaException as error:
                raise self._explained(error, f"a look for {place.name}") from None
            if found.error is None and place.partition in found.partitions:
                return True
            if time.monotonic() - begun > _APPEAR_SECONDS:
                return False
            time.sleep(0.1)

    def _bounds(self, place: TopicPartition, wanted: int) -> tuple[int, int]:
        """The first offset of a partition and the one behind its last, which a broker that is back may have to find."""
        begun = time.monotonic()
        while True:
            try:
                here = self._kafka.TopicPartition(*place)
                first, end = self._client.get_watermark_offsets(here, _LOOK_SECONDS)
            except self._kafka.KafkaException as error:
                raise self._explained(error, f"reading {place.name} from offset {wanted}") from None
            if end >= wanted or time.monotonic() - begun > SHORTER_SECONDS:
                return int(first), int(end)
            time.sleep(0.1)

    def _count_deleted(self, split: TopicPartition, first: int, end: int) -> None:
        if first >= end:
            return
        self._deleted.inc(end - first)
        logger.warning(
            "%s: the records from offset %d to %d were gone before they were read", split.name, first, end - 1
        )

    def _explained(self, error: Any, doing: str) -> ConnectorError:
        return explained(error, self._properties, doing, None if self._last is None else self._last.behind)
