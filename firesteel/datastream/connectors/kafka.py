"""Kafka as a source and as a sink, under PyFlink's names. No Java is involved: ``pip install 'firesteel[kafka]'``.

>>> from firesteel.common import SimpleStringSchema
>>> source = (
...     KafkaSource.builder()
...     .set_bootstrap_servers("localhost:9092")
...     .set_topics("clicks")
...     .set_group_id("shop")
...     .set_starting_offsets(KafkaOffsetsInitializer.earliest())
...     .set_value_only_deserializer(SimpleStringSchema())
...     .build()
... )
>>> source
KafkaSource(clicks at localhost:9092)
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from firesteel.common.secret import Secret
from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.kafka.committing import TransactionCommitter
from firesteel.connectors.kafka.deserializing import Deserializing, KafkaRecord
from firesteel.connectors.kafka.enumerator import KafkaEnumerator, Subscription
from firesteel.connectors.kafka.offsets import OffsetsSpec, TopicPartition
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.reader import KafkaReader
from firesteel.connectors.kafka.serializing import Headers, OutgoingRecord, RecordFunction, RecordParts, Serializer
from firesteel.connectors.kafka.write_ahead import WriteAheadCommitter, WriteAheadWriter
from firesteel.connectors.kafka.writing import PlainWriter, TransactionalWriter
from firesteel.connectors.undecodable import Undecodable, UndecodableRecord
from firesteel.datastream.connectors.base import (
    Committer,
    CommitterContext,
    DeliveryGuarantee,
    Sink,
    SinkWriter,
    Source,
    WriterContext,
)
from firesteel.errors import ProgramError

__all__ = [
    "DeliveryGuarantee",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "OutgoingRecord",
    "Undecodable",
    "UndecodableRecord",
]

TRANSACTION_TIMEOUT = 900_000
"""Milliseconds: the most that brokers allow by default. A transaction that is prepared must live through a restart."""


class KafkaOffsetResetStrategy(enum.Enum):
    """Where to begin in a partition for which no offset is known."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class KafkaTopicPartition:
    """A partition of a topic.

    >>> KafkaTopicPartition("clicks", 3)
    KafkaTopicPartition('clicks', 3)
    """

    def __init__(self, topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition

    def place(self) -> TopicPartition:
        return TopicPartition(self._topic, self._partition)

    def __repr__(self) -> str:
        return f"KafkaTopicPartition({self._topic!r}, {self._partition})"

    def __eq__(self, other: object) -> bool:
        return self.place() == other.place() if isinstance(other, KafkaTopicPartition) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.place())


class KafkaOffsetsInitializer:
    """Where reading begins, or ends."""

    def __init__(self, spec: OffsetsSpec) -> None:
        self.spec = spec

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Where the group has committed to be."""
        return KafkaOffsetsInitializer(OffsetsSpec("committed", reset=offset_reset_strategy.name.lower()))

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record of a time, in milliseconds, or later."""
        return KafkaOffsetsInitializer(OffsetsSpec("timestamp", timestamp=timestamp))

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The first record that there is."""
        return KafkaOffsetsInitializer(OffsetsSpec("earliest"))

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Behind the last record that there is."""
        return KafkaOffsetsInitializer(OffsetsSpec("latest"))

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """An offset for each partition."""
        places = tuple((partition.place(), offset) for partition, offset in offsets.items())
        return KafkaOffsetsInitializer(OffsetsSpec("offsets", offsets=places, reset=offset_reset_strategy.name.lower()))


class KafkaRecordDeserializationSchema:
    """Makes elements of whole records: key, headers, timestamp, topic, partition and offset."""

    def __init__(self, of_record: Callable[[KafkaRecord], Any] | None, schema: DeserializationSchema | None) -> None:
        self.of_record, self.schema = of_record, schema

    @staticmethod
    def value_only(deserialization_schema: DeserializationSchema) -> KafkaRecordDeserializationSchema:
        """Reads values and nothing else."""
        return KafkaRecordDeserializationSchema(None, deserialization_schema)

    @staticmethod
    def of(function: Callable[[KafkaRecord], Any]) -> KafkaRecordDeserializationSchema:
        """Calls a function with each :class:`KafkaRecord`. None leaves a record out."""
        return KafkaRecordDeserializationSchema(function, None)


class KafkaSource(Source[TopicPartition, Any]):
    """What ``env.from_source`` reads. Made by :meth:`builder`."""

    def __init__(
        self,
        properties: KafkaProperties,
        subscription: Subscription,
        deserializing: Deserializing,
        start: OffsetsSpec,
        stop: OffsetsSpec | None,
        bounded: bool,
    ) -> None:
        self._properties, self._subscription, self._deserializing = properties, subscription, deserializing
        self._start, self._stop, self._bounded = start, stop, bounded

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        return KafkaSourceBuilder()

    def create_enumerator(self) -> KafkaEnumerator:
        return KafkaEnumerator(self._properties, self._subscription, self._start, self._stop, self._bounded)

    def create_reader(self) -> KafkaReader:
        return KafkaReader(self._properties, self._deserializing)

    def get_produced_type(self) -> TypeInformation | None:
        return self._deserializing.produced_type

    def __repr__(self) -> str:
        return f"KafkaSource({self._subscription} at {self._properties.servers})"


