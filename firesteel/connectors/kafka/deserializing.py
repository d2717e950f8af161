"""From Kafka's messages to a stream's elements."""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import methodcaller
from typing import Any, NamedTuple

from firesteel.common.serialization import ByteArraySchema, DeserializationSchema, SimpleStringSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.source import Records
from firesteel.errors import ConnectorError, InputError

__all__ = ["Deserializing", "KafkaRecord", "Undecodable"]

_value, _timestamp = methodcaller("value"), methodcaller("timestamp")
_NO_TIMESTAMP = 0
_SHOWN_BYTES = 64


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


class Undecodable(enum.Enum):
    """What becomes of a record that the schema cannot read."""

    FAIL = "fail"
    """The job fails, with topic, partition, offset and the first bytes."""
    SKIP = "skip"
    """It is left out and counted, in the metric ``undecodableRecords``."""


class Deserializing:
    """Applies a schema to messages: to their values alone, or to whole records."""

    def __init__(
        self,
        schema: DeserializationSchema | None,
        of_record: Callable[[KafkaRecord], Any] | None = None,
        undecodable: Undecodable = Undecodable.FAIL,
    ) -> None:
        self._schema, self._of_record, self._undecodable = schema, of_record, undecodable
        self._skipped: Any = None

    @property
    def produced_type(self) -> TypeInformation | None:
        return None if self._schema is None else self._schema.get_produced_type()

    def open(self, context: Any) -> None:
        self._skipped = context.get_metrics_group().counter("undecodableRecords")

    def records(self, messages: list[Any]) -> Records[Any]:
        """The elements of some messages, with the timestamps that Kafka has for them."""
        try:
            values = self._values(messages)
            kept = messages
        except Exception:
            # Once more, one by one: which one was it?
            values, kept = self._one_by_one(messages)
        if None in values:
            # As in Flink: a schema that gives nothing leaves the record out.
            pairs = [(value, message) for value, message in zip(values, kept, strict=True) if value is not None]
            values, kept = [value for value, _ in pairs], [message for _, message in pairs]
        times = list(map(_timestamp, kept))
        if any(kind == _NO_TIMESTAMP for kind, _ in times):
            return Records(values)
        return Records(values, [moment for _, moment in times])

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

    def _one_by_one(self, messages: list[Any]) -> tuple[list[Any], list[Any]]:
        values, kept = [], []
        for message in messages:
            try:
                values += self._values([message])
                kept.append(message)
            except ConnectorError:
                # A system that the schema asks, such as a registry, is away: the record must not be left out for that.
                raise
            except Exception as error:
                if self._undecodable is Undecodable.FAIL:
                    raise _failure(message, error) from error
                self._skipped.inc()
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


def _failure(message: Any, error: Exception) -> InputError:
    value = message.value()
    if value is None:
        what = "has no value: it marks a key as deleted, and the schema reads values. Use a schema of whole records"
    else:
        begins = repr(bytes(value[:_SHOWN_BYTES]))
        what = f"cannot be read: {type(error).__name__}: {error}. It has {len(value):,} bytes and begins with {begins}"
    return InputError(
        f"The record at offset {message.offset()} of {message.topic()}-{message.partition()} {what}. "
        "set_undecodable(Undecodable.SKIP) leaves such records out and counts them."
    )
