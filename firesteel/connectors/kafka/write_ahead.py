"""The second way to write exactly once: records wait in the checkpoint folder until their batch is complete.

1. **Write** (task). Elements become records, and are checked for what a broker would refuse: a commit that can never
   succeed would be the end of the job. Nothing is sent. *Crash here:* there is nothing to clean up.
2. **Prepare** (task). The records themselves are the committables, which the driver logs in the checkpoint folder.
3. **Commit** (driver, when the batch is logged). One transaction holds all records of the batch and, as the offset of a
   consumer group of the sink's own, the number of the batch. *Crash before its end:* the transaction is aborted when
   the next driver begins, and all of it is written again. *Crash after it:* the group's offset says that it is done.

So a batch may wait for as long as the checkpoint folder lives, where a prepared transaction has to be committed before
it times out. The price: all records pass through the driver, one batch after the other.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

from firesteel.connectors.kafka.markers import ALL, Markers
from firesteel.connectors.kafka.offsets import Cluster
from firesteel.connectors.kafka.producing import Producing
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.record_size import batch_bytes
from firesteel.connectors.kafka.serializing import OutgoingRecord, Serializer
from firesteel.connectors.kafka.topic_checks import TopicChecks
from firesteel.connectors.kafka.transactions import Partition, Transactions, TransactionState
from firesteel.datastream.connectors.base import Committer, CommitterContext, SinkWriter
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ConnectorError

__all__ = ["WriteAheadCommitter", "WriteAheadWriter"]

_SECONDS = 60
_GROUPS = "__consumer_offsets"
_PIECE_BYTES = 16 << 20
"""About how much one committable holds."""


class WriteAheadWriter(SinkWriter):
    """Collects the records of a batch."""

    def __init__(self, properties: KafkaProperties, serializer: Serializer) -> None:
        self._properties, self._serializer = properties, serializer
        self._records: list[OutgoingRecord] = []
        self._bytes = 0
        self._pieces: list[tuple[int, bytes, int]] = []
        self._topics = TopicChecks(properties)

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        moment = context.timestamp()
        self.write_all(iter((value,)), None if moment is None else [moment])

    def write_all(self, values: Iterator[Any], timestamps: list[int] | None) -> None:
        serializer, keep, check = self._serializer, self._records.append, self._topics.check
        self._topics.look_at_the_clock()
        for element, moment in zip(values, repeat(None) if timestamps is None else timestamps):  # noqa: B905 - one is endless
            record = serializer(element, moment)
            if record is not None:
                self._bytes += check(record)
                keep(record)
        if self._bytes > _PIECE_BYTES:
            self._pack()

    def _pack(self) -> None:
        # Columns: names of topics and of headers are then stored once.
        columns = list(zip(*self._records, strict=True))
        self._pieces.append((len(self._records), pickle.dumps(columns, protocol=5), self._topics.smallest(columns[0])))
        self._records.clear()
        self._bytes = 0

    def prepare_commit(self) -> list[Any]:
        if self._records:
            self._pack()
        pieces, self._pieces = self._pieces, []
        return list(pieces)

    def close(self) -> None:
        self._topics.close()


class WriteAheadCommitter(Committer):
    """Writes batches whose records were logged. It has one producer, and one group, for the life of the job."""

    def __init__(self, properties: KafkaProperties, name: str, context: CommitterContext) -> None:
        self._properties, self._name, self._context = properties, name, context
        self._transactions = Transactions(properties)
        self._markers = Markers(self._transactions)
        self._producer: Producing | None = None
        self._groups: Cluster | None = None
        self._next = 0
        """The first batch that is not written."""
        self._together = batch_bytes(properties)
        """What the client may send at once: brokers refuse what is more than a topic's records may be, also if it is
        several records. By then the batch is logged, so that must not happen."""

    def recover(self, pending: list[Any]) -> None:
        # Ends what a driver that is dead has left open, and fences one that only seems to be.
        self._started(pending)

    def commit(self, committables: list[Any]) -> None:
        # Earlier versions did not say how much their topics take.
        together = min((one[2] for one in committables if len(one) > 2), default=self._together)
        if together < self._together:
            self._together = together
            self._stop()
        batch, producer = self._context.checkpoint_id(), self._started(committables)
        if batch < self._next:
            return
        try:
            self._write(producer, committables, batch)
        except BaseException:
            # How much of it happened is found out by the one who comes next.
            self._stop()
            raise
        self._next = batch + 1

    def _write(self, producer: Producing, committables: list[Any], batch: int) -> None:
        attempt, client = producer.attempt, producer.client
        attempt("the start of a transaction", client.begin_transaction)
        marked = None
        for piece in committables:
            for record in map(OutgoingRecord._make, zip(*pickle.loads(piece[1]), strict=True)):
                producer.send(record)
                marked = marked or record.topic
        producer.flush()
        assert marked is not None
        assert self._groups is not None
        attempt(
            "marking the batch as written",
            client.send_offsets_to_transaction,
            # The first partition of any topic that there is will do.
            [producer.kafka.TopicPartition(marked, 0, batch + 1)],
            self._groups.group_metadata(),
            _SECONDS,
        )
        self._commit()
        # The client does not know of that; its own commit finds it done.
        attempt("the commit of a transaction", client.commit_transaction, _SECONDS)

    def _commit(self) -> None:
        """Returns when the transaction can be read."""
        prepared = self._transactions.describe([self._name]).get(self._name)
        if prepared is None or not prepared.is_open:
            raise ConnectorError(
                f"Kafka at {self._properties.servers}: the transaction {self._name} of this batch is gone. Another "
                "process has fenced this producer. The batch will be retried."
            )
        self._transactions.commit([prepared.transaction])
        self._markers.wait({prepared.transaction: prepared.partitions})

    def _started(self, pending: list[Any]) -> Producing:
        if self._producer is not None:
            return self._producer
        # 1. What an earlier producer has left. Where its commit is decided, it has to be seen by all before the id is
        # used again: the group's offset is among it, and without its marker that is waited for in vain.
        left = self._transactions.describe([self._name]).get(self._name)
        if left is not None and left.is_committed:
            self._markers.wait({left.transaction: _places(left, pending)})
        # 2. Whatever was open under this id has ended after this, one way or the other, and stays so.
        properties = self._properties.having({"batch.size": str(self._together)})
        producer = Producing(properties, transactional_id=self._name)
        producer.start_transactions(_SECONDS)
        if left is not None and (left.is_open or left.is_aborted):
            self._markers.wait({left.transaction: _places(left, pending)}, committed=False)
        # 3. So this is final.
        if self._groups is None:
            # What a transaction that is being ended has not committed yet is waited for.
            known = {"group.id": self._name, "isolation.level": "read_committed"}
            self._groups = Cluster(self._properties.having(known))
        self._next = max(self._groups.first_committed().values(), default=0)
        self._producer = producer
        return producer

    def _stop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.abandon()

    def close(self) -> None:
        self._stop()
        self._transactions.close()
        if self._groups is not None:
            self._groups.close()
            self._groups = None


def _places(left: TransactionState, pending: list[Any]) -> Iterable[Partition]:
    """Where a transaction may have written. Once it has ended nobody knows any more: then where its batch would."""
    if left.partitions or not pending:
        return left.partitions
    topics = {topic for piece in pending for topic in pickle.loads(piece[1])[0]}
    return [(topic, ALL) for topic in (*topics, _GROUPS)]
