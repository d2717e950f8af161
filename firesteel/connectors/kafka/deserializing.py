"""From Kafka's messages to a stream's elements."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from itertools import repeat
from operator import is_, methodcaller
from typing import Any, NamedTuple

from firesteel.common.serialization import ByteArraySchema, DeserializationSchema, SimpleStringSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.source import Records, SideRecords
from firesteel.connectors.undecodable import Undecodable, UndecodableRecord, UndecodableRecords
from firesteel.durable.names import stored_as
from firesteel.errors import ConnectorError

__all__ = ["Deserializing", "KafkaRecord"]

_value, _timestamp = methodcaller("value"), methodcaller("timestamp")
_NO_TIMESTAMP = 0


class KafkaRecord(NamedTuple):
    """A record as Kafka has it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """In milliseconds."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@stored_as("kafka_record")
def _kafka_record(
    topic: str,
    partition: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
) -> KafkaRecord:
    return KafkaRecord(topic, partition, offset, timestamp, key, value, headers)


copyreg.pickle(KafkaRecord, lambda record: (_kafka_record, tuple(record)))


class Deserializing:
    """Applies a schema to messages: to their values alone, or to whole records."""

    def __init__(
        self,
        schema: DeserializationSchema | None,
        of_record: Callable[[KafkaRecord], Any] | None = None,
        undecodable: Undecodable = Undecodable.FAIL,
    ) -> None:
        self._schema, self._of_record = schema, of_record
        self._undecodable = UndecodableRecords(undecodable)

    @property
    def produced_type(self) -> TypeInformation | None:
        return None if self._schema is None else self._schema.get_produced_type()

    def open(self, context: Any) -> None:
        self._undecodable.open(context)

    def records(self, messages: list[Any]) -> list[Records[Any] | SideRecords]:
        """The elements of some messages, with the timestamps that Kafka has for them."""
        aside: list[SideRecords] = []
        try:
            values, kept = self._values(messages), messages
        except Exception:
            # Once more, one by one: which one was it?
            values, kept = self._one_by_one(messages, aside)
        if True in map(is_, values, repeat(None)):
            # As in Flink: a schema that gives nothing leaves the record out.
            pairs = [(value, message) for value, message in zip(values, kept, strict=True) if value is not None]
            values, kept = [value for value, _ in pairs], [message for _, message in pairs]
        times = list(map(_timestamp, kept))
        if any(kind == _NO_TIMESTAMP for kind, _ in times):
            return [Records(values), *aside]
        return [Records(values, [moment for _, moment in times]), *aside]

    def _values(self, messages: list[Any]) -> list[Any]:
        if self._of_record is not None:
            of_record = self._of_record
            return [of_record(_record(message)) for message in messages]
        schema = self._schema
        assert schema is not None
        contents = list(map(_value, messages))
        if type(schema) is ByteArraySchema and None not in contents:
            return contents
        if type(schema) is SimpleStringSchema:
            charset = schema.charset
            return [content.decode(charset, "replace") for content in contents]
        return list(map(schema.deserialize, contents))

    def _one_by_one(self, messages: list[Any], aside: list[SideRecords]) -> tuple[list[Any], list[Any]]:
        values, kept = [], []
        for message in messages:
            try:
                values += self._values([message])
                kept.append(message)
            except ConnectorError:
                # A system that the schema asks, such as a registry, is away: the record must not be left out for that.
                raise
            except Exception as error:
                found = _undecodable(message, error)
                side = self._undecodable.take(found, error, found.record.timestamp)
                if side is not None:
                    aside.append(side)
        return values, kept


def _record(message: Any) -> KafkaRecord:
    return KafkaRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


def _undecodable(message: Any, error: Exception) -> UndecodableRecord:
    place = f"offset {message.offset()} of {message.topic()}-{message.partition()}"
    return UndecodableRecord(place, message.value(), f"{type(error).__name__}: {error}", _record(message))
