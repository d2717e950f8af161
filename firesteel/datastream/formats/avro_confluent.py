"""Avro with a schema registry, in the format of Confluent's serializers. Needs ``pip install 'firesteel[avro]'``.

PyFlink has no such schemas; the names are those of Flink's Java API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.formats.avro_records import AvroSchema, GenericRecordAvroTypeInfo
from firesteel.connectors.formats.avro_registry import RegistryReading, RegistryWriting
from firesteel.connectors.formats.avro_rows import AvroRows
from firesteel.connectors.formats.compiling import undecodable
from firesteel.connectors.formats.registry import SchemaRegistry
from firesteel.errors import FiresteelError, ProgramError, TypeMismatchError, short_repr

__all__ = ["ConfluentRegistryAvroDeserializationSchema", "ConfluentRegistryAvroSerializationSchema"]

_CAPACITY = 1000


class ConfluentRegistryAvroDeserializationSchema(DeserializationSchema):
    """Reads Avro messages with the schema that each was written with, which the registry has.

    The records are resolved to the schema that is given here: fields that it does not have are left out, those that the
    writer did not have take their defaults.

    ``properties``: ``basic.auth.user.info`` (``user:password``) or ``bearer.auth.token``, both of which may be a
    :class:`~firesteel.common.secret.Secret`; ``ssl.ca.location``; ``request.timeout.ms``.
    """

    def __init__(self, schema: AvroSchema | None, registry: SchemaRegistry, capacity: int, as_rows: bool) -> None:
        self._schema, self._registry, self._capacity, self._as_rows = schema, registry, capacity, as_rows
        rows = AvroRows(str(schema)) if as_rows else None
        self._reading = RegistryReading(registry, schema, capacity, rows)
        self._type_info: TypeInformation | None = rows.type_info if rows is not None else None
        if rows is None and schema is not None:
            self._type_info = GenericRecordAvroTypeInfo(schema)

    @staticmethod
    def for_generic(
        schema: AvroSchema | str | None,
        url: str,
        identity_map_capacity: int | Mapping[str, Any] = _CAPACITY,
        properties: Mapping[str, Any] | None = None,
    ) -> ConfluentRegistryAvroDeserializationSchema:
        """Records as dicts. Without a schema each is as it was written."""
        capacity, properties = _options(identity_map_capacity, properties)
        given = None if schema is None else AvroSchema.of(schema)
        return ConfluentRegistryAvroDeserializationSchema(given, SchemaRegistry(url, properties), capacity, False)

    @staticmethod
    def for_row(
        schema: AvroSchema | str,
        url: str,
        identity_map_capacity: int | Mapping[str, Any] = _CAPACITY,
        properties: Mapping[str, Any] | None = None,
    ) -> ConfluentRegistryAvroDeserializationSchema:
        """Records as rows, with the types that ``AvroRowDeserializationSchema`` gives them."""
        capacity, properties = _options(identity_map_capacity, properties)
        registry = SchemaRegistry(url, properties)
        return ConfluentRegistryAvroDeserializationSchema(AvroSchema.of(schema), registry, capacity, True)

    def deserialize(self, message: bytes) -> Any:
        """The record."""
        try:
            return self._reading.read(message)
        except FiresteelError:
            # The registry's, not the message's.
            raise
        except Exception as error:
            raise undecodable("Avro", message, error) from None

    def get_produced_type(self) -> TypeInformation:
        return self._type_info if self._type_info is not None else super().get_produced_type()

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._schema, self._registry, self._capacity, self._as_rows)
        return ConfluentRegistryAvroDeserializationSchema, arguments


class ConfluentRegistryAvroSerializationSchema(SerializationSchema):
    """Writes Avro messages with the number that the registry has for the schema.

    A worker asks for the number once, when it writes its first message. The schema is registered under the subject,
    by custom a topic's name with ``-key`` or ``-value``, unless the property ``auto.register.schemas`` is false: then
    it has to be there.
    """

    def __init__(self, subject: str, schema: AvroSchema, registry: SchemaRegistry, as_rows: bool) -> None:
        self._subject, self._schema, self._registry, self._as_rows = subject, schema, registry, as_rows
        self._rows = AvroRows(str(schema)) if as_rows else None
        self._writing = RegistryWriting(registry, subject, schema, self._rows)

    @staticmethod
    def for_generic(
        subject: str, schema: AvroSchema | str, schema_registry_url: str, properties: Mapping[str, Any] | None = None
    ) -> ConfluentRegistryAvroSerializationSchema:
        """Of dicts; rows with names and dataclasses do as well."""
        registry = SchemaRegistry(schema_registry_url, properties)
        return ConfluentRegistryAvroSerializationSchema(_known(subject), AvroSchema.of(schema), registry, False)

    @staticmethod
    def for_row(
        subject: str, schema: AvroSchema | str, schema_registry_url: str, properties: Mapping[str, Any] | None = None
    ) -> ConfluentRegistryAvroSerializationSchema:
        """Of rows, with the types that ``AvroRowSerializationSchema`` has."""
        registry = SchemaRegistry(schema_registry_url, properties)
        return ConfluentRegistryAvroSerializationSchema(_known(subject), AvroSchema.of(schema), registry, True)

    def serialize(self, element: Any) -> bytes:
        """The bytes of a message."""
        try:
            return self._writing.write(element)
        except FiresteelError:
            raise
        except Exception as error:
            reason = (None if self._rows is None else self._rows.type_info.explain(element)) or str(error)
            raise TypeMismatchError(f"Avro cannot write {short_repr(element, 120)}: {reason}.") from None

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._subject, self._schema, self._registry, self._as_rows)
        return ConfluentRegistryAvroSerializationSchema, arguments


def _options(capacity: int | Mapping[str, Any], properties: Mapping[str, Any] | None) -> tuple[int, Any]:
    """Java has these two in either place."""
    if isinstance(capacity, Mapping):
        return _CAPACITY, capacity
    if not isinstance(capacity, int) or capacity < 1:
        raise ProgramError(f"The number of schemas to keep is at least 1, got {short_repr(capacity, 40)}.")
    return capacity, properties


def _known(subject: str) -> str:
    if not isinstance(subject, str) or not subject:
        raise ProgramError(
            f"A schema is registered under a subject such as 'orders-value', got {short_repr(subject, 40)}."
        )
    return subject
