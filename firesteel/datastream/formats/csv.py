"""CSV: rows from and to lines."""

from __future__ import annotations

import dataclasses
from typing import Any

from firesteel.common.serialization import BulkWriterFactory, DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation
from firesteel.common.types import Row
from firesteel.connectors.files.csv_files import CsvLines, CsvRecords, CsvWriterFactory
from firesteel.connectors.files.csv_schema import CsvSchema, CsvSchemaBuilder
from firesteel.connectors.files.stream_format import StreamFormat
from firesteel.connectors.formats.compiling import row_type_of, undecodable, unwritable
from firesteel.connectors.formats.csv_lines import Dialect, csv_text, single_character, splitting
from firesteel.connectors.formats.csv_rows import row_reader, row_writer
from firesteel.errors import ConfigurationError

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


class CsvReaderFormat(CsvRecords):
    """Reads rows from files of CSV, for
    :meth:`firesteel.datastream.connectors.file_system.FileSource.for_record_stream_format`.

    >>> import io
    >>> schema = CsvSchema.builder().add_number_column("id").add_string_column("name").set_use_header().build()
    >>> form = CsvReaderFormat.for_schema(schema)
    >>> list(form.read_records(io.BytesIO(b'id,name\\n7,"Ada\\nLovelace"\\n'), "-"))
    [Row(id=7, name='Ada\\nLovelace')]
    """

    @staticmethod
    def for_schema(schema: CsvSchema, multi_line: bool = True) -> StreamFormat[Row]:
        """The rows of a schema.

        A value in quotes may hold the end of a line, so that a file is read from its beginning, by one subtask. Where
        no value does, ``multi_line=False`` lets many subtasks read a large file side by side.
        """
        return CsvReaderFormat(schema._parts) if multi_line else CsvLines(schema._parts)


class CsvBulkWriters:
    """Writers of CSV for :meth:`firesteel.datastream.connectors.file_system.FileSink.for_bulk_format`."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Elements are rows, tuples, dicts or objects with such attributes. With ``set_use_header`` each file begins
        with the names of the columns."""
        return CsvWriterFactory(schema._parts)


class CsvRowDeserializationSchema(DeserializationSchema):
    """Reads rows from messages that are lines of CSV.

    >>> from firesteel.common import Types
    >>> tags = Types.BASIC_ARRAY(Types.STRING())
    >>> person = Types.ROW_NAMED(["name", "age", "tags"], [Types.STRING(), Types.INT(), tags])
    >>> schema = CsvRowDeserializationSchema.Builder(person).set_null_literal("-").build()
    >>> schema.deserialize(b'"Lovelace, Ada",-,maths;verse')
    Row(name='Lovelace, Ada', age=None, tags=['maths', 'verse'])
    >>> schema.deserialize(b"Ada,old,")
    Traceback (most recent call last):
    firesteel.errors.InputError: CSV cannot read a message: field 'age' should be INT, got 'old'. The message has 8 \
bytes and begins with b'Ada,old,'.
    """

    def __init__(self, type_info: RowTypeInfo, dialect: Dialect, ignore_parse_errors: bool = False) -> None:
        self._type_info, self._dialect, self._ignoring = type_info, dialect, ignore_parse_errors
        self._split = splitting(dialect)
        self._read = row_reader(type_info, dialect, ignore_parse_errors)

    def deserialize(self, message: bytes) -> Any:
        """The row of the first line; None for what cannot be read if such errors are ignored."""
        try:
            return self._read(self._split(csv_text(message)))
        except Exception as error:
            if self._ignoring:
                return None
            raise undecodable("CSV", message, error) from None

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvRowDeserializationSchema, (self._type_info, self._dialect, self._ignoring)

    class Builder:
        """Says what a line is made of."""

        def __init__(self, type_info: TypeInformation) -> None:
            self._type_info = row_type_of(type_info, "CsvRowDeserializationSchema")
            self._dialect = Dialect()
            self._ignoring = False

        def _with(self, **changes: Any) -> CsvRowDeserializationSchema.Builder:
            self._dialect = dataclasses.replace(self._dialect, **changes)
            return self

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """What stands between values; a comma by default."""
            return self._with(delimiter=single_character("field delimiter", delimiter))

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Whether lines that begin with ``#`` are left out, and empty ones with them."""
            return self._with(comments=allow_comments)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """What stands between the elements of an array, and between the fields of a row inside of the row; a
            semicolon by default."""
            return self._with(array_delimiter=delimiter)

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """What encloses values; ``"`` by default."""
            return self._with(quote=single_character("quote character", c))

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """What takes the meaning off the following character; there is none by default."""
            return self._with(escape=single_character("escape character", c))

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """The value that means None; there is none by default."""
            return self._with(null_literal=null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Whether a value that cannot be read is None, and a line that cannot be read is left out."""
            self._ignoring = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """The schema."""
            return CsvRowDeserializationSchema(self._type_info, self._dialect, self._ignoring)


class CsvRowSerializationSchema(SerializationSchema):
    """Writes rows as lines of CSV, to the byte as Flink does.

    >>> from firesteel.common import Row, Types
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> CsvRowSerializationSchema.Builder(person).build().serialize(Row("Lovelace, Ada", None))
    b'"Lovelace, Ada",\\n'
    """

    def __init__(self, type_info: RowTypeInfo, dialect: Dialect) -> None:
        self._type_info, self._dialect = type_info, dialect
        self._write = row_writer(type_info, dialect)

    def serialize(self, element: Any) -> bytes:
        """The line of a row; tuples, dicts and objects with such attributes do as well."""
        try:
            return self._write(element).encode()
        except Exception as error:
            raise unwritable("CsvRowSerializationSchema", self._type_info, element, error) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvRowSerializationSchema, (self._type_info, self._dialect)

    class Builder:
        """Says what a line is made of."""

        def __init__(self, type_info: TypeInformation) -> None:
            self._type_info = row_type_of(type_info, "CsvRowSerializationSchema")
            self._dialect = Dialect()

        def _with(self, **changes: Any) -> CsvRowSerializationSchema.Builder:
            self._dialect = dataclasses.replace(self._dialect, **changes)
            return self

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """What stands between values; a comma by default."""
            return self._with(delimiter=single_character("field delimiter", c))

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What a line ends with: ``\\n``, which is the default, ``\\r``, ``\\r\\n`` or nothing."""
            if delimiter not in ("\n", "\r", "\r\n", ""):
                raise ConfigurationError(
                    f"A line of CSV ends with \\n, \\r, \\r\\n or nothing, not with {delimiter!r}."
                )
            return self._with(line_delimiter=delimiter)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What stands between the elements of an array, and between the fields of a row inside of the row; a
            semicolon by default."""
            return self._with(array_delimiter=delimiter)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Values are written as they are."""
            return self._with(quote=None)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """What encloses values; ``"`` by default."""
            return self._with(quote=single_character("quote character", c))

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """What takes the meaning off the following character; there is none by default."""
            return self._with(escape=single_character("escape character", c))

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """What is written for None; nothing by default."""
            return self._with(null_literal=s)

        def build(self) -> CsvRowSerializationSchema:
            """The schema."""
            return CsvRowSerializationSchema(self._type_info, self._dialect)
