"""Avro's container files: blocks of records between markers, each of which can be read by itself."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.files.avro_codecs import AVRO_CODECS, decompressed
from firesteel.connectors.files.bulk_format import Block, BulkFormat
from firesteel.connectors.files.file_format import InputFile
from firesteel.connectors.formats.avro_records import AvroSchema, GenericRecordAvroTypeInfo, record_preparer
from firesteel.connectors.formats.avro_rows import AvroRows
from firesteel.connectors.formats.avro_schemas import fastavro, without_logical
from firesteel.errors import ConfigurationError, InputError, TypeMismatchError, short_repr

__all__ = [
    "AvroBlocks",
    "AvroContents",
    "AvroWriterFactory",
    "avro_contents",
    "avro_header",
    "codec_of",
    "stored_number",
]

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


class AvroContents(NamedTuple):
    """What a file has, and where."""

    header: dict[str, Any]
    places: list[int]
    """Where each block begins, and where the last one ends."""
    blocks: list[Block]

    @staticmethod
    def content(block: bytes) -> bytes:
        """What a block holds: without the two numbers before it and the marker behind it."""
        place = 0
        for _ in range(2):
            while block[place] >= 0x80:
                place += 1
            place += 1
        return block[place:-_MARKER]


class AvroBlocks(BulkFormat[Any]):
    """Records of Avro files, as dicts or as rows. A job that goes on inside a file begins with a block."""

    def __init__(self, schema: AvroSchema, as_rows: bool) -> None:
        self._schema, self._as_rows = schema, as_rows
        self._rows = AvroRows(str(schema)) if as_rows else None
        self._latest: tuple[InputFile, AvroContents] | None = None

    def get_produced_type(self) -> TypeInformation:
        return self._rows.type_info if self._rows is not None else GenericRecordAvroTypeInfo(self._schema)

    def blocks(self, file: InputFile) -> Sequence[Block]:
        return self._contents(file).blocks

    def _contents(self, file: InputFile) -> AvroContents:
        if self._latest is None or self._latest[0] != file:
            with file.open() as opened:
                self._latest = (file, avro_contents(opened, file))
        return self._latest[1]

    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[Any]]:
        contents = self._contents(file)
        header, convert, wanted = self._prepared(contents.header)
        load = fastavro().reader
        with file.open() as opened:
            for number in range(first, last):
                begin, end = contents.places[number], contents.places[number + 1]
                opened.seek(begin)
                block = opened.read(end - begin)
                try:
                    # A file of one block: what reads whole files reads it, with both schemas.
                    data = io.BytesIO(header + _plain(block, contents, number))
                    records = list(load(data, reader_schema=wanted))
                    yield records if convert is None else list(map(convert, records))
                except Exception as error:
                    reason = str(error) or type(error).__name__
                    raise InputError(f"{file.path}, bytes {begin} to {end}: Avro cannot read it: {reason}.") from None

    def _prepared(self, header: dict[str, Any]) -> tuple[bytes, Callable[[Any], Any] | None, Any]:
        """The header for single blocks, what makes rows of records, and the schema to resolve them to."""
        convert, wanted = None, self._schema.parsed
        meta = dict(header["meta"])
        if codec_of(header) in AVRO_CODECS:
            meta["avro.codec"] = b"null"
        if self._rows is not None:
            convert, wanted = self._rows.converter_from_stored(), self._rows.stored
            written = without_logical(json.loads(header["meta"]["avro.schema"]))
            meta["avro.schema"] = json.dumps(written).encode()
        return avro_header(meta, header["sync"]), convert, wanted

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._schema, self._as_rows)


def codec_of(header: dict[str, Any]) -> str:
    """How a file is compressed."""
    found: bytes = header["meta"].get("avro.codec", b"null")
    return found.decode()


def _plain(block: bytes, contents: AvroContents, number: int) -> bytes:
    """A block without compression; one whose codec only the library may know stays as it is."""
    codec = codec_of(contents.header)
    if codec not in AVRO_CODECS:
        return block
    content = decompressed(contents.content(block), codec)
    marker: bytes = contents.header["sync"]
    return stored_number(contents.blocks[number].records) + stored_number(len(content)) + content + marker


def avro_header(meta: dict[str, bytes], marker: bytes) -> bytes:
    """What a file begins with."""
    out = io.BytesIO()
    fastavro().schemaless_writer(out, _HEADER, {"magic": _MAGIC, "meta": meta, "sync": marker})
    return out.getvalue()


def stored_number(number: int) -> bytes:
    """A number as Avro stores it.

    >>> stored_number(1), stored_number(-300)
    (b'\\x02', b'\\xd7\\x04')
    """
    out = io.BytesIO()
    fastavro().schemaless_writer(out, "long", number)
    return out.getvalue()


def avro_contents(opened: BinaryIO, file: InputFile) -> AvroContents:
    """Leaps from block to block."""
    try:
        header = fastavro().schemaless_reader(opened, _HEADER, None)
    except Exception:
        header = None
    if header is None or header["magic"] != _MAGIC:
        opened.seek(0)
        raise InputError(f"{file.path} is not an Avro file: it begins with {opened.read(16)!r}.")
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
    return AvroContents(header, places, blocks)


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
