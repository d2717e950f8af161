"""Parquet."""

from __future__ import annotations

from typing import Any

from firesteel.common.serialization import BulkWriterFactory
from firesteel.connectors.files.parquet import ParquetWriterFactory

__all__ = ["ParquetBulkWriters"]


class ParquetBulkWriters:
    """Writers of Parquet for :meth:`firesteel.datastream.connectors.file_system.FileSink.for_bulk_format`."""

    @staticmethod
    def for_row_type(row_type: Any, hadoop_config: Any = None, utc_timestamp: bool = False) -> BulkWriterFactory:
        """``row_type`` is ``Types.ROW_NAMED(…)``, ``Types.TUPLE(…)`` or a ``pyarrow.Schema``. Elements are rows,
        tuples, dicts or dataclasses. The other two parameters are accepted; there is no Hadoop here, and a timestamp
        is written as it is."""
        return ParquetWriterFactory(row_type)
