"""Transactions of other processes: who has one open, committing it, ending it.

A producer's transaction can be committed by whoever knows its transactional id, its producer id and its epoch, also
after the producer died. confluent-kafka cannot say that to a broker; kafka-python has the classes of the protocol. All
contact with its private parts is in this module, and ``tests/unit/test_kafka_transactions.py`` shows what breaks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from firesteel.connectors.kafka.errors import load_transactions
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.errors import ConnectorError, FailureKind

__all__ = ["Transaction", "TransactionState", "Transactions"]

_COME_AGAIN = (
    *("ConcurrentTransactionsError", "CoordinatorLoadInProgressError", "CoordinatorNotAvailableError"),
    *("NotCoordinatorError", "NotCoordinatorForGroupError", "KafkaTimeoutError", "KafkaConnectionError"),
    *("NodeNotReadyError", "NoBrokersAvailable", "RequestTimedOutError", "BrokerNotAvailableError"),
    *("ConnectionError", "NetworkExceptionError", "DisconnectedError", "RetriableError"),
)
"""What a broker, or the way to it, says while something is under way that will end."""
_PATIENCE = 30.0
_PAUSE = 0.02
_END_VERSION = 3
"""From version 4 on a broker raises the epoch with each transaction, and only the producer itself may end one."""
_INIT_VERSION = 5

Result = TypeVar("Result")


class Transaction(NamedTuple):
    """One transaction for ever: no other has the same numbers."""

    transactional_id: str
    producer_id: int
    epoch: int
    started: int
    """In milliseconds, by the broker's clock."""


class TransactionState(NamedTuple):
    """What a broker knows of a transactional id."""

    state: str
    transaction: Transaction

    @property
    def is_open(self) -> bool:
        return self.state == "Ongoing"

    @property
    def is_committed(self) -> bool:
        # The decision is written before the answer.
        return self.state in ("PrepareCommit", "CompleteCommit")


class Transactions:
    """A connection to the coordinators of transactions."""

    def __init__(self, properties: KafkaProperties) -> None:
        self._properties = properties
        self._kafka = load_transactions()
        self._client: Any = None

    def describe(self, transactional_id: str) -> TransactionState | None:
        """What there is of an id; None if the broker knows nothing of it."""
        errors = self._kafka.errors

        def ask(client: Any) -> TransactionState | None:
            try:
                found = client.describe_transactions([transactional_id])[transactional_id]
            except errors.TransactionalIdNotFoundError:
                return None
            numbers = (found.producer_id, found.producer_epoch, found.transaction_start_time_ms)
            return TransactionState(found.state.value, Transaction(transactional_id, *numbers))

        return self._ask(ask, f"a look at the transaction {transactional_id}")

    def open_ones(self, prefix: str) -> list[str]:
        """The ids with this prefix that have a transaction open."""

        def ask(client: Any) -> list[str]:
            listed: Iterable[Any] = client.list_transactions(state_filters=["Ongoing"]).values()
            ids = (one.transactional_id for of_broker in listed for one in of_broker)
            return sorted(one for one in ids if one.startswith(prefix))

        return self._ask(ask, "a list of open transactions")

    def commit(self, transaction: Transaction) -> None:
        """Commits a transaction, again where need be. One that is neither open nor committed is lost."""
        name = transaction.transactional_id
        known = self.describe(name)
        if known is not None and known.transaction == transaction and known.is_committed:
            return
        if known is None or known.transaction != transaction or not known.is_open:
            raise ConnectorError(
                f"Kafka at {self._properties.servers}: the transaction {name} was prepared and can no longer be "
                f"committed ({'it is not known' if known is None else known.state}). It was open for longer than the "
                "sink's transaction.timeout.ms, or somebody has aborted it, and its records are lost.",
                kind=FailureKind.PERMANENT,
            )
        self._end(transaction)

    def _end(self, transaction: Transaction) -> None:
        request = load_transactions("kafka.protocol.producer").EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            committed=True,
            max_version=_END_VERSION,
        )
        self._send(transaction.transactional_id, request, "the commit of a transaction")

    def fence(self, transactional_id: str) -> None:
        """Aborts what is open under an id. Whoever has opened it can do nothing with it any more."""
        request = load_transactions("kafka.protocol.producer").InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
            max_version=_INIT_VERSION,
        )
        self._send(transactional_id, request, "the end of a transaction that nobody needs")

    def _send(self, transactional_id: str, request: Any, doing: str) -> None:
        kind = load_transactions("kafka.protocol.metadata").CoordinatorType.TRANSACTION

        async def send(client: Any) -> Any:
            node = await client._find_coordinator_id(transactional_id, kind)
            return await client._manager.send(request, node_id=node)

        def ask(client: Any) -> None:
            answer = client._manager.run(send, client)
            failure = self._kafka.errors.for_code(answer.error_code)
            if failure is not self._kafka.errors.NoError:
                raise failure(transactional_id)

        self._ask(ask, doing)

    def _ask(self, ask: Callable[[Any], Result], doing: str) -> Result:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                if self._client is None:
                    self._client = self._kafka.KafkaAdminClient(**self._properties.for_transactions())
                return ask(self._client)
            except Exception as error:
                names = {kind.__name__ for kind in type(error).__mro__}
                passing = bool(names & set(_COME_AGAIN)) or getattr(error, "retriable", False)
                if not passing or time.monotonic() > end:
                    raise self._explained(error, doing, passing) from None
                if names & {"KafkaConnectionError", "NoBrokersAvailable", "ConnectionError", "KafkaTimeoutError"}:
                    # Made anew: the broker may have come back under another address.
                    self.close()
                time.sleep(_PAUSE)

    def _explained(self, error: Exception, doing: str, passing: bool) -> Exception:
        if not isinstance(error, self._kafka.errors.KafkaError | OSError):
            return error
        said = self._properties.mask(" ".join(str(error).split()) or type(error).__name__)
        kind = FailureKind.PASSING if passing else FailureKind.PERMANENT
        return ConnectorError(f"Kafka at {self._properties.servers}: {doing} failed: {said}.", kind=kind)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
