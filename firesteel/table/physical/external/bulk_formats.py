"""Formats of whole files by their options, with Flink's names and defaults: Avro, ORC and Parquet."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from firesteel.common.serialization import BulkWriterFactory
from firesteel.connectors.files.avro_codecs import AVRO_CODECS
from firesteel.connectors.files.bulk_format import BulkFormat
from firesteel.connectors.files.orc import orc_options
from firesteel.connectors.table.avro_batches import AvroBatches, AvroBatchWriters
from firesteel.connectors.table.orc_batches import OrcBatches, OrcBatchWriters
from firesteel.connectors.table.parquet_batches import ParquetBatches, ParquetBatchWriters, ParquetTimes
from firesteel.errors import ConfigurationError, ProgramError
from firesteel.table.physical.external.formats import avro_format
from firesteel.table.physical.options import TableOptions
from firesteel.table.sql.errors import SqlValidationError

__all__ = ["BULK_FORMATS", "TableFileFormat", "bulk_format"]

_PARQUET_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4", "LZ4_RAW")
_UNITS = {"nanos": "ns", "micros": "us", "millis": "ms"}


class TableFileFormat(NamedTuple):
    """How files of a table are read and written."""

    reading: BulkFormat[pa.RecordBatch]
    writing: BulkWriterFactory


def bulk_format(name: str, schema: pa.Schema, strict: pa.Schema, options: TableOptions) -> TableFileFormat:
    """A format for some columns. ``strict`` says which of them are NOT NULL."""
    try:
        return _BULK[name](schema, strict, options)
    except ConfigurationError as error:
        raise SqlValidationError(f"Table {options.path}: {error}") from None


def _avro(schema: pa.Schema, strict: pa.Schema, options: TableOptions) -> TableFileFormat:
    form = avro_format(strict, options, "avro.")
    codec = options.choice("avro.codec", AVRO_CODECS, "snappy")
    return TableFileFormat(AvroBatches(form, schema), AvroBatchWriters(form, codec))


def _parquet(schema: pa.Schema, strict: pa.Schema, options: TableOptions) -> TableFileFormat:
    times = ParquetTimes(
        options.boolean("parquet.utc-timezone", False),
        options.boolean("parquet.write.int64.timestamp", False),
        _UNITS[options.choice("parquet.timestamp.time.unit", tuple(_UNITS), "micros")],
    )
    codec = options.choice("parquet.compression", _PARQUET_CODECS, "SNAPPY").lower()
    writers = ParquetBatchWriters(strict, "none" if codec == "uncompressed" else codec, times)
    return TableFileFormat(ParquetBatches(schema, times), writers)


def _orc(schema: pa.Schema, strict: pa.Schema, options: TableOptions) -> TableFileFormat:
    given = {f"orc.{key}": value for key, value in options.below("orc.").items()}
    try:
        writers = OrcBatchWriters(strict, orc_options(given))
    except ProgramError as error:
        raise SqlValidationError(f"Table {options.path}: {error}") from None
    return TableFileFormat(OrcBatches(schema), writers)


_BULK: dict[str, Callable[[pa.Schema, pa.Schema, TableOptions], TableFileFormat]] = {
    "avro": _avro,
    "orc": _orc,
    "parquet": _parquet,
}
BULK_FORMATS = tuple(_BULK)
"""Formats whose files are complete with each checkpoint."""
