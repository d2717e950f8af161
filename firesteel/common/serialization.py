"""Between elements and the bytes that connectors carry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.errors import ConfigurationError, TypeMismatchError, short_repr

__all__ = [
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
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


class RowFieldExtractorSchema(SerializationSchema):
    """Writes a single field of a row, which holds bytes.

    >>> RowFieldExtractorSchema(1).serialize(("key", b"value"))
    b'value'
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"A field index is 0 or more, got {field_index}.")
        self.field_index = field_index

    def serialize(self, element: Any) -> bytes:
        return bytes(element[self.field_index] or b"")


class Encoder:
    """Turns an element into a line of a file.

    Elements that are no strings should be given as the text that their type's ``formatter()`` makes of them.

    >>> Encoder.simple_string_encoder().encode("abc")
    b'abc\\n'
    """

    def __init__(self, charset_name: str = "UTF-8") -> None:
        self.charset_name = _known(charset_name)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """An encoder that writes one element a line."""
        return Encoder(charset_name)

    def encode(self, element: Any) -> bytes:
        """The bytes of one line, with its end."""
        return f"{element}\n".encode(self.charset_name)


def _known(charset: str) -> str:
    try:
        "".encode(charset)
    except LookupError:
        raise ConfigurationError(f"No such character set: {charset!r}. Did you mean 'UTF-8'?") from None
    return charset
