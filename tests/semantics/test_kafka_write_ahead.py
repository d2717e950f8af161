"""The sink that keeps records in the checkpoint folder until their batch is complete."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from kafkakit import Broker

from firesteel.common import Types
from firesteel.connectors.kafka.producing import Producing
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import Transactions
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaRecordSerializationSchema,
    KafkaSink,
    OutgoingRecord,
)
from firesteel.errors import ConnectorError, JobExecutionError, ProgramError
from firesteel.testing import CommitCrashes, CrashPoint, run_pipeline

pytestmark = pytest.mark.timeout(300)
VALUES = [f"v{n}" for n in range(60)]


def write(sink: KafkaSink, values: Any = VALUES, **more: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection(values, Types.STRING()).rebalance().sink_to(sink).uid("sink")

    run_pipeline(build, **more)


@pytest.mark.parametrize("point", list(CrashPoint))
def test_once_through_a_failure_at_each_point(broker: Broker, point: CrashPoint) -> None:
    topic, other = broker.topic(partitions=2), broker.topic()
    prefix = uuid.uuid4().hex

    def build(env: StreamExecutionEnvironment) -> None:
        values = env.from_collection(VALUES, Types.STRING()).rebalance()
        values.sink_to(broker.sink(topic, prefix=prefix).set_write_ahead().build()).uid("one")
        values.sink_to(broker.sink(other, prefix=prefix).set_write_ahead().build()).uid("two")

    with CommitCrashes({point: ["pass", "error", "pass", "pass", "error"]}) as crashes:
        config = {"firesteel.batch.max-records": "15", **crashes.config}
        run_pipeline(build, parallelism=2, restarts=5, config=config)
        assert crashes.reached(point) >= 5
    assert Counter(broker.values(topic)) == Counter(VALUES)
    assert Counter(broker.values(other)) == Counter(VALUES)


STEPS = ("the start of a transaction", "marking the batch as written", "the commit of a transaction")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_once_through_a_failure_inside_of_the_commit(
    broker: Broker, step: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, reached = broker.topic(partitions=2), []
    attempt = Producing.attempt

    def fails_once(self: Producing, doing: str, call: Callable[..., Any], *given: Any) -> Any:
        # The second batch's.
        reached.append(doing)
        now = doing == step and reached.count(step) == 2
        if now and when == "before":
            raise ConnectorError("cut off before")
        result = attempt(self, doing, call, *given)
        if now:
            raise ConnectorError("cut off after")
        return result

    monkeypatch.setattr(Producing, "attempt", fails_once)
    sink = broker.sink(topic, prefix=uuid.uuid4().hex).set_write_ahead().build()
    write(sink, parallelism=2, restarts=1, config={"firesteel.batch.max-records": "15"})
    assert reached.count("the start of transactions") == 2, "there was a second attempt"
    assert Counter(broker.values(topic)) == Counter(VALUES)


class Driver:
    """What one driver does to a batch."""

    def __init__(self, broker: Broker, topic: str, job: str) -> None:
        sink = broker.sink(topic, prefix=job).set_write_ahead().build()
        identity = SinkIdentity(job_id=job)
        self.context = CommitterContext(identity)
        self.writer = sink.create_writer(WriterContext(identity))
        committer = sink.create_committer(self.context)
        assert committer is not None
        self.committer = committer

    def prepare(self, *values: str) -> list[Any]:
        assert self.writer.write_all is not None
        self.writer.write_all(iter(values), None)
        return self.writer.prepare_commit()

    def commit(self, batch: int, prepared: list[Any]) -> None:
        self.context._checkpoint_id = batch
        self.committer.recover_and_commit(prepared)


def test_a_batch_that_was_written_is_recognised_by_another_driver(broker: Broker) -> None:
    topic, job = broker.topic(partitions=2), uuid.uuid4().hex
    first = Driver(broker, topic, job)
    prepared = first.prepare("a", "b")
    first.commit(7, prepared)
    second = Driver(broker, topic, job)
    second.committer.recover(prepared)
    second.commit(7, prepared)
    assert sorted(broker.values(topic)) == ["a", "b"]
    second.commit(8, second.prepare("c"))
    assert sorted(broker.values(topic)) == ["a", "b", "c"]
    # The one that was thought dead wakes up.
    with pytest.raises(ConnectorError, match="Another process has fenced this producer"):
        first.commit(8, first.prepare("twice"))
    assert sorted(broker.values(topic)) == ["a", "b", "c"]


@pytest.mark.parametrize("state", ["CompleteCommit", "CompleteAbort"])
def test_what_a_coordinator_has_decided_without_writing_its_markers_comes_true(
    broker: Broker, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that was killed may do that, and forgets the partitions. The group's offset would be waited for in
    vain."""
    topic, job = broker.topic(partitions=2), uuid.uuid4().hex
    dead = Driver(broker, topic, job)
    prepared = dead.prepare("a", "b")
    dead.committer._commit = lambda: None  # type: ignore[attr-defined]
    dead.context._checkpoint_id = 7
    producer = dead.committer._started([])  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setattr(producer, "attempt", lambda doing, call, *given: "commit" not in doing and call(*given))
        dead.committer._write(producer, prepared, 7)  # type: ignore[attr-defined]
    live = Driver(broker, topic, job)
    real = live.committer._transactions.describe  # type: ignore[attr-defined]

    def describe(names: Any) -> Any:
        return {name: found._replace(state=state, partitions=()) for name, found in real(names).items()}

    with monkeypatch.context() as patch:
        patch.setattr(live.committer._transactions, "describe", describe)  # type: ignore[attr-defined]
        # The client's own way to end it.
        patch.setattr(Producing, "start_transactions", lambda *given: None)
        assert live.committer._started(prepared) is not None  # type: ignore[attr-defined]
    assert live.committer._next == (8 if state == "CompleteCommit" else 0)  # type: ignore[attr-defined]
    assert sorted(broker.values(topic)) == (["a", "b"] if state == "CompleteCommit" else [])
    live.committer.close()


