"""What Firesteel does with other processes' transactions, through private parts of kafka-python.

If a new version of that package moves them, this is the file that says so.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import confluent_kafka
import pytest
from kafkakit import QUIET, Broker
from sparkkit import eventually

from firesteel.connectors.kafka.committing import TransactionCommitter, committable
from firesteel.connectors.kafka.markers import Markers
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import LostTransactionsError, Transaction, Transactions, TransactionState
from firesteel.errors import ConnectorError, FailureKind

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def transactions(broker: Broker) -> Iterator[Transactions]:
    used = Transactions(KafkaProperties().having({"bootstrap.servers": broker.servers}))
    yield used
    used.close()


def opened(broker: Broker, topic: str, value: str, name: str) -> Any:
    """A producer with a transaction that nobody has ended."""
    client = confluent_kafka.Producer({"bootstrap.servers": broker.servers, "transactional.id": name, **QUIET})
    client.init_transactions(60)
    client.begin_transaction()
    client.produce(topic, value)
    assert client.flush(60) == 0
    return client


def commit(transactions: Transactions, topic: str, *chosen: Transaction) -> None:
    """Commits transactions and waits until that can be read."""
    transactions.commit(chosen)
    Markers(transactions).wait({one: [(topic, 0)] for one in chosen})


def test_transactions_are_seen_and_committed_from_outside(broker: Broker, transactions: Transactions) -> None:
    topic, prefix = broker.topic(), uuid.uuid4().hex
    names = [f"{prefix}-{number}" for number in range(3)]
    producers = [opened(broker, topic, name, name) for name in names]
    assert transactions.open_ones(prefix) == names
    known = transactions.describe([*names, f"{prefix}-nobody"])
    assert sorted(known) == names
    assert all(found.is_open for found in known.values())
    chosen = [known[name].transaction for name in names[:2]]
    for _ in range(2):
        commit(transactions, topic, *chosen)
    assert sorted(broker.values(topic)) == names[:2]
    assert transactions.open_ones(prefix) == names[2:]
    # The numbers name one transaction for ever: also when the next one is open under the same id.
    producers[0].commit_transaction(60)
    producers[0].begin_transaction()
    producers[0].produce(topic, "next")
    producers[0].flush(60)
    with pytest.raises(LostTransactionsError, match="can no longer be committed"):
        transactions.commit([chosen[0]])
    assert "next" not in broker.values(topic)


def test_a_fenced_transaction_is_gone_and_its_producer_can_do_nothing(
    broker: Broker, transactions: Transactions
) -> None:
    topic, prefix = broker.topic(), uuid.uuid4().hex
    producer = opened(broker, topic, "gone", prefix)
    lost = transactions.describe([prefix])[prefix].transaction
    transactions.fence([prefix])
    assert transactions.open_ones(prefix) == []
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(60)
    other = opened(broker, topic, "kept", f"{prefix}-other")
    kept = transactions.describe([f"{prefix}-other"])[f"{prefix}-other"].transaction
    # Nothing of a batch is held back because another part of it is lost.
    with pytest.raises(LostTransactionsError) as caught:
        transactions.commit([lost, kept])
    assert caught.value.lost == [lost]
    commit(transactions, topic, kept)
    assert broker.values(topic) == ["kept"]
    del other


def test_a_coordinator_that_has_moved_is_looked_for_anew(
    broker: Broker, transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client keeps what it knows of coordinators for good."""
    topic, name = broker.topic(), uuid.uuid4().hex
    producer = opened(broker, topic, "v", name)
    known = transactions.describe([name])[name].transaction
    first = transactions._client
    find = type(first)._find_coordinator_ids

    async def moved(client: Any, *given: Any, **more: Any) -> Any:
        if client is first:
            raise transactions._kafka.errors.NotCoordinatorError
        return await find(client, *given, **more)

    monkeypatch.setattr(type(first), "_find_coordinator_ids", moved)
    commit(transactions, topic, known)
    assert broker.values(topic) == ["v"]
    del producer


