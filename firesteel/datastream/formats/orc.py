"""ORC."""

from __future__ import annotations

from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.common.serialization import BulkWriterFactory
from firesteel.connectors.files.orc import OrcRowFormat, OrcWriterFactory, orc_options

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]


class OrcBulkWriters:
    """Writers of ORC for :meth:`firesteel.datastream.connectors.file_system.FileSink.for_bulk_format`."""

    @staticmethod
    def for_row_type(
        row_type: Any, writer_properties: Configuration | None = None, hadoop_config: Any = None
    ) -> BulkWriterFactory:
        """``row_type`` is ``Types.ROW_NAMED(…)``, ``Types.TUPLE(…)`` or a ``pyarrow.Schema``. Of the properties
        ``orc.compress``, ``orc.stripe.size``, ``orc.compress.size`` and ``orc.row.index.stride`` count."""
        return OrcWriterFactory(row_type, orc_options(writer_properties.to_dict() if writer_properties else {}))


class OrcColumnarRowInputFormat(OrcRowFormat):
    """Reads the columns of a row type from ORC files, for
    :meth:`firesteel.datastream.connectors.file_system.FileSource.for_bulk_file_format`. PyFlink has no reader of ORC;
    this one is named like Flink's and takes what :class:`~firesteel.datastream.formats.parquet.\
ParquetColumnarRowInputFormat` takes."""
