"""A real broker as a sink: every record exactly once through failures at each point of the commit protocol."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import KafkaError
from kafkakit import Broker

from firesteel.common import SimpleStringSchema, Types
from firesteel.connectors.kafka.producing import Producing
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import Transactions
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import CommitterContext, SinkIdentity, WriterContext
from firesteel.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicSelector,
    OutgoingRecord,
)
from firesteel.errors import ConnectorError, FailureKind, JobExecutionError, ProgramError
from firesteel.testing import CommitCrashes, CrashPoint, run_pipeline

pytestmark = pytest.mark.timeout(300)
VALUES = [f"v{n}" for n in range(120)]


def write(sink: KafkaSink, values: Any = VALUES, **more: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection(values, Types.STRING()).sink_to(sink).uid("sink")

    run_pipeline(build, **more)


def transactions(broker: Broker) -> Transactions:
    return Transactions(KafkaProperties().having({"bootstrap.servers": broker.servers}))


@pytest.mark.parametrize("guarantee", list(DeliveryGuarantee))
@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_record_is_there(broker: Broker, guarantee: DeliveryGuarantee, parallelism: int) -> None:
    topic = broker.topic(partitions=2)
    write(broker.sink(topic, guarantee).build(), parallelism=parallelism, config={"firesteel.batch.max-records": "25"})
    assert Counter(broker.values(topic)) == Counter(VALUES)


@pytest.mark.parametrize("point", list(CrashPoint))
def test_once_through_a_failure_at_each_point(broker: Broker, point: CrashPoint) -> None:
    topic, other = broker.topic(partitions=2), broker.topic()
    prefix = uuid.uuid4().hex

    def build(env: StreamExecutionEnvironment) -> None:
        values = env.from_collection(VALUES, Types.STRING()).rebalance()
        values.sink_to(broker.sink(topic, prefix=prefix).build()).uid("one")
        # A second sink, so that there is a point between two.
        values.sink_to(broker.sink(other, prefix=prefix).build()).uid("two")

    with CommitCrashes({point: ["pass", "error", "pass", "pass", "error"]}) as crashes:
        config = {"firesteel.batch.max-records": "25", **crashes.config}
        run_pipeline(build, parallelism=2, restarts=5, config=config)
        assert crashes.reached(point) >= 5
    assert Counter(broker.values(topic)) == Counter(VALUES)
    assert Counter(broker.values(other)) == Counter(VALUES)
    assert transactions(broker).open_ones(prefix) == []


def test_the_parts_of_a_record(broker: Broker) -> None:
    topic = broker.topic(partitions=3)

    class ByName(KafkaTopicSelector):
        def apply(self, data: Any) -> str:
            return topic

    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(ByName())
        .set_key_serialization_schema(SimpleStringSchema())
        .set_value_serialization_schema(lambda value: value.upper().encode())
        .set_header_provider(lambda value: {"length": str(len(value)).encode()})
        .set_partitioner(lambda value: 2)
        .build()
    )
    write(broker.sink(topic).set_record_serializer(schema).build(), ["abc"])
    (message,) = broker.messages(topic)
    found = (message.key(), message.value(), message.headers(), message.partition())
    assert found == (b"abc", b"ABC", [("length", b"3")], 2)


def test_a_key_goes_to_the_partition_that_the_java_client_has_for_it(broker: Broker) -> None:
    from kafka.partitioner.default import murmur2

    topic, keys = broker.topic(partitions=5), [f"key-{n}" for n in range(40)]
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema.set_key_serialization_schema(SimpleStringSchema()).set_value_serialization_schema(SimpleStringSchema())
    write(broker.sink(topic).set_record_serializer(schema.build()).build(), keys)
    found = {message.key(): message.partition() for message in broker.messages(topic)}
    assert found == {key.encode(): (murmur2(key.encode()) & 0x7FFFFFFF) % 5 for key in keys}


@pytest.mark.parametrize("headers", [{"h": b"1"}, [("h", b"1"), ("h", None)]])
def test_headers(broker: Broker, headers: Any) -> None:
    topic = broker.topic()
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic).set_header_provider(lambda value: headers)
    schema.set_value_serialization_schema(SimpleStringSchema())
    write(broker.sink(topic).set_record_serializer(schema.build()).build(), ["v"])
    (message,) = broker.messages(topic)
    assert message.headers() == (list(headers.items()) if isinstance(headers, dict) else headers)


def test_a_batch_of_which_no_element_is_a_record(broker: Broker) -> None:
    topic = broker.topic()
    schema = KafkaRecordSerializationSchema.of(lambda value: OutgoingRecord(topic, value) if value == "last" else None)
    config = {"firesteel.batch.max-records": "1"}
    write(broker.sink(topic).set_record_serializer(schema).build(), ["a", "b", "c", "last"], config=config)
    assert broker.values(topic) == ["last"]


def test_an_element_that_cannot_be_written_is_named(broker: Broker) -> None:
    schema = KafkaRecordSerializationSchema.builder().set_topic(broker.topic())
    schema.set_value_serialization_schema(lambda value: value.upper().encode() if value != "b" else 1 / 0)
    with pytest.raises(JobExecutionError, match="division by zero") as caught:
        write(broker.sink("").set_record_serializer(schema.build()).build(), ["a", "b", "c"])
    assert "'b'" in str(caught.value)


def test_records_of_a_function_and_none(broker: Broker) -> None:
    topic = broker.topic()
    schema = KafkaRecordSerializationSchema.of(
        lambda value: OutgoingRecord(topic, value.encode(), timestamp=5) if value != "b" else None
    )
    write(broker.sink(topic).set_record_serializer(schema).build(), ["a", "b", "c"])
    assert [(m.value(), m.timestamp()[1]) for m in broker.messages(topic)] == [(b"a", 5), (b"c", 5)]


def test_a_record_that_the_broker_refuses_fails_the_job_and_shows_nothing_of_its_batch(broker: Broker) -> None:
    topic = broker.topic(max_message_bytes="2000")
    said = rf"a record of 5,000 bytes to topic '{topic}' failed: it is too large. The topic takes 2,000 bytes"
    with pytest.raises(JobExecutionError, match=said):
        write(broker.sink(topic).build(), ["a", "x" * 5000, "b"])
    assert broker.values(topic) == []


def test_the_record_that_is_refused_is_named_and_not_those_beside_it() -> None:
    producer = Producing(KafkaProperties().having({"bootstrap.servers": "127.0.0.1:9"}))

    def refused(code: int, size: int) -> None:
        producer._not_delivered(KafkaError(code), _Refused(b"x" * size))

    refused(KafkaError._INVALID_DIFFERENT_RECORD, 50)
    refused(KafkaError.INVALID_RECORD, 5)
    refused(KafkaError._INVALID_DIFFERENT_RECORD, 60)
    with pytest.raises(
        ConnectorError, match=r"writing a record of 5 bytes .*\(INVALID_RECORD\)\. .* needs keys"
    ) as told:
        producer.flush()
    assert told.value.kind is FailureKind.PERMANENT, "it would be refused again"


class _Refused:
    def __init__(self, value: bytes) -> None:
        self._value = value

    def value(self) -> bytes:
        return self._value

    def topic(self) -> str:
        return "somewhere"


def test_a_transaction_timeout_that_the_broker_does_not_allow(broker: Broker) -> None:
    sink = broker.sink(broker.topic()).set_property("transaction.timeout.ms", "99000000").build()
    with pytest.raises(JobExecutionError, match=r"must not exceed the broker's transaction\.max\.timeout\.ms"):
        write(sink)


def test_no_topic(broker: Broker) -> None:
    with pytest.raises(JobExecutionError, match=r"topic 'nowhere' failed: .*Create the topic, or check its name"):
        write(broker.sink("nowhere").set_property("topic.metadata.propagation.max.ms", "1000").build())


def test_what_a_dead_task_left_open_is_aborted_with_the_commit_of_its_batch(broker: Broker) -> None:
    """Spark may repeat a task whose first try still lives. Its transaction would hold back all readers."""
    topic, prefix = broker.topic(), uuid.uuid4().hex
    sink = broker.sink(topic, prefix=prefix).build()
    identity = SinkIdentity(job_id=prefix)

    def writer() -> Any:
        return sink.create_writer(WriterContext(identity))

    def send(to: Any, value: str) -> list[Any]:
        to.write(value, _NoContext())
        to.flush(end_of_input=False)
        prepared: list[Any] = to.prepare_commit()
        return prepared

    committer: Any = sink.create_committer(CommitterContext(identity))
    dead, live = writer(), writer()
    dead.write("lost", _NoContext())
    dead._open.producer.flush()
    committer.commit(send(live, "a"))
    assert transactions(broker).open_ones(prefix) == []
    assert broker.values(topic) == ["a"]
    committer.commit(send(live, "b"))
    assert broker.values(topic) == ["a", "b"]
    # A zombie that wakes up can do nothing any more.
    with pytest.raises(ConnectorError, match="Another process has fenced this producer"):
        send(dead, "too late")
    live.close()
    committer.close()


def test_committing_again_changes_nothing_and_a_lost_transaction_is_said(broker: Broker) -> None:
    topic, prefix = broker.topic(), uuid.uuid4().hex
    sink = broker.sink(topic, prefix=prefix).build()
    identity = SinkIdentity(job_id=prefix)
    writer, committer = sink.create_writer(WriterContext(identity)), sink.create_committer(CommitterContext(identity))
    assert committer is not None
    writer.write("a", _NoContext())
    prepared = writer.prepare_commit()
    committer.recover(prepared)
    for _ in range(3):
        committer.recover_and_commit(prepared)
    assert broker.values(topic) == ["a"]
    writer.write("b", _NoContext())
    lost = writer.prepare_commit()
    committer.abort(lost)
    with pytest.raises(Exception, match="can no longer be committed"):
        committer.commit(lost)
    assert broker.values(topic) == ["a"]


@pytest.mark.parametrize("fails", [True, False])
def test_what_was_prepared_and_is_lost(broker: Broker, fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    topic, prefix = broker.topic(), uuid.uuid4().hex
    sink = broker.sink(topic, prefix=prefix).set_property("fail.on.data.loss", str(fails).lower()).build()
    identity = SinkIdentity(job_id=prefix)
    writer, committer = sink.create_writer(WriterContext(identity)), sink.create_committer(CommitterContext(identity))
    assert committer is not None
    for value in ("a", "b", "c"):
        writer.write(value, _NoContext())
    prepared = writer.prepare_commit()
    committer.abort(prepared)
    if fails:
        with pytest.raises(Exception, match=r"Their 3 records are lost\. Set the sink's property fail\.on\.data\.loss"):
            committer.commit(prepared)
    else:
        committer.commit(prepared)
        assert "Their 3 records are lost. The job goes on" in caplog.text
    assert broker.values(topic) == []


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda b: b, "where Kafka is"),
        (lambda b: b.set_bootstrap_servers("x:1"), "how records are written"),
        (
            lambda b: b.set_bootstrap_servers("x:1").set_record_serializer(KafkaRecordSerializationSchema.of(str)),
            "prefix",
        ),
    ],
)
def test_what_is_missing(build: Any, text: str) -> None:
    with pytest.raises(ProgramError, match=text):
        build(KafkaSink.builder().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)).build()


class _NoContext:
    def timestamp(self) -> int | None:
        return None

    def current_processing_time(self) -> int:
        return 0
