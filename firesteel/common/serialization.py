"""Between elements and the bytes that connectors carry."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import io
import json
import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, BinaryIO

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.common.types import Row
from firesteel.errors import ConfigurationError, InputError, SerializationError, TypeMismatchError, short_repr

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "PickledBytesSchema",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC):
    """Turns an element into the bytes of one message."""

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """The bytes of one message."""


class DeserializationSchema(ABC):
    """Turns the bytes of one message into an element."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """The element, or None to drop the message."""

    def is_end_of_stream(self, next_element: Any) -> bool:
        """Whether this element says that no more will come."""
        return False

    def get_produced_type(self) -> TypeInformation:
        """The type of the elements."""
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Strings and their bytes.

    >>> schema = SimpleStringSchema()
    >>> schema.serialize("é"), schema.deserialize(b"abc")
    (b'\\xc3\\xa9', 'abc')
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = _known(charset)

    def serialize(self, element: Any) -> bytes:
        if not isinstance(element, str):
            raise TypeMismatchError(
                f"SimpleStringSchema writes strings, got {type(element).__name__} {short_repr(element, 80)}. "
                "Map the stream to strings first, with output_type=Types.STRING()."
            )
        return element.encode(self.charset)

    def deserialize(self, message: bytes) -> str:
        # Java puts a replacement character where bytes make no sense, so one bad message does not stop a job.
        return message.decode(self.charset, errors="replace")

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are.

    >>> ByteArraySchema().deserialize(b"ab")
    b'ab'
    """

    def serialize(self, element: Any) -> bytes:
        return bytes(element)

    def deserialize(self, message: bytes) -> bytes:
        return message

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class PickledBytesSchema(SerializationSchema, DeserializationSchema):
    """Any element, pickled. Read such messages only from those you trust: a pickle may run any code when it is read.

    >>> schema = PickledBytesSchema()
    >>> schema.deserialize(schema.serialize({"a": (1, None)}))
    {'a': (1, None)}
    """

    def serialize(self, element: Any) -> bytes:
        try:
            return pickle.dumps(element, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise SerializationError(f"{short_repr(element, 80)} cannot be pickled: {error}") from error

    def deserialize(self, message: bytes) -> Any:
        try:
            return pickle.loads(message)
        except Exception as error:
            begins = repr(bytes(message[:64])) if isinstance(message, bytes) else short_repr(message, 80)
            raise InputError(
                f"This is not a pickle, or one that cannot be read here ({type(error).__name__}: {error}): it begins "
                f"with {begins}."
            ) from error


class RowFieldExtractorSchema(SerializationSchema):
    """Writes a single field of a row, which holds bytes.

    >>> RowFieldExtractorSchema(1).serialize(("key", b"value"))
    b'value'
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"A field is counted from 0, got {field_index}.")
        self.field_index = field_index

    def serialize(self, element: Any) -> bytes:
        """The field's bytes; none where there is no row, or nothing in the field."""
        if element is None:
            return b""
        if self.field_index >= len(element):
            raise TypeMismatchError(f"There is no field {self.field_index} in a row of {len(element)} fields.")
        value = element[self.field_index]
        if value is None:
            return b""
        if not isinstance(value, bytes | bytearray):
            kind = type(value).__name__
            raise TypeMismatchError(f"Field {self.field_index} should be bytes, got {kind} {short_repr(value, 60)}.")
        return bytes(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowFieldExtractorSchema) and self.field_index == other.field_index

    def __hash__(self) -> int:
        return hash(self.field_index)


class Encoder:
    """Turns an element into a line of a file. Subclass it for another format.

    Elements that are no strings should be given as the text that their type's ``formatter()`` makes of them.

    >>> Encoder.simple_string_encoder().encode("abc")
    b'abc\\n'
    >>> Encoder.csv_encoder().encode(("a,b", 1, None))
    b'"a,b",1,\\n'
    >>> Encoder.json_encoder().encode(Row(name="a", count=1))
    b'{"name": "a", "count": 1}\\n'
    """

    def __init__(self, charset_name: str = "UTF-8") -> None:
        self.charset_name = _known(charset_name)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """An encoder that writes one element a line."""
        return Encoder(charset_name)

    @staticmethod
    def csv_encoder(delimiter: str = ",", charset_name: str = "UTF-8") -> Encoder:
        """An encoder of rows, tuples, dicts and dataclasses as lines of CSV, without a head line."""
        return _CsvEncoder(delimiter, charset_name)

    @staticmethod
    def json_encoder(charset_name: str = "UTF-8") -> Encoder:
        """An encoder of elements as JSON, one a line. Rows with names and dataclasses become objects."""
        return _JsonEncoder(charset_name)

    def encode(self, element: Any) -> bytes:
        """The bytes of one line, with its end."""
        return f"{element}\n".encode(self.charset_name)


class _CsvEncoder(Encoder):
    def __init__(self, delimiter: str, charset_name: str) -> None:
        super().__init__(charset_name)
        if len(delimiter) != 1:
            raise ConfigurationError(f"The delimiter of CSV is a single character, got {delimiter!r}.")
        self.delimiter = delimiter

    def encode(self, element: Any) -> bytes:
        line = io.StringIO()
        csv.writer(line, delimiter=self.delimiter, lineterminator="\n").writerow(_fields(element))
        return line.getvalue().encode(self.charset_name)


class _JsonEncoder(Encoder):
    def encode(self, element: Any) -> bytes:
        return f"{json.dumps(element, default=_plain, ensure_ascii=False)}\n".encode(self.charset_name)


def _fields(element: Any) -> list[Any]:
    """What stands in the columns of a record."""
    if isinstance(element, Mapping):
        return list(element.values())
    if isinstance(element, Row | tuple | list):
        return list(element)
    if dataclasses.is_dataclass(element):
        return [getattr(element, field.name) for field in dataclasses.fields(element)]
    return [element]


def _plain(value: Any) -> Any:
    """A value that JSON does not know, as one that it does."""
    if isinstance(value, Row):
        return list(value) if value._fields is None else value.as_dict()
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeMismatchError(f"JSON has nothing for a {type(value).__name__}: {short_repr(value, 80)}. Map it first.")


class BulkWriter(ABC):
    """Writes the elements of one file whose format needs them all, such as Parquet with its foot."""

    @abstractmethod
    def add_element(self, element: Any) -> None:
        """Takes an element."""

    def flush(self) -> None:  # noqa: B027 - optional to override
        """Hands on to the file what is complete."""

    @abstractmethod
    def finish(self) -> None:
        """Writes the end of the file, and leaves it open: it is closed by whoever opened it."""


class BulkWriterFactory(ABC):
    """Makes a writer for each file."""

    @abstractmethod
    def create(self, out: BinaryIO) -> BulkWriter:
        """A writer for a file that was just opened."""


def _known(charset: str) -> str:
    try:
        "".encode(charset)
    except LookupError:
        raise ConfigurationError(f"No such character set: {charset!r}. Did you mean 'UTF-8'?") from None
    return charset
