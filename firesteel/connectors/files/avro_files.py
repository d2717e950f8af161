"""Avro's container files: blocks of records between markers, each of which can be read by itself."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.files.bulk_format import Block, BulkFormat
from firesteel.connectors.files.file_format import InputFile
from firesteel.connectors.formats.avro_records import AvroSchema, GenericRecordAvroTypeInfo, record_preparer
from firesteel.connectors.formats.avro_rows import AvroRows
from firesteel.connectors.formats.avro_schemas import fastavro, without_logical
from firesteel.errors import ConfigurationError, InputError, TypeMismatchError, short_repr

__all__ = ["AvroBlocks", "AvroWriterFactory"]

_HEADER = {
    "type": "record",
    "name": "org.apache.avro.file.Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
_MAGIC = b"Obj\x01"
_MARKER = 16
_CODECS = ("null", "deflate", "bzip2", "xz", "snappy", "zstandard", "lz4")


class _Contents(NamedTuple):
    """What a file has, and where."""

    header: dict[str, Any]
    places: list[int]
    """Where each block begins, and where the last one ends."""
    blocks: list[Block]


class AvroBlocks(BulkFormat[Any]):
    """Records of Avro files, as dicts or as rows. A job that goes on inside a file begins with a block."""

    def __init__(self, schema: AvroSchema, as_rows: bool) -> None:
        self._schema, self._as_rows = schema, as_rows
        self._rows = AvroRows(str(schema)) if as_rows else None
        self._latest: tuple[InputFile, _Contents] | None = None

    def get_produced_type(self) -> TypeInformation:
        return self._rows.type_info if self._rows is not None else GenericRecordAvroTypeInfo(self._schema)

    def blocks(self, file: InputFile) -> Sequence[Block]:
        return self._contents(file).blocks

    def _contents(self, file: InputFile) -> _Contents:
        if self._latest is None or self._latest[0] != file:
            with file.open() as opened:
                self._latest = (file, _look(opened, file))
        return self._latest[1]

    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[Any]]:
        contents = self._contents(file)
        header, convert, wanted = self._prepared(contents.header)
        load = fastavro().reader
        with file.open() as opened:
            for number in range(first, last):
                begin, end = contents.places[number], contents.places[number + 1]
                opened.seek(begin)
                # A file of one block: what reads whole files reads it, with its codec and with both schemas.
                data = io.BytesIO(header + opened.read(end - begin))
                try:
                    records = list(load(data, reader_schema=wanted))
                    yield records if convert is None else list(map(convert, records))
                except Exception as error:
                    reason = str(error) or type(error).__name__
                    raise InputError(f"{file.path}, bytes {begin} to {end}: Avro cannot read it: {reason}.") from None

    def _prepared(self, header: dict[str, Any]) -> tuple[bytes, Callable[[Any], Any] | None, Any]:
        """The header for single blocks, what makes rows of records, and the schema to resolve them to."""
        convert, wanted = None, self._schema.parsed
        if self._rows is not None:
            convert, wanted = self._rows.converter_from_stored(), self._rows.stored
            written = without_logical(json.loads(header["meta"]["avro.schema"]))
            header = {**header, "meta": {**header["meta"], "avro.schema": json.dumps(written).encode()}}
        out = io.BytesIO()
        fastavro().schemaless_writer(out, _HEADER, header)
        return out.getvalue(), convert, wanted

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._schema, self._as_rows)


def _look(opened: BinaryIO, file: InputFile) -> _Contents:
    """Leaps from block to block."""
    try:
        header = fastavro().schemaless_reader(opened, _HEADER, None)
    except Exception:
        header = None
    if header is None or header["magic"] != _MAGIC:
        opened.seek(0)
        raise InputError(f"{file.path} is no Avro file: it begins with {opened.read(16)!r}.")
    places, blocks = [opened.tell()], []
    while places[-1] < file.size:
        count, size = _number(opened, file), _number(opened, file)
        end = opened.tell() + size + _MARKER
        if size < 0 or count < 0 or end > file.size:
            raise InputError(f"{file.path} ends inside of the block that begins at byte {places[-1]}.")
        opened.seek(end - _MARKER)
        if opened.read(_MARKER) != header["sync"]:
            raise InputError(
                f"{file.path} is damaged: the block that begins at byte {places[-1]} has no marker at its end."
            )
        places.append(end)
        blocks.append(Block(count, size))
    return _Contents(header, places, blocks)


def _number(opened: BinaryIO, file: InputFile) -> int:
    """A number as Avro stores it: seven bits a byte, the sign in the last one."""
    found = shift = 0
    while True:
        byte = opened.read(1)
        if not byte:
            raise InputError(f"{file.path} ends inside of a block.")
        found |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return (found >> 1) ^ -(found & 1)


class AvroWriterFactory(BulkWriterFactory):
    """Makes writers of Avro files."""

    def __init__(self, schema: AvroSchema, codec: str = "null") -> None:
        self.schema, self.codec = schema, codec
        if codec not in _CODECS:
            raise ConfigurationError(f"Avro files have the codecs {', '.join(_CODECS)}, got {codec!r}.")

    def create(self, out: BinaryIO) -> BulkWriter:
        return _AvroWriter(out, self)


class _AvroWriter(BulkWriter):
    def __init__(self, out: BinaryIO, factory: AvroWriterFactory) -> None:
        self._writer = fastavro().write.Writer(out, factory.schema.parsed, codec=factory.codec)
        self._prepare = record_preparer(factory.schema)

    def add_element(self, element: Any) -> None:
        try:
            self._writer.write(self._prepare(element))
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise TypeMismatchError(f"Avro cannot write {short_repr(element, 120)}: {reason}.") from None

    def flush(self) -> None:
        """Blocks are written when they are full."""

    def finish(self) -> None:
        self._writer.flush()
