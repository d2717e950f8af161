"""JSON: rows from and to messages that are JSON objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation
from firesteel.connectors.files.json_files import JsonLines
from firesteel.connectors.files.stream_format import StreamFormat
from firesteel.connectors.formats.compiling import row_type_of, undecodable, unwritable
from firesteel.connectors.formats.json_reading import json_reader
from firesteel.connectors.formats.json_schemas import row_type_of_json_schema
from firesteel.connectors.formats.json_writing import json_writer
from firesteel.errors import ProgramError

__all__ = ["JsonReaderFormat", "JsonRowDeserializationSchema", "JsonRowSerializationSchema"]


class JsonReaderFormat(JsonLines):
    """Reads rows from files with a JSON object a line, for
    :meth:`firesteel.datastream.connectors.file_system.FileSource.for_record_stream_format`. Large files are read by
    many subtasks. PyFlink has no such class.

    >>> import io
    >>> from firesteel.common import Types
    >>> form = JsonReaderFormat.for_type(Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()]))
    >>> list(form.read_records(io.BytesIO(b'{"id": 7, "name": "Ada"}\\n\\n{"id": 8}\\n'), "-"))
    [Row(id=7, name='Ada'), Row(id=8, name=None)]
    """

    @staticmethod
    def for_type(
        type_info: TypeInformation, fail_on_missing_field: bool = False, ignore_parse_errors: bool = False
    ) -> StreamFormat[Any]:
        """The rows of a type; the settings are those of :class:`JsonRowDeserializationSchema`."""
        return JsonReaderFormat(row_type_of(type_info, "JsonReaderFormat"), fail_on_missing_field, ignore_parse_errors)


class JsonRowDeserializationSchema(DeserializationSchema):
    """Reads the fields of a row type from a JSON object.

    >>> from firesteel.common import Types
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(person).build()
    >>> schema.deserialize(b'{"age": "36", "name": "Ada", "more": []}')
    Row(name='Ada', age=36)
    >>> schema.deserialize(b'{"age": "old"}')
    Traceback (most recent call last):
    firesteel.errors.InputError: JSON cannot read a message: field 'age' should be INT, got 'old'. The message has 14 \
bytes and begins with b'{"age": "old"}'.
    """

    def __init__(self, type_info: RowTypeInfo, fail_on_missing_field: bool, ignore_parse_errors: bool) -> None:
        self._type_info, self._required, self._ignoring = type_info, fail_on_missing_field, ignore_parse_errors
        self._read: Callable[[bytes], Any] = json_reader(type_info, fail_on_missing_field, ignore_parse_errors)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """A builder."""
        return JsonRowDeserializationSchema.Builder()

    def deserialize(self, message: bytes) -> Any:
        """The row; None for ``null``, and for what cannot be read if such errors are ignored."""
        try:
            return self._read(message)
        except Exception as error:
            if self._ignoring:
                return None
            raise undecodable("JSON", message, error) from None

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonRowDeserializationSchema, (self._type_info, self._required, self._ignoring)

    class Builder:
        """Says what a JSON object has, and what to do if it has not."""

        def __init__(self) -> None:
            self._type_info: Any = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """The rows to read. The names of fields are those of the JSON object."""
            self._type_info = type_info
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """The rows to read, as a JSON schema. Numbers become decimals."""
            self._type_info = row_type_of_json_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """A field that is not there is an error. By default it is None."""
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """A field that cannot be read is None, and a message that is no JSON object is left out."""
            self._ignore_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema."""
            if self._fail_on_missing_field and self._ignore_parse_errors:
                raise ProgramError("fail_on_missing_field() and ignore_parse_errors() cannot both be asked for.")
            type_info = row_type_of(self._type_info, "JsonRowDeserializationSchema")
            return JsonRowDeserializationSchema(type_info, self._fail_on_missing_field, self._ignore_parse_errors)


class JsonRowSerializationSchema(SerializationSchema):
    """Writes rows as JSON objects, to the byte as Flink does.

    >>> from firesteel.common import Row, Types
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> JsonRowSerializationSchema.builder().with_type_info(person).build().serialize(Row("Ada", None))
    b'{"name":"Ada","age":null}'
    """

    def __init__(self, type_info: RowTypeInfo) -> None:
        self._type_info = type_info
        self._write = json_writer(type_info)

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """A builder."""
        return JsonRowSerializationSchema.Builder()

    def serialize(self, element: Any) -> bytes:
        """The bytes of a row; tuples, dicts and objects with such attributes do as well."""
        try:
            return self._write(element).encode()
        except Exception as error:
            raise unwritable("JsonRowSerializationSchema", self._type_info, element, error) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonRowSerializationSchema, (self._type_info,)

    class Builder:
        """Says what rows there are to write."""

        def __init__(self) -> None:
            self._type_info: Any = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """The rows to write."""
            self._type_info = type_info
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema."""
            return JsonRowSerializationSchema(row_type_of(self._type_info, "JsonRowSerializationSchema"))
