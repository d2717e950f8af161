"""Avro: rows and generic records from and to Avro's binary format. Needs ``pip install 'firesteel[avro]'``."""

from __future__ import annotations

from typing import Any

from firesteel.common.serialization import BulkWriterFactory, DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.files.avro_files import AvroBlocks, AvroWriterFactory
from firesteel.connectors.files.bulk_format import BulkFormat
from firesteel.connectors.formats.avro_records import AvroSchema, GenericRecordAvroTypeInfo
from firesteel.connectors.formats.avro_rows import AvroRows
from firesteel.connectors.formats.compiling import undecodable, unwritable
from firesteel.errors import ProgramError

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroReaderFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]


class AvroReaderFormat:
    """Readers of Avro files for
    :meth:`firesteel.datastream.connectors.file_system.FileSource.for_bulk_file_format`. PyFlink has
    :class:`AvroInputFormat` only, which is for one path."""

    @staticmethod
    def for_generic(schema: AvroSchema | str) -> BulkFormat[dict[str, Any]]:
        """Records as dicts, resolved to a schema: fields that it does not have are left out, those that the file does
        not have take their defaults."""
        return AvroBlocks(AvroSchema.of(schema), False)

    @staticmethod
    def for_row(schema: AvroSchema | str) -> BulkFormat[Any]:
        """Records as rows, with the types that :class:`AvroRowDeserializationSchema` gives them."""
        return AvroBlocks(AvroSchema.of(schema), True)


class AvroInputFormat:
    """An Avro file, or a folder of such, for
    :meth:`~firesteel.datastream.StreamExecutionEnvironment.create_input`."""

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self.path, self.format = path, AvroReaderFormat.for_generic(schema)
        self._type_info = GenericRecordAvroTypeInfo(schema)

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        """The type of generic records."""
        return self._type_info


class AvroBulkWriters:
    """Writers of Avro files for :meth:`firesteel.datastream.connectors.file_system.FileSink.for_bulk_format`."""

    @staticmethod
    def for_generic_record(schema: AvroSchema | str, codec: str = "null") -> BulkWriterFactory:
        """Elements are dicts that a schema describes; rows with names and dataclasses do as well. ``codec`` is
        Firesteel's own: ``deflate`` compresses without another package."""
        return AvroWriterFactory(AvroSchema.of(schema), codec)


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
        raise TypeError("A format of Avro needs a schema: avro_schema_string.")
    return avro_schema_string
