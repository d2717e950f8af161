"""Avro: rows and generic records from and to Avro's binary format. Needs ``pip install 'firesteel[avro]'``."""

from __future__ import annotations

from typing import Any

from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.formats.avro_rows import AvroRows
from firesteel.connectors.formats.compiling import undecodable, unwritable
from firesteel.errors import ProgramError

__all__ = ["AvroRowDeserializationSchema", "AvroRowSerializationSchema"]


class AvroRowDeserializationSchema(DeserializationSchema):
    """Reads rows from messages that are Avro records, each without its schema.

    >>> schema = AvroRowDeserializationSchema(avro_schema_string='''{"type": "record", "name": "Person", "fields": [
    ...     {"name": "name", "type": "string"}, {"name": "born", "type": {"type": "int", "logicalType": "date"}}]}''')
    >>> schema.deserialize(b"\\x06Ada\\x9b\\xef\\x06")
    Row(name='Ada', born=datetime.date(1815, 12, 10))
    >>> schema.get_produced_type()
    ROW<name STRING, born SQL_DATE>
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema_string = _schema_string(record_class, avro_schema_string)
        rows = AvroRows(self._schema_string)
        self._type_info, self._read = rows.type_info, rows.reader()

    def deserialize(self, message: bytes) -> Any:
        """The row."""
        try:
            return self._read(message)
        except Exception as error:
            raise undecodable("Avro", message, error) from None

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowDeserializationSchema, (None, self._schema_string)


class AvroRowSerializationSchema(SerializationSchema):
    """Writes rows as Avro records, each without its schema.

    >>> from firesteel.common import Row
    >>> schema = AvroRowSerializationSchema(avro_schema_string='''{"type": "record", "name": "Person", "fields": [
    ...     {"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"]}]}''')
    >>> schema.serialize(Row("Ada", None))
    b'\\x06Ada\\x00'
    >>> schema.serialize(Row("Ada", "old"))
    Traceback (most recent call last):
    firesteel.errors.TypeMismatchError: AvroRowSerializationSchema cannot write <Row('Ada', 'old')>: field 'age' of \
ROW<name STRING, age INT>: expected INT, got str 'old'.
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema_string = _schema_string(record_class, avro_schema_string)
        rows = AvroRows(self._schema_string)
        self._type_info, self._write = rows.type_info, rows.writer()

    def serialize(self, element: Any) -> bytes:
        """The bytes of a row; tuples, dicts and objects with such attributes do as well."""
        try:
            return self._write(element)
        except Exception as error:
            raise unwritable("AvroRowSerializationSchema", self._type_info, element, error) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowSerializationSchema, (None, self._schema_string)


def _schema_string(record_class: str | None, avro_schema_string: str | None) -> str:
    if record_class is not None:
        raise ProgramError(
            f"record_class={record_class!r} is the name of a Java class, and there are none here. Give its schema as "
            "avro_schema_string: the class has it in its field SCHEMA$."
        )
    if avro_schema_string is None:
        raise TypeError("record_class or avro_schema_string should be specified.")
    return avro_schema_string