def test_what_a_broker_refuses_for_good_is_not_tried_for_long(
    broker: Broker, transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, name = broker.topic(), uuid.uuid4().hex
    producer = opened(broker, topic, "v", name)
    known = transactions.describe([name])[name].transaction
    refusal = transactions._kafka.errors.TransactionalIdAuthorizationFailedError
    monkeypatch.setattr(transactions, "_send", lambda requests, doing: dict.fromkeys(requests, refusal(name)))
    with pytest.raises(ConnectorError, match="Grant the user the rights to write and to describe") as caught:
        transactions.commit([known])
    assert caught.value.kind is FailureKind.PERMANENT
    del producer


@pytest.fixture
def left_out(transactions: Transactions, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[Transaction, Any]]:
    """Makes a coordinator say of an open transaction that it is complete, as one does that has left its markers out."""
    describe = transactions.describe

    def complete(name: str) -> dict[Transaction, Any]:
        found = describe([name])[name]
        told = {name: found._replace(state="CompleteCommit", partitions=())}
        monkeypatch.setattr(transactions, "describe", lambda names: told)
        return {found.transaction: found.partitions}

    return complete


def test_markers_that_a_coordinator_has_left_out_are_written(
    broker: Broker, transactions: Transactions, left_out: Callable[[str], dict[Transaction, Any]]
) -> None:
    topic, name = broker.topic(), uuid.uuid4().hex
    producer = opened(broker, topic, "v", name)
    assert broker.values(topic) == []
    Markers(transactions).wait(left_out(name))
    assert broker.values(topic) == ["v"]
    del producer


def aborted(transactions: Transactions, monkeypatch: pytest.MonkeyPatch, name: str) -> TransactionState:
    """Makes a coordinator say of an open transaction that it was aborted, as one does that was killed after it had
    decided so, and has left the markers out when it was back. The epoch is raised by then."""
    found = transactions.describe([name])[name]
    raised = found.transaction._replace(epoch=found.transaction.epoch + 1, started=-1)
    told = {name: TransactionState("CompleteAbort", raised)}
    monkeypatch.setattr(Transactions, "describe", lambda self, names: told)
    monkeypatch.setattr(Transactions, "open_ones", lambda self, prefix, states=(): [])
    return found


def test_markers_of_an_abort_that_a_coordinator_has_left_out_are_written(
    broker: Broker, transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, name = broker.topic(), uuid.uuid4().hex
    producer = opened(broker, topic, "gone", name)
    broker.write(topic, ["behind"])
    found = aborted(transactions, monkeypatch, name)
    assert broker.values(topic) == []
    Markers(transactions).wait({found.transaction: found.partitions}, committed=False)
    assert broker.values(topic) == ["behind"]
    # One that is open by now under the same numbers but the epoch is left alone.
    older = found.transaction._replace(epoch=found.transaction.epoch - 1)
    monkeypatch.undo()
    other = opened(broker, topic, "open", name)
    Markers(transactions).wait({older: found.partitions}, committed=False)
    other.commit_transaction(60)
    # The broker answers when it has decided; readers see it when the markers are written.
    assert eventually(lambda: broker.values(topic) == ["behind", "open"])
    del producer


@pytest.mark.parametrize("known", ["fenced", "prepared"])
def test_an_abort_during_which_the_broker_is_away_is_over_when_its_markers_are_written(
    broker: Broker, transactions: Transactions, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    """Neither the ids that are open nor the coordinator say any more in which partitions it had records."""
    topic, name = broker.topic(), uuid.uuid4().hex
    producer = opened(broker, topic, "gone", name)
    broker.write(topic, ["behind"])
    properties = KafkaProperties().having({"bootstrap.servers": broker.servers})
    first, second = (TransactionCommitter(properties, name) for _ in range(2))

    def away(self: Transactions, names: Iterable[str]) -> None:
        assert list(names) == [name]
        raise ConnectorError("no broker")

    if known == "fenced":
        with monkeypatch.context() as patch:
            patch.setattr(Transactions, "fence", away)
            with pytest.raises(ConnectorError, match="no broker"):
                first.recover([])
    found = aborted(transactions, monkeypatch, name)
    if known == "fenced":
        second.recover([])
    else:
        second.abort([committable(found, 1)])
    assert broker.values(topic) == ["behind"]
    for committer in (first, second):
        committer.close()
    del producer


@pytest.mark.parametrize("hint", ["topic", "pending"])
def test_an_abort_that_driver_and_broker_have_forgotten_is_over_after_the_next_start(
    broker: Broker, transactions: Transactions, monkeypatch: pytest.MonkeyPatch, hint: str
) -> None:
    topic, name = broker.topic(), uuid.uuid4().hex
    producer, kept = opened(broker, topic, "gone", f"{name}-1"), opened(broker, topic, "kept", f"{name}-2")
    known = transactions.describe([f"{name}-1", f"{name}-2"])
    left, prepared = known[f"{name}-1"], known[f"{name}-2"]
    # What a coordinator says that has left the markers out.
    raised = left.transaction._replace(epoch=left.transaction.epoch + 1, started=-1)
    told = {f"{name}-1": TransactionState("CompleteAbort", raised), f"{name}-2": prepared}
    with monkeypatch.context() as patch:
        patch.setattr(Transactions, "describe", lambda self, names: {one: told[one] for one in names})
        patch.setattr(
            Transactions, "open_ones", lambda self, prefix, states=(): sorted(told) if "CompleteAbort" in states else []
        )
        properties = KafkaProperties().having({"bootstrap.servers": broker.servers})
        committer = TransactionCommitter(properties, name, topic if hint == "topic" else None)
        committer.recover([committable(prepared, 1)])
    assert Markers(transactions)._missing({left.transaction: {(topic, 0)}}, committed=False) == []
    assert [found.state for found in transactions.describe([f"{name}-2"]).values()] == ["Ongoing"]
    committer.commit([committable(prepared, 1)])
    assert broker.values(topic) == ["kept"]
    committer.close()
    del producer, kept


def test_transactions_that_were_aborted_are_found_by_their_state(broker: Broker, transactions: Transactions) -> None:
    topic, name = broker.topic(), uuid.uuid4().hex
    opened(broker, topic, "gone", name).abort_transaction(60)
    properties = KafkaProperties().having({"bootstrap.servers": broker.servers})
    # The broker answers when it has decided; the markers are written after that.
    assert eventually(lambda: transactions.open_ones(name, ("CompleteAbort",)) == [name])
    committer = TransactionCommitter(properties, name, topic)
    committer.recover([])
    committer.close()
    broker.write(topic, ["behind"])
    assert broker.values(topic) == ["behind"]


def test_who_may_not_write_markers_learns_that_readers_wait(
    broker: Broker,
    transactions: Transactions,
    left_out: Callable[[str], dict[Transaction, Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, name = broker.topic(), uuid.uuid4().hex
    producer = opened(broker, topic, "v", name)
    markers, missing = Markers(transactions), left_out(name)
    monkeypatch.setattr(markers._errors, "for_code", _refusing(markers._errors))
    markers.wait(missing)
    assert "Grant the user ClusterAction" in caplog.text
    assert f"{topic}-0" in caplog.text
    del producer


def _refusing(errors: Any) -> Callable[[int], Any]:
    """The answers of a broker that lets nobody write markers: the second look at the partition asks for one."""
    real, asked = errors.for_code, iter(range(100))
    return lambda code: errors.ClusterAuthorizationFailedError if next(asked) == 2 else real(code)


def test_topics_that_may_not_be_looked_at_are_left_alone(
    broker: Broker, transactions: Transactions, left_out: Callable[[str], dict[Transaction, Any]]
) -> None:
    topic, name = broker.topic(), uuid.uuid4().hex
    producer = opened(broker, topic, "v", name)
    markers, missing = Markers(transactions), left_out(name)
    markers._forbidden.add(topic)
    markers.wait(missing)
    assert broker.values(topic) == []
    del producer


def test_an_epoch_that_is_over(transactions: Transactions) -> None:
    with pytest.raises(LostTransactionsError, match=r"nobody \(unknown\)"):
        transactions.commit([Transaction("nobody", 1, 2, 3)])
