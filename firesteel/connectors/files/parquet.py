"""Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.connectors.files.arrow import arrow_schema
from firesteel.connectors.files.bulk_format import Block
from firesteel.connectors.files.column_writing import GROUP, ColumnWriter
from firesteel.connectors.files.file_format import InputFile
from firesteel.connectors.files.row_format import ColumnarRowFormat
from firesteel.errors import InputError

__all__ = ["ParquetRowFormat", "ParquetWriterFactory", "parquet_blocks", "parquet_file"]


class ParquetWriterFactory(BulkWriterFactory):
    """Makes writers of Parquet files with the columns of a row type or a ``pyarrow.Schema``."""

    def __init__(self, row_type: Any, compression: str = "snappy", group_size: int = GROUP) -> None:
        self.schema = arrow_schema(row_type)
        self.compression, self.group_size = compression, group_size

    def create(self, out: BinaryIO) -> BulkWriter:
        return _ParquetWriter(out, self)


class _ParquetWriter(ColumnWriter):
    def __init__(self, out: BinaryIO, factory: ParquetWriterFactory) -> None:
        # Only where it is needed: it takes long to import.
        import pyarrow.parquet

        super().__init__(factory.schema, factory.group_size, "A Parquet")
        self._writer = pyarrow.parquet.ParquetWriter(out, factory.schema, compression=factory.compression)

    def write_table(self, table: Any) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


class ParquetRowFormat(ColumnarRowFormat):
    """Reads Parquet files as rows. Its blocks are row groups."""

    def blocks(self, file: InputFile) -> Sequence[Block]:
        return parquet_blocks(file)

    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[Any]]:
        with parquet_file(file.open_arrow(), file.path) as opened:
            found = self._columns.found_in(opened.schema_arrow.names, file.path)
            adjusted = frozenset(column.path for column in opened.schema if column.physical_type == "INT96")
            wanted = [name for name in found if name is not None]
            for batch in opened.iter_batches(self._batch_size, range(first, last), wanted, use_threads=False):
                yield self._columns.rows(batch, found, file.path, adjusted)


def parquet_blocks(file: InputFile) -> list[Block]:
    """The row groups of a file."""
    with parquet_file(file.open_arrow(), file.path) as opened:
        found = opened.metadata
        groups = (found.row_group(number) for number in range(found.num_row_groups))
        return [Block(group.num_rows, group.total_byte_size) for group in groups]


def parquet_file(source: Any, path: str, hive_unit: str = "ns") -> Any:
    """A ``pyarrow.parquet.ParquetFile``. ``hive_unit``: what timestamps of Hive's twelve bytes become. Nanoseconds
    reach from 1677 to 2262 only, and Arrow does not say where they overflow. Files of Flink have nanoseconds in any
    case: before 1970 it counts them backwards, which Arrow reads rightly as such only."""
    import pyarrow.parquet

    try:
        opened = pyarrow.parquet.ParquetFile(source)
        known = opened.metadata
        if hive_unit == "ns" or _may_be_of_flink(known):
            return opened
        return pyarrow.parquet.ParquetFile(source, metadata=known, coerce_int96_timestamp_unit=hive_unit)
    except pyarrow.ArrowInvalid as error:
        source.close()
        raise InputError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from error


def _may_be_of_flink(known: Any) -> bool:
    """Whether Java wrote a file, and not for Spark."""
    written_by = known.created_by or ""
    return written_by.startswith("parquet-mr") and b"org.apache.spark.version" not in (known.metadata or {})
