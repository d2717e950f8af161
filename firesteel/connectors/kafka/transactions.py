"""Transactions of other processes: who has one open, committing it, ending it.

A producer's transaction can be committed by whoever knows its transactional id, its producer id and its epoch, also
after the producer died. confluent-kafka cannot say that to a broker; kafka-python has the classes of the protocol. All
contact with its private parts is in this module, and ``tests/semantics/test_kafka_transactions.py`` shows what breaks.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple, TypeVar

from firesteel.connectors.kafka.errors import explained, load_client, load_transactions, refusal
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.errors import ConnectorError, FailureKind

__all__ = [
    "ABORTED",
    "BEING_ABORTED",
    "OPEN",
    "LostTransactionsError",
    "Partition",
    "Transaction",
    "TransactionState",
    "Transactions",
]

_COME_AGAIN = {
    *("ConcurrentTransactionsError", "CoordinatorLoadInProgressError", "CoordinatorNotAvailableError"),
    *("NotCoordinatorError", "NotCoordinatorForGroupError", "KafkaTimeoutError", "KafkaConnectionError"),
    *("NodeNotReadyError", "NoBrokersAvailable", "RequestTimedOutError", "BrokerNotAvailableError"),
    *("ConnectionError", "NetworkExceptionError", "DisconnectedError", "RetriableError"),
}
"""What a broker, or the way to it, says while something is under way that will end."""
_ELSEWHERE = {
    *("KafkaConnectionError", "NoBrokersAvailable", "ConnectionError", "KafkaTimeoutError", "DisconnectedError"),
    *("NotCoordinatorError", "CoordinatorNotAvailableError", "NodeNotReadyError"),
}
"""Of these, what says that the client's idea of who is where is out of date. It keeps coordinators for good."""
_PATIENCE = 30.0
_PAUSE = 0.02
_END_VERSION = 3
"""From version 4 on a broker raises the epoch with each transaction, and only the producer itself may end one."""
_INIT_VERSION = 5

OPEN, ABORTED, BEING_ABORTED = "Ongoing", "CompleteAbort", ("PrepareAbort", "PrepareEpochFence")

Result = TypeVar("Result")
Partition = tuple[str, int]
"""A topic and a number."""


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
    partitions: tuple[Partition, ...] = ()
    """Those that it has written to, while it is open."""

    @property
    def is_open(self) -> bool:
        return self.state == OPEN

    @property
    def is_committed(self) -> bool:
        # The decision is written before the answer.
        return self.state in ("PrepareCommit", "CompleteCommit")

    @property
    def is_being_aborted(self) -> bool:
        """Whether that is decided, and its markers are being written."""
        return self.state in BEING_ABORTED

    @property
    def is_aborted(self) -> bool:
        return self.is_being_aborted or self.state == ABORTED


class LostTransactionsError(ConnectorError):
    """Transactions that were prepared cannot be committed any more."""

    kind = FailureKind.PERMANENT

    def __init__(self, servers: str, lost: dict[Transaction, TransactionState | None]) -> None:
        said = [f"{one.transactional_id} ({known.state if known else 'unknown'})" for one, known in lost.items()]
        super().__init__(
            f"Kafka at {servers}: {len(lost)} transactions that were prepared can no longer be committed: "
            f"{', '.join(said[:3])}{', …' if len(said) > 3 else ''}. They were open for longer than the sink's "
            "transaction.timeout.ms, or somebody has aborted them."
        )
        self.lost = list(lost)


