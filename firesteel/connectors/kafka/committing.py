"""The committer of Kafka's sink, in the driver.

A transaction that a task has prepared is committed from here, also if the task's process is gone (``EndTxn`` with its
numbers). What else is open under the sink's ids was left by a task that died, or that Spark repeated, and is aborted:
when no writer is at work (*recover*), and after commits (*sweep*), since an open transaction keeps everybody who reads
committed records only from reading on.
"""

from __future__ import annotations

import logging
from typing import Any

from firesteel.connectors.kafka.markers import Markers
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import LostTransactionsError, Transaction, Transactions, TransactionState
from firesteel.datastream.connectors.base import Committer
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["TransactionCommitter", "committable", "transaction_of"]

logger = logging.getLogger("firesteel")


def committable(prepared: TransactionState, records: int) -> tuple[Any, ...]:
    """What a writer gives out: plain data, which is kept in the checkpoint folder."""
    return (*prepared.transaction, records, prepared.partitions)


def transaction_of(one: Any) -> Transaction:
    return Transaction(*one[:4])


class TransactionCommitter(Committer):
    """Commits what the tasks prepared."""

    def __init__(self, properties: KafkaProperties, prefix: str) -> None:
        self._transactions = Transactions(properties)
        self._markers = Markers(self._transactions)
        self._prefix = prefix
        self._fails_on_loss = properties.get("fail.on.data.loss") != "false"
        self._seen: set[Transaction] = set()
        """What was open after the last commit: it belongs to the batch that followed, or to nobody."""

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
        """Aborts what was open after the last commit already and is still. That commit was over before the batch after
        this one began, so what was open then was of this batch, which is committed, or an earlier one: whoever has
        opened it is dead. Clocks are not asked: each coordinator has its own."""
        known = self._transactions.describe(self._transactions.open_ones(self._prefix))
        now = {found.transaction for found in known.values() if found.is_open}
        self._transactions.fence(one.transactional_id for one in now & self._seen)
        self._seen = now - self._seen

    def abort(self, committables: list[Any]) -> None:
        self._end({transaction_of(one).transactional_id for one in committables}, [])

    def recover(self, pending: list[Any]) -> None:
        self._end(set(self._transactions.open_ones(self._prefix)), [transaction_of(one) for one in pending])

    def _end(self, names: set[str], kept: list[Transaction]) -> None:
        known = self._transactions.describe(sorted(names))
        ended = [name for name, found in known.items() if found.is_open and found.transaction not in kept]
        self._transactions.fence(ended)

    def close(self) -> None:
        self._transactions.close()
