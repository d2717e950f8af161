"""Parquet files, by pyarrow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, BinaryIO

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.common.types import Row
from firesteel.connectors.files.arrow import arrow_converter, arrow_schema
from firesteel.errors import TypeMismatchError, short_repr

__all__ = ["ParquetWriterFactory"]

GROUP = 65536
"""Elements of a row group at most: what a part holds in memory before it is encoded."""


class ParquetWriterFactory(BulkWriterFactory):
    """Makes writers of Parquet files with the columns of a row type or a ``pyarrow.Schema``."""

    def __init__(self, row_type: Any, compression: str = "snappy", group_size: int = GROUP) -> None:
        self.schema = arrow_schema(row_type)
        self.compression, self.group_size = compression, group_size

    def create(self, out: BinaryIO) -> BulkWriter:
        return _ParquetWriter(out, self)


class _ParquetWriter(BulkWriter):
    def __init__(self, out: BinaryIO, factory: ParquetWriterFactory) -> None:
        # Only where it is needed: it takes long to import.
        import pyarrow.parquet

        self._schema, self._group_size = factory.schema, factory.group_size
        self._names = list(factory.schema.names)
        self._writer = pyarrow.parquet.ParquetWriter(out, factory.schema, compression=factory.compression)
        self._converters = [arrow_converter(field.type) for field in factory.schema]
        self._rows: list[list[Any]] = []

    def add_element(self, element: Any) -> None:
        self._rows.append(self._columns(element))
        if len(self._rows) >= self._group_size:
            self.flush()

    def _columns(self, element: Any) -> list[Any]:
        names = self._names
        if isinstance(element, Row) and element._fields is not None:
            return element.get_fields_by_names(names)
        if isinstance(element, Row | tuple | list):
            if len(element) == len(names):
                return list(element)
        elif isinstance(element, Mapping):
            return [element.get(name) for name in names]
        elif dataclasses.is_dataclass(element):
            return [getattr(element, name) for name in names]
        elif len(names) == 1:
            return [element]
        raise TypeMismatchError(
            f"A Parquet file with the columns {', '.join(names)} takes rows, tuples, dicts or dataclasses with "
            f"{len(names)} fields, got {short_repr(element, 80)}."
        )

    def flush(self) -> None:
        import pyarrow

        if self._rows:
            rows, self._rows = self._rows, []
            columns = []
            for position, (field, convert) in enumerate(zip(self._schema, self._converters, strict=True)):
                values = [row[position] for row in rows]
                if convert is not None:
                    values = list(map(convert, values))
                columns.append(pyarrow.array(values, type=field.type))
            self._writer.write_table(pyarrow.Table.from_arrays(columns, schema=self._schema))

    def finish(self) -> None:
        self.flush()
        self._writer.close()
