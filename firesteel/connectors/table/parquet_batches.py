"""Parquet files of tables: row groups become batches of columns, and batches row groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.connectors.files.bulk_format import Block, BulkFormat
from firesteel.connectors.files.file_format import InputFile
from firesteel.connectors.files.parquet import parquet_blocks, parquet_file
from firesteel.connectors.table.clock_times import clock_is_utc, from_utc, to_utc
from firesteel.connectors.table.fitted_columns import asked_columns, fitted_columns
from firesteel.connectors.table.partition_folders import FolderBatch
from firesteel.runtime.columns.kinds import data_of

__all__ = ["ParquetBatchWriters", "ParquetBatches", "ParquetTimes"]

_GROUP = 131_072
"""Rows of a row group."""


@dataclass(frozen=True)
class ParquetTimes:
    """How timestamps are stored."""

    utc: bool = False
    """Whether they are stored as they are. Else they are taken for times on this machine's clock, which is what Flink
    does unless it is told otherwise, and stored in UTC."""
    int64: bool = False
    """Whether they are stored as numbers with a unit, instead of Hive's twelve bytes."""
    unit: str = "us"

    def stored(self, kind: pa.DataType) -> pa.DataType:
        """The type of a column in the file."""
        if not self.int64:
            return kind
        return _mapped_type(kind, pa.timestamp(self.unit))


def _mapped_type(kind: pa.DataType, stamps: pa.DataType) -> pa.DataType:
    kinds = pa.types
    if kinds.is_timestamp(kind):
        return stamps
    if kinds.is_struct(kind):
        return pa.struct([each.with_type(_mapped_type(each.type, stamps)) for each in kind])
    if kinds.is_list(kind):
        return pa.list_(kind.value_field.with_type(_mapped_type(kind.value_type, stamps)))
    if kinds.is_map(kind):
        item = kind.item_field.with_type(_mapped_type(kind.item_type, stamps))
        return pa.map_(kind.key_field.with_type(_mapped_type(kind.key_type, stamps)), item)
    return kind


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(kind.field(index).type) for index in range(kind.num_fields))


class ParquetBatches(BulkFormat[pa.RecordBatch]):
    """Row groups of Parquet files. Columns are found by their names; one that a file has not is NULL."""

    bytes_per_record = 16

    def __init__(
        self, schema: pa.Schema, times: ParquetTimes | None = None, asked: Collection[str] | None = None
    ) -> None:
        """``asked``: the columns that are read, all of them if it is None. The others are NULL."""
        self._schema, self._times, self._asked = schema, times or ParquetTimes(), asked
        self._hive_unit = "ns" if any(map(_has_nanoseconds, schema.types)) else "us"

    def narrowed(self, asked: Collection[str]) -> ParquetBatches:
        return ParquetBatches(self._schema, self._times, frozenset(asked))

    def blocks(self, file: InputFile) -> Sequence[Block]:
        return parquet_blocks(file)

    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[pa.RecordBatch]]:
        with parquet_file(file.open_arrow(), file.path, self._hive_unit) as opened:
            names = opened.schema_arrow.names
            wanted = [name for name in asked_columns(self._schema, self._asked) if name in names]
            local = not self._times.utc and not clock_is_utc()
            for batch in opened.iter_batches(_GROUP // 4, range(first, last), wanted, use_threads=False):
                yield [fitted_columns(batch, self._schema, file.path, from_utc if local else None)]


def _with_dictionary(kind: pa.DataType, path: str) -> Iterator[str]:
    """The columns of the file that a column of the table becomes, but for decimals."""
    if pa.types.is_struct(kind):
        for each in kind:
            yield from _with_dictionary(each.type, f"{path}.{each.name}")
    elif pa.types.is_list(kind):
        yield from _with_dictionary(kind.value_type, f"{path}.list.element")
    elif pa.types.is_map(kind):
        yield from _with_dictionary(kind.key_type, f"{path}.key_value.key")
        yield from _with_dictionary(kind.item_type, f"{path}.key_value.value")
    elif not pa.types.is_decimal(kind):
        yield path


class ParquetBatchWriters(BulkWriterFactory):
    """Makes writers of Parquet files that take batches."""

    def __init__(self, schema: pa.Schema, compression: str, times: ParquetTimes | None = None) -> None:
        self.schema, self.compression, self.times = schema, compression, times or ParquetTimes()

    def create(self, out: BinaryIO) -> BulkWriter:
        return _ParquetBatchWriter(out, self)


class _ParquetBatchWriter(BulkWriter):
    def __init__(self, out: BinaryIO, factory: ParquetBatchWriters) -> None:
        self._times = factory.times
        self._schema = pa.schema([each.with_type(self._times.stored(each.type)) for each in factory.schema])
        self._writer = pyarrow.parquet.ParquetWriter(
            out,
            self._schema,
            compression=factory.compression,
            use_deprecated_int96_timestamps=not self._times.int64,
            # Flink cannot read decimals by a dictionary, and writes none.
            use_dictionary=[path for field in self._schema for path in _with_dictionary(field.type, field.name)],
            # As Flink says of times of day, although they are what the clock shows.
            write_time_adjusted_to_utc=True,
        )
        self._waiting, self._rows = list[pa.RecordBatch](), 0

    def add_element(self, element: FolderBatch | pa.RecordBatch) -> None:
        batch = data_of(element.batch if isinstance(element, FolderBatch) else element)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= _GROUP:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            local = not self._times.utc and not clock_is_utc()
            columns = [
                (to_utc(column.combine_chunks()) if local else column).cast(field.type, safe=False)
                for field, column in zip(self._schema, pa.Table.from_batches(self._waiting).columns, strict=True)
            ]
            self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))
            self._waiting, self._rows = [], 0

    def finish(self) -> None:
        self.flush()
        self._writer.close()
