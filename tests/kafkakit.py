"""A real Kafka broker for the tests: one for all of them, topics of their own for each."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from kafka_server import KafkaServer, why_not

from firesteel.common import SimpleStringSchema
from firesteel.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSinkBuilder,
    KafkaSource,
    KafkaSourceBuilder,
)

Message = tuple[Any, ...]
QUIET = {"log_level": 0}


class Broker:
    """A broker as a test sees it."""

    def __init__(self, server: KafkaServer) -> None:
        self.server, self.servers = server, server.servers
        self._names = f"t{uuid.uuid4().hex[:10]}"
        self._made = 0

    def topic(self, values: Sequence[Any] = (), partitions: int = 1, **settings: str) -> str:
        """A new topic with these records, dealt out to its partitions by turns."""
        self._made += 1
        name = self.server.create_topic(f"{self._names}-{self._made}", partitions, **settings)
        self.write(name, values, partitions)
        return name

    def write(self, topic: str, values: Iterable[Any], partitions: int = 1, **producer: Any) -> None:
        """Writes records: strings, or dicts of what ``produce`` takes."""
        import confluent_kafka

        client = confluent_kafka.Producer({"bootstrap.servers": self.servers, **QUIET, **producer})
        for number, value in enumerate(values):
            given = value if isinstance(value, dict) else {"value": value}
            client.produce(topic, **{"partition": number % partitions, **given})
            client.poll(0)
        assert client.flush(60) == 0

    def abort(self, topic: str, values: Iterable[str], partition: int = 0) -> None:
        """Writes records in a transaction that is aborted."""
        import confluent_kafka

        settings = {"bootstrap.servers": self.servers, "transactional.id": uuid.uuid4().hex, **QUIET}
        client = confluent_kafka.Producer(settings)
        client.init_transactions(60)
        client.begin_transaction()
        for value in values:
            client.produce(topic, value, partition=partition)
        client.flush(60)
        client.abort_transaction(60)
        # The broker answers before it has written the markers, behind which committed records are seen. The next
        # producer of the same id has to wait for them.
        confluent_kafka.Producer(settings).init_transactions(60)

    def delete(self, topic: str, before: int, partition: int = 0) -> None:
        """Deletes the records before an offset, as a topic's retention does."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import AdminClient

        place = TopicPartition(topic, partition, before)
        client = AdminClient({"bootstrap.servers": self.servers, **QUIET})
        client.delete_records([place])[place].result(120)

    def make_anew(self, topic: str, values: Sequence[Any]) -> None:
        """Deletes a topic and makes another one of its name."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        client = AdminClient({"bootstrap.servers": self.servers, **QUIET})
        client.delete_topics([topic])[topic].result(120)
        for _ in range(100):
            try:
                self.server.create_topic(topic)
                break
            except KafkaException:
                time.sleep(0.1)
        self.write(topic, values)

    def messages(self, topic: str) -> list[Any]:
        """All committed messages of a topic."""
        import confluent_kafka

        client = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "tests",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 20,
                **QUIET,
            }
        )
        try:
            parts = sorted(client.list_topics(topic, 120).topics[topic].partitions)
            client.assign([confluent_kafka.TopicPartition(topic, part, 0) for part in parts])
            found, ended = [], set()
            while len(ended) < len(parts):
                # One by one: consume() waits for as many as it was asked for, or for all of its time.
                message = client.poll(1)
                if message is None:
                    continue
                if message.error() is None:
                    found.append(message)
                elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
            return found
        finally:
            client.close()

    def values(self, topic: str) -> list[str]:
        """The values of all committed messages of a topic."""
        return [message.value().decode() for message in self.messages(topic)]

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        """Where a group is."""
        import confluent_kafka

        client = confluent_kafka.Consumer({"bootstrap.servers": self.servers, "group.id": group, **QUIET})
        try:
            (place,) = client.committed([confluent_kafka.TopicPartition(topic, partition)], 120)
            return int(place.offset)
        finally:
            client.close()

    def source(self, *topics: str, latest: bool = True) -> KafkaSourceBuilder:
        """A source of strings, from the earliest record to the latest one."""
        builder = KafkaSource.builder().set_bootstrap_servers(self.servers)
        builder.set_starting_offsets(KafkaOffsetsInitializer.earliest())
        builder.set_value_only_deserializer(SimpleStringSchema())
        if topics:
            builder.set_topics(*topics)
        return builder.set_bounded(KafkaOffsetsInitializer.latest()) if latest else builder

    def sink(
        self, topic: str, guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE, prefix: str = "tests"
    ) -> KafkaSinkBuilder:
        """A sink of strings."""
        schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
        schema = schema.set_value_serialization_schema(SimpleStringSchema())
        builder = KafkaSink.builder().set_bootstrap_servers(self.servers).set_record_serializer(schema.build())
        return builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(prefix)


def _missing() -> str | None:
    try:
        import confluent_kafka  # noqa: F401
        import kafka  # noqa: F401
    except ImportError as error:
        return f"no Kafka: {error}"
    return why_not()


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[KafkaServer]:
    """The broker, started by the first test that asks for it. Where there is none such tests skip, but never in CI."""
    missing = _missing()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test with Kafka: {missing}")
        pytest.skip(f"no Kafka to test with: {missing}")
    with KafkaServer() as server:
        yield server


@pytest.fixture
def broker(kafka_server: KafkaServer) -> Broker:
    return Broker(kafka_server)