def test_what_a_dead_driver_left_open_holds_back_nobody(broker: Broker) -> None:
    topic, job = broker.topic(), uuid.uuid4().hex
    dead = Driver(broker, topic, job)
    prepared = dead.prepare("a")
    producer = dead.committer._started([])  # type: ignore[attr-defined]
    producer.client.begin_transaction()
    producer.send(OutgoingRecord(topic, b"half"))
    producer.flush()
    transactions = Transactions(KafkaProperties().having({"bootstrap.servers": broker.servers}))
    assert len(transactions.open_ones(job)) == 1
    live = Driver(broker, topic, job)
    live.committer.recover(prepared)
    assert transactions.open_ones(job) == []
    live.commit(0, prepared)
    assert broker.values(topic) == ["a"]
    transactions.close()


class TestWhatABrokerWouldRefuse:
    """It has to be found before the batch is logged: the commit of a logged batch must succeed in the end."""

    def test_too_large(self, broker: Broker) -> None:
        topic = broker.topic(max_message_bytes="2000")
        with pytest.raises(JobExecutionError, match=rf"writing a record of 5,000 bytes to topic '{topic}' failed"):
            write(broker.sink(topic).set_write_ahead().build(), ["a", "x" * 5000, "b"])
        assert broker.values(topic) == []

    def test_no_topic(self, broker: Broker) -> None:
        sink = broker.sink("nowhere").set_write_ahead().set_property("default.api.timeout.ms", "3000")
        with pytest.raises(JobExecutionError, match=r"topic 'nowhere'\) failed: .*Create the topic, or check its name"):
            write(sink.build())

    def test_no_partition(self, broker: Broker) -> None:
        topic = broker.topic(partitions=2)
        schema = KafkaRecordSerializationSchema.of(lambda value: OutgoingRecord(topic, value.encode(), partition=2))
        with pytest.raises(JobExecutionError, match="has 2 partitions, and a record is to go to partition 2"):
            write(broker.sink(topic).set_record_serializer(schema).set_write_ahead().build(), ["a"])


def test_all_parts_of_records_are_kept(broker: Broker) -> None:
    topic = broker.topic(partitions=3)
    record = OutgoingRecord(topic, b"v", b"k", 2, 1234, [("h", b"1"), ("h", None)])
    schema = KafkaRecordSerializationSchema.of(lambda value: record if value == "a" else None)
    write(broker.sink(topic).set_record_serializer(schema).set_write_ahead().build(), ["a", "b"])
    (message,) = broker.messages(topic)
    assert message.headers() == [("h", b"1"), ("h", None)]
    assert (message.value(), message.key(), message.partition(), message.timestamp()[1]) == (b"v", b"k", 2, 1234)


def test_many_records_in_several_pieces(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firesteel.connectors.kafka.write_ahead._PIECE_BYTES", 100)
    topic, values = broker.topic(partitions=2), [f"v{n}" for n in range(5000)]
    write(broker.sink(topic).set_write_ahead().build(), values)
    assert Counter(broker.values(topic)) == Counter(values)


def test_it_is_a_way_to_exactly_once() -> None:
    schema = KafkaRecordSerializationSchema.of(lambda value: OutgoingRecord("t", value))
    builder = KafkaSink.builder().set_bootstrap_servers("x:1").set_record_serializer(schema).set_write_ahead()
    with pytest.raises(ProgramError, match=r"set_write_ahead\(\) is a way to EXACTLY_ONCE, and the guarantee is NONE"):
        builder.build()
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("p").build()
