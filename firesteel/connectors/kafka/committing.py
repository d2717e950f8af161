"""The committer of Kafka's sink, in the driver.

A transaction that a task has prepared is committed from here, also if the task's process is gone (``EndTxn`` with its
numbers). What else is open under the sink's ids was left by a task that died, or that Spark repeated, and is aborted,
since an open transaction keeps everybody who reads committed records only from reading on: when an attempt begins
(*recover*), and after each commit (*sweep*). No writer is at work then: a batch is committed before the tasks of the
next one begin.
"""

from __future__ import annotations

import logging
from typing import Any

from firesteel.connectors.kafka.markers import ALL, Markers
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import (
    ABORTED,
    BEING_ABORTED,
    OPEN,
    LostTransactionsError,
    Partition,
    Transaction,
    Transactions,
    TransactionState,
)
from firesteel.datastream.connectors.base import Committer
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["TransactionCommitter", "committable", "transaction_of"]

logger = logging.getLogger("firesteel")

_being_aborted: dict[str, dict[Transaction, tuple[Partition, ...]]] = {}
"""By the prefix of a sink's ids what this process has begun to abort, for its next attempt."""


def committable(prepared: TransactionState, records: int) -> tuple[Any, ...]:
    """What a writer gives out: plain data, which is kept in the checkpoint folder."""
    return (*prepared.transaction, records, prepared.partitions)


def transaction_of(one: Any) -> Transaction:
    return Transaction(*one[:4])


class TransactionCommitter(Committer):
    """Commits what the tasks prepared."""

    def __init__(self, properties: KafkaProperties, prefix: str, topic: str | None = None) -> None:
        """``topic``: where all records go, if that is one."""
        self._topic = topic
        self._transactions = Transactions(properties)
        self._markers = Markers(self._transactions)
        self._prefix = prefix
        self._fails_on_loss = properties.get("fail.on.data.loss") != "false"

    def commit(self, committables: list[Any]) -> None:
        self._commit(committables)
        self._sweep()

    def recover_and_commit(self, committables: list[Any]) -> None:
        self._commit(committables)

    def _commit(self, committables: list[Any]) -> None:
        lost: list[Transaction] = []
        try:
            self._transactions.commit(map(transaction_of, committables))
        except LostTransactionsError as error:
            records = sum(one[4] for one in committables if transaction_of(one) in error.lost and len(one) > 4)
            if self._fails_on_loss:
                raise ConnectorError(
                    f"{error} Their {records:,} records are lost. Set the sink's property fail.on.data.loss to 'false' "
                    "to go on without them, and raise transaction.timeout.ms, or use set_write_ahead(), for jobs that "
                    "may be down for long.",
                    kind=FailureKind.PERMANENT,
                ) from None
            logger.error(
                "%s Their %s records are lost. The job goes on (fail.on.data.loss is 'false').", error, records
            )
            lost = error.lost
        # Earlier versions did not keep the partitions.
        committed = {transaction_of(one): one[5] for one in committables if len(one) > 5}
        self._markers.wait({one: partitions for one, partitions in committed.items() if one not in lost})

    def _sweep(self) -> None:
        """Aborts what is open still: whoever has opened it is dead, or was thought to be. Clocks are not asked: each
        coordinator has its own."""
        known = self._transactions.describe(self._transactions.open_ones(self._prefix))
        self._abort([found for found in known.values() if found.is_open])

    def abort(self, committables: list[Any]) -> None:
        known = self._transactions.describe(sorted({transaction_of(one).transactional_id for one in committables}))
        places = {transaction_of(one).transactional_id: one[5] for one in committables if len(one) > 5}
        self._abort(
            [
                found._replace(partitions=found.partitions or places.get(name, ()))
                for name, found in known.items()
                if found.is_open or found.is_aborted
            ]
        )

    def recover(self, pending: list[Any]) -> None:
        kept = {transaction_of(one) for one in pending}
        names = self._transactions.open_ones(self._prefix, (OPEN, *BEING_ABORTED, ABORTED))
        known = self._transactions.describe(names)
        going = [found for found in known.values() if found.is_open or found.is_being_aborted]
        self._abort([found for found in going if found.transaction not in kept])
        # Where the driver has died with the broker, nobody knows any more in which partitions an abort had to be noted:
        # they are looked for among those that the sink may have written to.
        topics = {self._topic, *(topic for one in pending if len(one) > 5 for topic, _ in one[5])} - {None}
        over = [found.transaction for found in known.values() if found.state == ABORTED]
        self._markers.wait({one: [(topic, ALL) for topic in topics] for one in over}, committed=False)

    def _abort(self, transactions: list[TransactionState]) -> None:
        """Returns when they are not open any more and nobody who reads waits for them."""
        # A broker that goes away now may forget in which partitions they have to be ended.
        noted = _being_aborted.setdefault(self._prefix, {})
        noted.update((one.transaction, one.partitions) for one in transactions)
        self._transactions.fence(one.transaction.transactional_id for one in transactions if one.is_open)
        self._markers.wait(noted, committed=False)
        del _being_aborted[self._prefix]

    def close(self) -> None:
        self._transactions.close()
