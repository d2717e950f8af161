"""Avro messages whose schemas a registry has: a zero, the number of the schema in four bytes, and the record."""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Callable
from typing import Any

from firesteel.connectors.formats.avro_records import AvroSchema, record_preparer
from firesteel.connectors.formats.avro_rows import AvroRows
from firesteel.connectors.formats.avro_schemas import Definitions, fastavro, loaded, without_logical
from firesteel.connectors.formats.registry import SchemaRegistry
from firesteel.errors import InputError

__all__ = ["RegistryReading", "RegistryWriting"]

_HEADER = struct.Struct(">bI")


class RegistryReading:
    """Reads messages whose schemas a registry has: as dicts, or as rows."""

    def __init__(
        self, registry: SchemaRegistry, schema: AvroSchema | None, capacity: int, rows: AvroRows | None
    ) -> None:
        self._registry, self._schema, self._capacity, self._rows = registry, schema, capacity, rows
        self._readers: dict[int, Callable[[Any], Any]] = {}
        """By the number of the schema that a message was written with."""

    def read(self, message: bytes) -> Any:
        """The record of a message."""
        if len(message) < _HEADER.size or message[0] != 0:
            raise ValueError(
                "it does not begin with a zero and the number of a schema, as messages with a schema registry do"
            )
        number = _HEADER.unpack_from(message)[1]
        reader = self._readers.get(number)
        if reader is None:
            reader = self._reader(number)
        content = io.BytesIO(message)
        content.seek(_HEADER.size)
        try:
            return reader(content)
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ValueError(f"{reason} (it was written with the schema {number} of the registry)") from None

    def _reader(self, number: int) -> Callable[[Any], Any]:
        text, referred = self._registry.by_id(number)
        library = fastavro()
        prepared = without_logical if self._rows is not None else _same
        definitions: Definitions = {}
        try:
            for other in referred:
                library.parse_schema(prepared(loaded(other)), named_schemas=definitions)
            written: Any = library.parse_schema(prepared(loaded(text)), named_schemas=definitions)
        except Exception as error:
            raise InputError(f"The schema {number} of {self._registry} cannot be read: {error}.") from None
        wanted = self._rows.stored if self._rows is not None else None if self._schema is None else self._schema.parsed
        # Equal ones need no resolving, which takes longer.
        resolved = None if wanted is None or _bare(wanted) == _bare(written) else wanted
        if len(self._readers) >= self._capacity:
            self._readers.clear()
        load, convert = library.schemaless_reader, None if self._rows is None else self._rows.converter_from_stored()
        if convert is None:
            reader = functools.partial(_read, load, written, resolved)
        else:
            reader = functools.partial(_read_row, load, written, resolved, convert)
        self._readers[number] = reader
        return reader


def _same(schema: Any) -> Any:
    return schema


def _bare(schema: Any) -> Any:
    """A schema without what fastavro keeps with it."""
    return (
        {key: value for key, value in schema.items() if not key.startswith("__")}
        if isinstance(schema, dict)
        else schema
    )


def _read(load: Any, written: Any, wanted: Any, content: Any) -> Any:
    return load(content, written, wanted)


def _read_row(load: Any, written: Any, wanted: Any, convert: Callable[[Any], Any], content: Any) -> Any:
    return convert(load(content, written, wanted))


class RegistryWriting:
    """Writes messages with the number that a registry has for the schema, which is asked for once."""

    def __init__(self, registry: SchemaRegistry, subject: str, schema: AvroSchema, rows: AvroRows | None) -> None:
        self._registry, self._subject, self._schema = registry, subject, schema
        self._dump = fastavro().schemaless_writer
        self._written = schema.parsed if rows is None else rows.stored
        self._prepare = record_preparer(schema) if rows is None else rows.converter_to_stored()
        self._header: bytes | None = None

    def write(self, element: Any) -> bytes:
        """The bytes of a message."""
        header = self._header
        if header is None:
            header = self._header = _HEADER.pack(0, self._registry.id_of(self._subject, str(self._schema)))
        out = io.BytesIO()
        out.write(header)
        self._dump(out, self._written, self._prepare(element))
        return out.getvalue()