class KafkaSourceBuilder:
    """Collects what a :class:`KafkaSource` is made of."""

    def __init__(self) -> None:
        self._properties = KafkaProperties()
        self._subscription: Subscription | None = None
        self._schema: KafkaRecordDeserializationSchema | None = None
        self._undecodable = Undecodable.FAIL
        self._start = OffsetsSpec("earliest")
        self._stop: OffsetsSpec | None = None
        self._bounded = False

    def build(self) -> KafkaSource:
        """The source, if nothing is missing."""
        if not self._properties.servers:
            raise ProgramError("A KafkaSource needs to know where Kafka is: set_bootstrap_servers('host:9092').")
        if self._subscription is None:
            raise ProgramError(
                "A KafkaSource needs something to read: set_topics(…), set_topic_pattern(…) or set_partitions(…)."
            )
        if self._schema is None:
            raise ProgramError("A KafkaSource needs to know how records are read: set_value_only_deserializer(…).")
        if self._start.kind == "committed" and self._properties.get("group.id") is None:
            raise ProgramError("KafkaOffsetsInitializer.committed_offsets() needs a group: set_group_id(…).")
        reading = Deserializing(self._schema.schema, self._schema.of_record, self._undecodable)
        return KafkaSource(self._properties, self._subscription, reading, self._start, self._stop, self._bounded)

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """``host:port``, or several with commas between them."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """The group whose offsets are committed with each checkpoint."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """The topics to read."""
        return self._subscribe(Subscription(topics=topics))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Reads all topics whose names match a regular expression, also those that are made later."""
        return self._subscribe(Subscription(pattern=topic_pattern))

    def set_partitions(self, partitions: Any) -> KafkaSourceBuilder:
        """Reads these partitions: a set of :class:`KafkaTopicPartition`."""
        return self._subscribe(Subscription(partitions=[one.place() for one in partitions]))

    def _subscribe(self, subscription: Subscription) -> KafkaSourceBuilder:
        if self._subscription is not None:
            raise ProgramError(
                f"This KafkaSource already reads {self._subscription}: set topics, a pattern or partitions once."
            )
        self._subscription = subscription
        return self

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Where to begin, unless the job goes on from a checkpoint or savepoint."""
        self._start = starting_offsets_initializer.spec
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Reads up to there and no further, as in Flink: the job goes on without input until it is stopped. For one
        that ends, take :meth:`set_bounded`, and the execution mode STREAMING where it is to be a streaming one."""
        self._stop, self._bounded = stopping_offsets_initializer.spec, False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Ends there."""
        self._stop, self._bounded = stopping_offsets_initializer.spec, True
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> KafkaSourceBuilder:
        """How values are read; keys are left out."""
        return self.set_deserializer(KafkaRecordDeserializationSchema.value_only(deserialization_schema))

    def set_deserializer(self, deserializer: KafkaRecordDeserializationSchema) -> KafkaSourceBuilder:
        """How records are read."""
        self._schema = deserializer
        return self

    def set_undecodable(self, undecodable: Undecodable) -> KafkaSourceBuilder:
        """What becomes of records that the schema cannot read: the job fails, they are left out and counted, or they
        go to a side output, ``Undecodable.side_output(tag)``."""
        self._undecodable = undecodable
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """How the consumers call themselves."""
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: str | Secret) -> KafkaSourceBuilder:
        """A property of the client."""
        self._properties = self._properties.having({key: value})
        return self

    def set_properties(self, props: Mapping[str, Any]) -> KafkaSourceBuilder:
        """Several properties of the client."""
        self._properties = self._properties.having(props)
        return self


class KafkaTopicSelector:
    """Chooses the topic of each record."""

    def apply(self, data: Any) -> str:
        raise NotImplementedError


class KafkaRecordSerializationSchema(SerializationSchema):
    """How elements become records. Made by :meth:`builder`, or from a function by :meth:`of`.

    >>> schema = KafkaRecordSerializationSchema.of(lambda order: OutgoingRecord("orders", order.encode(), key=b"k"))
    >>> schema.serialize("pen")
    b'pen'
    """

    def __init__(self, serializer: Serializer) -> None:
        self.serializer = serializer

    def serialize(self, element: Any) -> bytes:
        """The value of an element's record."""
        record = self.serializer(element, None)
        return b"" if record is None else record.value or b""

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        return KafkaRecordSerializationSchemaBuilder()

    @staticmethod
    def of(function: Callable[[Any], OutgoingRecord | None]) -> KafkaRecordSerializationSchema:
        """Calls a function with each element; it returns an :class:`OutgoingRecord`, or None to write none."""
        return KafkaRecordSerializationSchema(RecordFunction(function))


