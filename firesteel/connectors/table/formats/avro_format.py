"""The formats ``avro`` and ``avro-confluent``: records without their schema, or with its number in a registry."""

from __future__ import annotations

import decimal
import io
import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from firesteel.connectors.formats.avro_json import avro_json_reader, avro_json_writer
from firesteel.connectors.formats.avro_schemas import fastavro, loaded, without_logical
from firesteel.connectors.formats.registry import SchemaRegistry
from firesteel.connectors.table.formats.avro_derived import avro_schema
from firesteel.connectors.table.formats.message_format import BadMessage, Decoded, MessageFormat, kept_rows
from firesteel.errors import ConfigurationError, ConnectorError

__all__ = ["AvroFormat", "ConfluentAvroFormat"]

_HEADER = struct.Struct(">bI")
_EXACT = decimal.Context(prec=80)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of stored values: days, milliseconds. Decimals are made one by one."""
    kinds = pa.types
    if kinds.is_timestamp(kind):
        return pa.int64()
    if kinds.is_date(kind) or kinds.is_time(kind):
        return pa.int32()
    if kinds.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct([pa.field(each.name, _plain(each.type)) for each in fields])
    if kinds.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return pa.map_(_plain(kind.key_type), _plain(kind.item_type)) if kinds.is_map(kind) else kind


def _from_stored(kind: pa.DataType) -> Callable[[Any], Any] | None:
    kinds = pa.types
    if kinds.is_decimal(kind):
        scale = -kind.scale
        return lambda value: decimal.Decimal(int.from_bytes(value, "big", signed=True)).scaleb(scale, _EXACT)
    return _inner(kind, _from_stored)


def _to_stored(kind: pa.DataType) -> Callable[[Any], Any] | None:
    if pa.types.is_decimal(kind):
        scale = kind.scale

        def stored(value: decimal.Decimal) -> bytes:
            number = int(value.scaleb(scale, _EXACT))
            return number.to_bytes((number.bit_length() + 8) // 8 or 1, "big", signed=True)

        return stored
    if pa.types.is_map(kind):
        item = _to_stored(kind.item_type)
        return lambda value: {str(key): one if item is None or one is None else item(one) for key, one in value}
    return _inner(kind, _to_stored)


def _inner(kind: pa.DataType, of: Callable[[pa.DataType], Callable[[Any], Any] | None]) -> Callable[[Any], Any] | None:
    """What is nested, where something in it needs another form."""
    kinds = pa.types
    if kinds.is_list(kind):
        element = of(kind.value_type)
        if element is not None:
            return lambda value: [None if one is None else element(one) for one in value]
    if kinds.is_map(kind):
        item = of(kind.item_type)
        return lambda value: [(key, one if item is None or one is None else item(one)) for key, one in value.items()]
    if kinds.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        made = {each.name: change for each in fields if (change := of(each.type)) is not None}
        if made:
            return lambda value: {
                name: made[name](one) if name in made and one is not None else one for name, one in value.items()
            }
    return None


class AvroFormat(MessageFormat):
    """Records whose schema is that of the table.

    >>> form = AvroFormat(pa.schema([pa.field("n", pa.int64()), pa.field("price", pa.decimal128(5, 2))]))
    >>> form.decode(form.encode(pa.record_batch([[7], [None]], schema=form.schema))).batch.to_pydict()
    {'n': [7], 'price': [None]}
    """

    def __init__(self, declared: pa.Schema, encoding: str = "binary", legacy: bool = True) -> None:
        self._declared, self._encoding, self._legacy = declared, encoding, legacy
        self.schema = pa.schema([field.with_nullable(True) for field in declared])
        self.written = avro_schema(declared, legacy)
        library = fastavro()
        self.stored = library.parse_schema(without_logical(self.written))
        self._load, self._dump = library.schemaless_reader, library.schemaless_writer
        self._json: tuple[Callable[[Any], Any], Callable[[Any], str]] | None = None
        if encoding == "json":
            plain = without_logical(self.written)
            self._json = avro_json_reader(plain), avro_json_writer(plain)
        self._readers = [_from_stored(field.type) for field in declared]
        self._writers = [_to_stored(field.type) for field in declared]

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroFormat, (self._declared, self._encoding, self._legacy)

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        kept, origins = kept_rows(messages)
        records = []
        for index, message in enumerate(kept):
            try:
                records.append(self.load(message))
            except ConnectorError:
                raise
            except Exception as error:
                reason = str(error) or type(error).__name__
                raise BadMessage(index, f"Avro cannot read it: {reason}", message) from None
        return Decoded(self.batch(records), origins)

    def load(self, message: bytes) -> dict[str, Any]:
        """The record of a message, with stored values."""
        if self._json is not None:
            read: dict[str, Any] = self._json[0](json.loads(message))
            return read
        found: dict[str, Any] = self._load(io.BytesIO(message), self.stored, None)
        return found

    def batch(self, records: list[dict[str, Any]]) -> pa.RecordBatch:
        """Records with stored values as a batch."""
        arrays = []
        for field, read in zip(self.schema, self._readers, strict=True):
            values = [record[field.name] for record in records]
            if read is not None:
                values = [None if value is None else read(value) for value in values]
            arrays.append(pa.array(values, _plain(field.type)).cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        columns = []
        for index, (field, write) in enumerate(zip(self.schema, self._writers, strict=True)):
            values = batch.column(index).cast(_plain(field.type)).to_pylist()
            columns.append(values if write is None else [None if one is None else write(one) for one in values])
        names = self.schema.names
        return [self.dump(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]

    def dump(self, record: dict[str, Any]) -> bytes:
        """The message of a record with stored values."""
        if self._json is not None:
            return self._json[1](record).encode()
        out = io.BytesIO()
        self._dump(out, self.stored, record)
        return out.getvalue()


class ConfluentAvroFormat(AvroFormat):
    """Records behind a zero and the number of their schema. One with another schema is resolved to the table's."""

    def __init__(self, declared: pa.Schema, registry: SchemaRegistry, subject: str | None, text: str | None) -> None:
        super().__init__(declared)
        self._registry, self._subject, self._text = registry, subject, text
        self._known: dict[int, Any] = {}
        self._header: bytes | None = None
        if text is not None:
            self.written = loaded(text)
            self.stored = fastavro().parse_schema(without_logical(self.written))

    def __reduce__(self) -> tuple[Any, ...]:
        return ConfluentAvroFormat, (self._declared, self._registry, self._subject, self._text)

    def load(self, message: bytes) -> dict[str, Any]:
        if len(message) < _HEADER.size or message[0] != 0:
            raise ValueError("it does not begin with a zero and the number of a schema")
        number = _HEADER.unpack_from(message)[1]
        if number not in self._known:
            text, _ = self._registry.by_id(number)
            self._known[number] = fastavro().parse_schema(without_logical(loaded(text)))
        content = io.BytesIO(message[_HEADER.size :])
        found: dict[str, Any] = self._load(content, self._known[number], self.stored)
        return found

    def dump(self, record: dict[str, Any]) -> bytes:
        if self._header is None:
            if self._subject is None:
                raise ConfigurationError("avro-confluent.subject: a sink needs to know the subject of its schema.")
            self._header = _HEADER.pack(0, self._registry.id_of(self._subject, json.dumps(self.written)))
        return self._header + super().dump(record)
