"""The committer of Kafka's sink, in the driver.

A transaction that a task has prepared is committed from here, also if the task's process is gone (``EndTxn`` with its
numbers). What else is open under the sink's ids was left by a task that died, or that Spark repeated, and is aborted:
when no writer is at work (*recover*), and after each commit (*sweep*), since an open transaction keeps everybody who
reads committed records only from reading on.
"""

from __future__ import annotations

from typing import Any

from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import Transaction, Transactions
from firesteel.datastream.connectors.base import Committer

__all__ = ["TransactionCommitter"]


class TransactionCommitter(Committer):
    """Commits what the tasks prepared."""

    def __init__(self, properties: KafkaProperties, prefix: str) -> None:
        self._transactions = Transactions(properties)
        self._prefix = prefix

    def commit(self, committables: list[Any]) -> None:
        prepared = [Transaction(*one) for one in committables]
        for transaction in prepared:
            self._transactions.commit(transaction)
        self._sweep(min(transaction.started for transaction in prepared) if prepared else 0)

    def recover_and_commit(self, committables: list[Any]) -> None:
        for one in committables:
            self._transactions.commit(Transaction(*one))

    def _sweep(self, before: int) -> None:
        """Aborts what was begun before this batch's first transaction. Whoever is at work now has begun later: in this
        batch's turn it had none, or one that is committed."""
        for name in self._transactions.open_ones(self._prefix):
            known = self._transactions.describe(name)
            if known is not None and known.is_open and known.transaction.started < before:
                self._transactions.fence(name)

    def abort(self, committables: list[Any]) -> None:
        self._end({Transaction(*one).transactional_id for one in committables}, [])

    def recover(self, pending: list[Any]) -> None:
        kept = [Transaction(*one) for one in pending]
        self._end(set(self._transactions.open_ones(self._prefix)), kept)

    def _end(self, names: set[str], kept: list[Transaction]) -> None:
        for name in sorted(names):
            known = self._transactions.describe(name)
            if known is not None and known.is_open and known.transaction not in kept:
                self._transactions.fence(name)

    def close(self) -> None:
        self._transactions.close()
