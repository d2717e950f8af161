"""Writers into Kafka: at least once, and exactly once through transactions that the driver commits.

1. **Begin** (task, at a batch's first record). A writer has two producers that take turns, with a transactional id of
   its own each. When one has its next turn, the transaction of its last one has been committed: the driver commits a
   batch before it takes the results of the next. So an id has at most one transaction that anybody waits for, and what
   is open under the other one after a crash can be aborted without a question.
2. **Write** (task). *Crash here:* the transaction stays open, without an owner; recovery aborts it.
3. **Prepare** (task). All records are flushed, and none was refused: a flush that leaves nothing behind is not enough,
   since a record that is too large is not in the queue any more either. The broker is asked for the transaction's
   numbers: those are the committable.
4. **Commit** (driver, when the batch is logged): see :mod:`firesteel.connectors.kafka.committing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.connectors.kafka.committing import committable
from firesteel.connectors.kafka.producing import Producing
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.serializing import Serializer
from firesteel.connectors.kafka.transactions import Transaction, Transactions
from firesteel.datastream.connectors.base import SinkWriter
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ConnectorError

__all__ = ["PlainWriter", "TransactionalWriter"]

_INIT_SECONDS = 60


class PlainWriter(SinkWriter):
    """Sends records as they come. ``at_least_once``: a batch is not complete before all of them are on the broker."""

    def __init__(self, properties: KafkaProperties, serializer: Serializer, at_least_once: bool) -> None:
        self._serializer = serializer
        self._wait = at_least_once
        self._producer = Producing(
            properties, **({} if at_least_once else {"acks": "1", "enable_idempotence": "false"})
        )

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        record = self._serializer(value, context.timestamp())
        if record is not None:
            self._producer.send(record)

    def write_all(self, values: Iterator[Any], timestamps: list[int] | None) -> None:
        self._producer.send_all(values, timestamps, self._serializer)

    def flush(self, end_of_input: bool) -> None:
        if self._wait or end_of_input:
            self._producer.flush()

    def close(self) -> None:
        self._producer.abandon()


class _Turn:
    """One of the producers that take turns."""

    def __init__(self, properties: KafkaProperties, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer = Producing(properties, transactional_id=transactional_id)
        self.prepared: Transaction | None = None
        self.producer.start_transactions(_INIT_SECONDS)

    def begin(self) -> None:
        attempt, client = self.producer.attempt, self.producer.client
        if self.prepared is not None:
            # The driver has committed it. The client does not know; its own commit finds it done.
            attempt("the start of a transaction", client.commit_transaction, _INIT_SECONDS)
            self.prepared = None
        attempt("the start of a transaction", client.begin_transaction)
        self.producer.sent = 0


class TransactionalWriter(SinkWriter):
    """One transaction per batch."""

    def __init__(self, properties: KafkaProperties, serializer: Serializer, name: str) -> None:
        self._properties, self._serializer = properties, serializer
        self._name = name
        self._made = 0
        self._turns: list[_Turn] = []
        self._open: _Turn | None = None
        self._transactions: Transactions | None = None

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self.write_all(iter((value,)), None if (moment := context.timestamp()) is None else [moment])

    def write_all(self, values: Iterator[Any], timestamps: list[int] | None) -> None:
        if self._open is None:
            self._open = self._next()
        self._open.producer.send_all(values, timestamps, self._serializer)

    def _next(self) -> _Turn:
        if len(self._turns) < 2:
            turn = self._new()
        else:
            turn = self._turns.pop(0)
            if not self._is_settled(turn):
                # Nobody has committed it, and nobody will: its batch came again, to another writer. Recovery ends it.
                turn.producer.abandon()
                turn = self._new()
        self._turns.append(turn)
        turn.begin()
        return turn

    def _new(self) -> _Turn:
        self._made += 1
        return _Turn(self._properties, f"{self._name}-{self._made}")

    def _is_settled(self, turn: _Turn) -> bool:
        if turn.prepared is None:
            return True
        known = self._look().describe([turn.transactional_id]).get(turn.transactional_id)
        return known is not None and known.transaction == turn.prepared and known.is_committed

    def _look(self) -> Transactions:
        if self._transactions is None:
            self._transactions = Transactions(self._properties)
        return self._transactions

    def prepare_commit(self) -> list[Any]:
        turn, self._open = self._open, None
        if turn is None:
            return []
        turn.producer.flush()
        if not turn.producer.sent:
            # Every element was left out. The broker knows of a transaction by its first record.
            turn.producer.attempt("the end of a transaction", turn.producer.client.abort_transaction, _INIT_SECONDS)
            return []
        known = self._look().describe([turn.transactional_id]).get(turn.transactional_id)
        if known is None or not known.is_open:
            raise ConnectorError(
                f"Kafka at {self._properties.servers}: the transaction {turn.transactional_id} of this batch is gone "
                f"({'unknown' if known is None else known.state}). It was open for longer than "
                "transaction.timeout.ms, or another process has fenced it. The batch will be retried."
            )
        turn.prepared = known.transaction
        return [committable(known, turn.producer.sent)]

    def close(self) -> None:
        # What is open still is ended by recovery, which makes sure that nobody waits for it.
        for turn in self._turns:
            turn.producer.abandon()
        if self._transactions is not None:
            self._transactions.close()