class Transactions:
    """A connection to the coordinators of transactions."""

    def __init__(self, properties: KafkaProperties) -> None:
        self._properties = properties
        self._kafka = load_transactions()
        self._client: Any = None

    def describe(self, transactional_ids: Iterable[str]) -> dict[str, TransactionState]:
        """What there is of some ids. Those that the brokers know nothing of are left out."""
        wanted = list(transactional_ids)
        errors = self._kafka.errors

        async def ask(client: Any) -> dict[str, TransactionState]:
            asked = await self._by_coordinator(client, wanted)
            answers = [
                client._manager.send(client._describe_transactions_request(names), node_id=node)
                for node, names in asked.items()
            ]
            found = {}
            for answer in answers:
                for one in (await answer).transaction_states:
                    failure = errors.for_code(one.error_code)
                    if failure is errors.NoError:
                        numbers = (one.producer_id, one.producer_epoch, one.transaction_start_time_ms)
                        transaction = Transaction(one.transactional_id, *numbers)
                        places = tuple((of.topic, number) for of in one.topics for number in of.partitions)
                        found[one.transactional_id] = TransactionState(one.transaction_state, transaction, places)
                    elif failure is not errors.TransactionalIdNotFoundError:
                        raise failure(one.transactional_id)
            return found

        return self.ask(ask, "a look at transactions") if wanted else {}

    def open_ones(self, prefix: str, states: Iterable[str] = (OPEN,)) -> list[str]:
        """The ids with this prefix that have a transaction open, or one in these states."""
        wanted = list(states)

        async def ask(client: Any) -> list[str]:
            brokers = [broker.node_id for broker in client._manager.cluster.brokers()]
            # All of them at once: a commit waits for this.
            answers = [
                client._manager.send(client._list_transactions_request(state_filters=wanted), node_id=broker)
                for broker in brokers
            ]
            listed = [client._list_transactions_process_response(await answer) for answer in answers]
            ids = (one.transactional_id for of_broker in listed for one in of_broker)
            return sorted(one for one in ids if one.startswith(prefix))

        return self.ask(ask, "a list of open transactions")

    def commit(self, transactions: Iterable[Transaction]) -> None:
        """Commits transactions, again where need be. Those that are neither open nor committed are lost: then it
        raises, when it has committed the others."""
        waiting, end = list(transactions), time.monotonic() + _PATIENCE
        lost: dict[Transaction, TransactionState | None] = {}
        refused: dict[Transaction, Any] = {}
        while waiting:
            known = self.describe(one.transactional_id for one in waiting)
            still = []
            for one in waiting:
                found = known.get(one.transactional_id)
                if found is None or found.transaction != one or not (found.is_open or found.is_committed):
                    lost[one] = found
                elif found.is_open:
                    if one in refused:
                        raise self._explained(refused[one], "the commit of a transaction", False)
                    still.append(one)
            failures = self._end(still)
            if failures and time.monotonic() > end:
                raise self._explained(next(iter(failures.values())), "the commit of a transaction", True)
            # What is refused for good, and is open all the same when asked for once more, stays refused.
            refused = {one: error for one, error in failures.items() if not _may_pass(error)}
            waiting = list(failures)
            if waiting:
                time.sleep(_PAUSE)
        if lost:
            raise LostTransactionsError(self._properties.servers, lost)

    def _end(self, transactions: list[Transaction]) -> dict[Transaction, Exception]:
        """Commits open transactions. Returns those that could not be, with the reason."""
        request = load_transactions("kafka.protocol.producer").EndTxnRequest
        requests = {
            one.transactional_id: request(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                producer_epoch=one.epoch,
                committed=True,
                max_version=_END_VERSION,
            )
            for one in transactions
        }
        failures = self._send(requests, "the commit of transactions")
        return {one: failures[one.transactional_id] for one in transactions if one.transactional_id in failures}

    def fence(self, transactional_ids: Iterable[str]) -> None:
        """Aborts what is open under some ids. Whoever has opened it can do nothing with it any more."""
        request = load_transactions("kafka.protocol.producer").InitProducerIdRequest
        requests = {
            name: request(
                transactional_id=name,
                transaction_timeout_ms=60_000,
                producer_id=-1,
                producer_epoch=-1,
                max_version=_INIT_VERSION,
            )
            for name in transactional_ids
        }
        doing, end = "the end of a transaction that nobody needs", time.monotonic() + _PATIENCE
        while requests:
            failures = self._send(requests, doing)
            for error in failures.values():
                if not _may_pass(error) or time.monotonic() > end:
                    raise self._explained(error, doing, _may_pass(error))
            requests = {name: requests[name] for name in failures}
            if requests:
                time.sleep(_PAUSE)

    def _send(self, requests: dict[str, Any], doing: str) -> dict[str, Exception]:
        """Sends a request for each transactional id to its coordinator. Returns what was answered with an error."""
        errors = self._kafka.errors

        async def ask(client: Any) -> dict[str, Exception]:
            coordinators = await self._by_coordinator(client, requests)
            answers = {
                name: client._manager.send(requests[name], node_id=node)
                for node, names in coordinators.items()
                for name in names
            }
            codes = {name: errors.for_code((await answer).error_code) for name, answer in answers.items()}
            failures = {name: failure(name) for name, failure in codes.items() if failure is not errors.NoError}
            if failures and any(_names(error) & _ELSEWHERE for error in failures.values()):
                raise next(error for error in failures.values() if _names(error) & _ELSEWHERE)
            return failures

        return self.ask(ask, doing) if requests else {}

    @staticmethod
    async def _by_coordinator(client: Any, transactional_ids: Iterable[str]) -> dict[int, list[str]]:
        kind = load_transactions("kafka.protocol.metadata").CoordinatorType.TRANSACTION
        nodes = await client._find_coordinator_ids(list(transactional_ids), key_type=kind)
        found: dict[int, list[str]] = defaultdict(list)
        for name, node in nodes.items():
            found[node].append(name)
        return found

    def ask(self, ask: Callable[[Any], Coroutine[Any, Any, Result]], doing: str) -> Result:
        """Runs a conversation with the brokers, from its beginning if it was cut off. All of them may be repeated."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                if self._client is None:
                    # The other client can tell; this one says of a wrong password that there are no brokers.
                    refused = refusal(self._properties)
                    if refused is not None:
                        raise explained(refused, self._properties, doing)
                    self._client = self._kafka.KafkaAdminClient(**self._properties.for_transactions())
                answer: Result = self._client._manager.run(ask, self._client)
                return answer
            except ConnectorError:
                raise
            except Exception as error:
                passing = _may_pass(error)
                if not passing or time.monotonic() > end:
                    raise self._explained(error, doing, passing) from None
                if _names(error) & _ELSEWHERE:
                    self.close()
                time.sleep(_PAUSE)

    def _explained(self, error: Exception, doing: str, passing: bool) -> Exception:
        if not isinstance(error, self._kafka.errors.KafkaError | OSError):
            return error
        code = getattr(error, "errno", None)
        if isinstance(error, self._kafka.errors.BrokerResponseError) and isinstance(code, int) and code > 0:
            # Brokers say the same to both clients.
            kind = FailureKind.PASSING if passing else FailureKind.PERMANENT
            return explained(load_client().KafkaError(code), self._properties, doing, otherwise=kind)
        said = self._properties.mask(" ".join(str(error).split()) or type(error).__name__)
        kind = FailureKind.PASSING if passing else FailureKind.PERMANENT
        return ConnectorError(f"Kafka at {self._properties.servers}: {doing} failed: {said}.", kind=kind)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _names(error: Exception) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _may_pass(error: Exception) -> bool:
    return bool(_names(error) & _COME_AGAIN) or bool(getattr(error, "retriable", False))
