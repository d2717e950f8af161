"""ORC files of tables: stripes become batches of columns, and batches stripes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.orc

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.connectors.files.bulk_format import Block, BulkFormat
from firesteel.connectors.files.file_format import InputFile
from firesteel.connectors.files.orc import orc_blocks, orc_file
from firesteel.connectors.table.fitted_columns import asked_columns, fitted_columns
from firesteel.connectors.table.partition_folders import FolderBatch
from firesteel.errors import ConfigurationError
from firesteel.runtime.columns.kinds import data_of

__all__ = ["OrcBatchWriters", "OrcBatches"]

_ROWS = 65_536
"""Rows that are written at once."""


class OrcBatches(BulkFormat[pa.RecordBatch]):
    """Stripes of ORC files. Columns are found by their names; one that a file has not is NULL."""

    bytes_per_record = 16

    def __init__(self, schema: pa.Schema, asked: Collection[str] | None = None) -> None:
        """``asked``: the columns that are read, all of them if it is None. The others are NULL."""
        self._schema, self._asked = schema, asked

    def narrowed(self, asked: Collection[str]) -> OrcBatches:
        return OrcBatches(self._schema, frozenset(asked))

    def blocks(self, file: InputFile) -> Sequence[Block]:
        return orc_blocks(file)

    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[pa.RecordBatch]]:
        with file.open_arrow() as source:
            opened = orc_file(source, file.path)
            names = opened.schema.names
            # Without any column there would be no rows either.
            wanted = [name for name in asked_columns(self._schema, self._asked) if name in names] or names[:1]
            for number in range(first, last):
                yield [fitted_columns(opened.read_stripe(number, wanted), self._schema, file.path)]


class OrcBatchWriters(BulkWriterFactory):
    """Makes writers of ORC files that take batches. ``options`` are those of Arrow's writer."""

    def __init__(self, schema: pa.Schema, options: Mapping[str, Any]) -> None:
        self.schema, self.options = schema, dict(options)
        for field in schema:
            _check(field.type, field.name)

    def create(self, out: BinaryIO) -> BulkWriter:
        return _OrcBatchWriter(out, self)


def _check(kind: pa.DataType, name: str) -> None:
    if pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_null(kind):
        raise ConfigurationError(f"ORC has nothing for column {name!r} of the type {kind}. Cast it to another type.")
    for index in range(kind.num_fields):
        _check(kind.field(index).type, f"{name}.{kind.field(index).name}")


class _OrcBatchWriter(BulkWriter):
    def __init__(self, out: BinaryIO, factory: OrcBatchWriters) -> None:
        self._schema = factory.schema
        self._writer = pyarrow.orc.ORCWriter(out, **factory.options)
        self._waiting, self._rows, self._empty = list[pa.RecordBatch](), 0, True

    def add_element(self, element: FolderBatch | pa.RecordBatch) -> None:
        batch = data_of(element.batch if isinstance(element, FolderBatch) else element)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= _ROWS:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._writer.write(pa.Table.from_batches(self._waiting).cast(self._schema))
            self._waiting, self._rows, self._empty = [], 0, False

    def finish(self) -> None:
        self.flush()
        if self._empty:
            # Its schema is written with the first rows.
            self._writer.write(self._schema.empty_table())
        self._writer.close()