class KafkaRecordSerializationSchemaBuilder:
    """Collects what records are made of."""

    def __init__(self) -> None:
        self._topic: str | Callable[[Any], str] | None = None
        self._value: Callable[[Any], bytes] | None = None
        self._key: Callable[[Any], bytes] | None = None
        self._headers: Callable[[Any], Headers] | None = None
        self._partition: Callable[[Any], int] | None = None

    def build(self) -> KafkaRecordSerializationSchema:
        """The schema, if nothing is missing."""
        if self._topic is None:
            raise ProgramError("Records for Kafka need a topic: set_topic(…) or set_topic_selector(…).")
        if self._value is None:
            raise ProgramError("Records for Kafka need a value: set_value_serialization_schema(…).")
        return KafkaRecordSerializationSchema(
            RecordParts(self._topic, self._value, self._key, self._headers, self._partition)
        )

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """One topic for all records."""
        self._topic = topic
        return self

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """A topic for each record."""
        self._topic = topic_selector.apply if isinstance(topic_selector, KafkaTopicSelector) else topic_selector
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema | Callable[[Any], bytes]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """How the value is made of an element."""
        self._value = _serialize(value_serialization_schema)
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema | Callable[[Any], bytes]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """How the key is made of an element. Records of one key go to one partition."""
        self._key = _serialize(key_serialization_schema)
        return self

    def set_header_provider(self, header_provider: Callable[[Any], Headers]) -> KafkaRecordSerializationSchemaBuilder:
        """The headers of each record: a dict, or pairs where a name may stand twice."""
        self._headers = header_provider
        return self

    def set_partitioner(self, partitioner: Callable[[Any], int]) -> KafkaRecordSerializationSchemaBuilder:
        """The partition of each record."""
        self._partition = partitioner
        return self


def _serialize(schema: SerializationSchema | Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    return schema.serialize if isinstance(schema, SerializationSchema) else schema


class KafkaSink(Sink):
    """What ``stream.sink_to`` writes to. Made by :meth:`builder`."""

    def __init__(
        self,
        properties: KafkaProperties,
        serializer: Serializer,
        guarantee: DeliveryGuarantee,
        prefix: str,
        write_ahead: bool = False,
    ) -> None:
        self._properties, self._serializer = properties, serializer
        self._guarantee, self._prefix, self._ahead = guarantee, prefix, write_ahead

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        return KafkaSinkBuilder()

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            waits = self._guarantee is DeliveryGuarantee.AT_LEAST_ONCE
            return PlainWriter(self._properties, self._serializer, waits)
        if self._ahead:
            return WriteAheadWriter(self._properties, self._serializer)
        return TransactionalWriter(
            self._properties, self._serializer, f"{self._ids(context)}{context.subtask()}-{context.writer_id()}"
        )

    def create_committer(self, context: CommitterContext) -> Committer | None:
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return None
        if self._ahead:
            return WriteAheadCommitter(self._properties, f"{self._ids(context)}ahead", context)
        topic = self._serializer.only_topic if isinstance(self._serializer, RecordParts) else None
        return TransactionCommitter(self._properties, self._ids(context), topic)

    def _ids(self, context: CommitterContext) -> str:
        """What the transactional ids of this sink begin with, and nobody else's."""
        return f"{self._prefix}-{context.name_prefix()}-"

    def __repr__(self) -> str:
        return f"KafkaSink({self._guarantee.name} at {self._properties.servers})"


class KafkaSinkBuilder:
    """Collects what a :class:`KafkaSink` is made of."""

    def __init__(self) -> None:
        self._properties = KafkaProperties().having({"transaction.timeout.ms": TRANSACTION_TIMEOUT})
        self._schema: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix: str | None = None
        self._ahead = False

    def build(self) -> KafkaSink:
        """The sink, if nothing is missing."""
        if not self._properties.servers:
            raise ProgramError("A KafkaSink needs to know where Kafka is: set_bootstrap_servers('host:9092').")
        if self._schema is None:
            raise ProgramError("A KafkaSink needs to know how records are written: set_record_serializer(…).")
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE and self._prefix is None:
            raise ProgramError("EXACTLY_ONCE needs set_transactional_id_prefix(…), one that no other application uses.")
        if self._ahead and self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            raise ProgramError(
                f"set_write_ahead() is a way to EXACTLY_ONCE, and the guarantee is {self._guarantee.name}. "
                "Call set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE), or leave it out."
            )
        prefix = self._prefix or "firesteel"
        return KafkaSink(self._properties, self._schema.serializer, self._guarantee, prefix, self._ahead)

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """``host:port``, or several with commas between them."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """How elements become records."""
        self._schema = record_serializer
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """How often a record is written; NONE is the default, as in Flink."""
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """What the ids of transactions begin with."""
        self._prefix = transactional_id_prefix
        return self

    def set_write_ahead(self, write_ahead: bool = True) -> KafkaSinkBuilder:
        """Keeps the records of a batch in the checkpoint folder until it is complete; then the driver writes them.
        For jobs that may be down for longer than a transaction may be open."""
        self._ahead = write_ahead
        return self

    def set_property(self, key: str, value: str | Secret) -> KafkaSinkBuilder:
        """A property of the client."""
        self._properties = self._properties.having({key: value})
        return self

    def set_properties(self, props: Mapping[str, Any]) -> KafkaSinkBuilder:
        """Several properties of the client."""
        self._properties = self._properties.having(props)
        return self
