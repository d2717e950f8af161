"""Parquet."""

from __future__ import annotations

from typing import Any

from firesteel.common.serialization import BulkWriterFactory
from firesteel.connectors.files.avro_parquet import AvroParquetFormat, AvroParquetWriterFactory
from firesteel.connectors.files.parquet import ParquetRowFormat, ParquetWriterFactory
from firesteel.connectors.files.stream_format import StreamFormat
from firesteel.connectors.formats.avro_records import AvroSchema

__all__ = ["AvroParquetReaders", "AvroParquetWriters", "ParquetBulkWriters", "ParquetColumnarRowInputFormat"]


class AvroParquetReaders:
    """Readers of Parquet files as generic records of Avro, for
    :meth:`firesteel.datastream.connectors.file_system.FileSource.for_record_stream_format`. They need
    ``pip install 'firesteel[avro]'``."""

    @staticmethod
    def for_generic_record(schema: AvroSchema | str) -> StreamFormat[dict[str, Any]]:
        """Records as dicts with the fields of a schema. A field that a file does not have is None."""
        return AvroParquetFormat(AvroSchema.of(schema))


class AvroParquetWriters:
    """Writers of Parquet for generic records of Avro, for
    :meth:`firesteel.datastream.connectors.file_system.FileSink.for_bulk_format`."""

    @staticmethod
    def for_generic_record(schema: AvroSchema | str) -> BulkWriterFactory:
        """Elements are dicts that a schema describes; rows with names and dataclasses do as well."""
        return AvroParquetWriterFactory(AvroSchema.of(schema))


class ParquetBulkWriters:
    """Writers of Parquet for :meth:`firesteel.datastream.connectors.file_system.FileSink.for_bulk_format`."""

    @staticmethod
    def for_row_type(row_type: Any, hadoop_config: Any = None, utc_timestamp: bool = False) -> BulkWriterFactory:
        """``row_type`` is ``Types.ROW_NAMED(…)``, ``Types.TUPLE(…)`` or a ``pyarrow.Schema``. Elements are rows,
        tuples, dicts or dataclasses. The other two parameters are accepted; there is no Hadoop here, and a timestamp
        is written as it is."""
        return ParquetWriterFactory(row_type)


class ParquetColumnarRowInputFormat(ParquetRowFormat):
    """Reads the columns of a row type from Parquet files, for
    :meth:`firesteel.datastream.connectors.file_system.FileSource.for_bulk_file_format`.

    >>> from firesteel.common import Types
    >>> row_type = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.LONG()])
    >>> ParquetColumnarRowInputFormat(row_type, batch_size=1000).get_produced_type()
    ROW<name STRING, amount LONG>

    Only these columns are read. One that a file does not have is None. Without ``is_case_sensitive``, names match in
    any case. Timestamps that are moments (adjusted to UTC, or INT96) become Instants where the type says INSTANT; where
    it says SQL_TIMESTAMP they become what the clock showed: that of UTC with ``is_utc_timestamp``, else this
    machine's. ``batch_size`` is how many rows are read at once. ``hadoop_config`` is accepted; there is no Hadoop here.
    """
