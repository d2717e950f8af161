"""Avro files of tables: blocks of records become batches of columns, and batches blocks."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.connectors.files.avro_codecs import compressed, decompressed
from firesteel.connectors.files.avro_files import AvroContents, avro_contents, avro_header, codec_of, stored_number
from firesteel.connectors.files.bulk_format import Block, BulkFormat
from firesteel.connectors.files.file_format import InputFile
from firesteel.connectors.formats.avro_schemas import fastavro, without_logical
from firesteel.connectors.table.formats.avro_format import AvroFormat
from firesteel.connectors.table.partition_folders import FolderBatch
from firesteel.errors import InputError

__all__ = ["AvroBatchWriters", "AvroBatches"]

_BLOCK = 64_000
"""About how many bytes a block has before it is compressed."""
_ROWS = 8192
_SECOND = b"\x02"
"""The place of a row's type in the union of NULL and it."""


class AvroBatches(BulkFormat[pa.RecordBatch]):
    """Blocks of Avro files. Columns are found by their names; one that a file has not is NULL."""

    def __init__(self, form: AvroFormat, schema: pa.Schema) -> None:
        self._format, self._schema = form, schema
        self._latest: tuple[InputFile, AvroContents] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroBatches, (self._format, self._schema)

    def blocks(self, file: InputFile) -> Sequence[Block]:
        return self._contents(file).blocks

    def _contents(self, file: InputFile) -> AvroContents:
        if self._latest is None or self._latest[0] != file:
            with file.open() as opened:
                self._latest = (file, avro_contents(opened, file))
        return self._latest[1]

    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[pa.RecordBatch]]:
        contents = self._contents(file)
        codec, load = codec_of(contents.header), fastavro().schemaless_reader
        written = fastavro().parse_schema(without_logical(json.loads(contents.header["meta"]["avro.schema"])))
        waiting: list[dict[str, Any]] = []
        with file.open() as opened:
            for number in range(first, last):
                begin, end = contents.places[number], contents.places[number + 1]
                opened.seek(begin)
                try:
                    data = io.BytesIO(decompressed(contents.content(opened.read(end - begin)), codec))
                    for _ in range(contents.blocks[number].records):
                        waiting.append(load(data, written, self._format.stored))
                except Exception as error:
                    reason = str(error) or type(error).__name__
                    raise InputError(f"{file.path}, bytes {begin} to {end}: Avro cannot read it: {reason}.") from None
                if len(waiting) >= _ROWS:
                    yield [self._batch(waiting)]
                    waiting = []
        if waiting:
            yield [self._batch(waiting)]

    def _batch(self, records: list[dict[str, Any]]) -> pa.RecordBatch:
        found = self._format.batch(records)
        arrays = [column.cast(field.type) for column, field in zip(found.columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class AvroBatchWriters(BulkWriterFactory):
    """Makes writers of Avro files that take batches."""

    def __init__(self, form: AvroFormat, codec: str) -> None:
        self.form, self.codec = form, codec

    def create(self, out: BinaryIO) -> BulkWriter:
        return _AvroBatchWriter(out, self)


class _AvroBatchWriter(BulkWriter):
    def __init__(self, out: BinaryIO, factory: AvroBatchWriters) -> None:
        self._out, self._format, self._codec = out, factory.form, factory.codec
        self._marker = os.urandom(16)
        self._waiting, self._rows, self._size = list[bytes](), 0, 0
        # In Flink's files a row may be NULL, which none is: a union, whose second type each record says it has.
        schema = ["null", factory.form.written]
        meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": factory.codec.encode()}
        out.write(avro_header(meta, self._marker))

    def add_element(self, element: FolderBatch | pa.RecordBatch) -> None:
        for record in self._format.encode(element.batch if isinstance(element, FolderBatch) else element):
            self._waiting += (_SECOND, record)
            self._rows += 1
            self._size += len(record)
            if self._size >= _BLOCK:
                self._end_block()

    def _end_block(self) -> None:
        if self._waiting:
            data = compressed(b"".join(self._waiting), self._codec)
            numbers = stored_number(self._rows) + stored_number(len(data))
            self._out.write(numbers + data + self._marker)
            self._waiting, self._rows, self._size = [], 0, 0

    def flush(self) -> None:
        """Blocks are written when they are full."""

    def finish(self) -> None:
        self._end_block()
