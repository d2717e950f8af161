"""Files read as batches of columns, and batches written into files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from firesteel.common.serialization import Encoder
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.files.buckets import BucketAssigner
from firesteel.connectors.files.file_format import FileFormat, FormatPlanner, FormatReader, InputFile
from firesteel.connectors.files.line_reading import Lines
from firesteel.connectors.files.stream_format import LineFormat
from firesteel.connectors.source import Records
from firesteel.connectors.table.formats.message_format import BadMessage, MessageFormat
from firesteel.connectors.table.partition_folders import FolderBatch, partition_values
from firesteel.runtime.columns.kinds import data_of, kinds_of, with_kinds
from firesteel.runtime.columns.types import ColumnsType

__all__ = [
    "FILE_METADATA",
    "FolderAssigner",
    "LineBatches",
    "LineEncoder",
    "TableFiles",
]


class LineBatches(LineFormat[pa.RecordBatch]):
    """A row a line, in the format of messages. ``bare``: lines without their ends. ``blanks``: whether empty lines are
    rows, too."""

    def __init__(self, form: MessageFormat, bare: bool = False, blanks: bool = False) -> None:
        self._format, self._bare, self._blanks = form, bare, blanks

    def decode(self, lines: Lines) -> list[pa.RecordBatch]:
        kept = lines.lines
        if self._bare:
            kept = [line.removesuffix(b"\n").removesuffix(b"\r") for line in kept]
        elif not self._blanks and (b"\n" in kept or b"\r\n" in kept):
            kept = [line for line in kept if line.strip()]
        try:
            batch = self._format.decode(kept).batch
        except BadMessage as error:
            where = lines.lines.index(kept[error.index]) if not self._bare else error.index
            raise lines.failed(where, error.reason) from None
        return [batch] if batch.num_rows else []


class LineEncoder(Encoder):
    """Batches as lines."""

    def __init__(self, form: MessageFormat) -> None:
        super().__init__()
        self._format = form

    def encode(self, element: FolderBatch) -> bytes:
        return b"".join((line or b"") + b"\n" for line in self._format.encode(element.batch))


class FolderAssigner(BucketAssigner):
    """The folder that a batch says."""

    def get_bucket_id(self, element: FolderBatch, context: Any) -> str:
        return element.folder


FILE_METADATA: dict[str, tuple[pa.DataType, Callable[[InputFile], Any]]] = {
    "file.path": (pa.string(), lambda file: file.path),
    "file.name": (pa.string(), lambda file: file.path.rpartition("/")[2]),
    "file.size": (pa.int64(), lambda file: file.size),
    "file.modification-time": (pa.timestamp("ms", "UTC"), lambda file: file.modified // 1_000_000),
}
"""What is known of a file, by its name as a metadata column."""


class TableFiles(FileFormat[pa.RecordBatch]):
    """Another format's batches with the columns that the file's path and its folder's listing say."""

    def __init__(
        self,
        inner: FileFormat[pa.RecordBatch],
        schema: pa.Schema,
        partitions: Sequence[str],
        default_name: str,
        metadata: Mapping[str, str],
    ) -> None:
        self._inner, self._schema, self._partitions = inner, schema, tuple(partitions)
        self._default, self._metadata = default_name, dict(metadata)
        self.splittable, self.appendable = inner.splittable, inner.appendable
        self.bytes_per_record = inner.bytes_per_record

    def create_planner(self) -> FormatPlanner:
        return self._inner.create_planner()

    def create_reader(self) -> FormatReader[pa.RecordBatch]:
        return _TableReader(self._inner.create_reader(), self)

    def splits(self, path: str) -> bool:
        return self._inner.splits(path)

    def get_produced_type(self) -> TypeInformation:
        return ColumnsType(self._schema)

    def completed(self, batch: pa.RecordBatch, file: InputFile) -> pa.RecordBatch:
        """A batch of a file with all columns of the table."""
        said = partition_values(file.path, self._partitions, self._schema, self._default)
        for name, key in self._metadata.items():
            kind, known = FILE_METADATA[key]
            said[name] = pa.scalar(known(file), kind).cast(self._schema.field(name).type)
        rows = data_of(batch)
        arrays = [
            pa.repeat(said[field.name], batch.num_rows) if field.name in said else rows.column(field.name)
            for field in self._schema
        ]
        return with_kinds(pa.RecordBatch.from_arrays(arrays, schema=self._schema), kinds_of(batch))


class _TableReader(FormatReader[pa.RecordBatch]):
    def __init__(self, inner: FormatReader[pa.RecordBatch], form: TableFiles) -> None:
        self._inner, self._format = inner, form

    def read(self, file: InputFile, start: int, end: int) -> Iterator[Records[pa.RecordBatch]]:
        for records in self._inner.read(file, start, end):
            yield Records([self._format.completed(batch, file) for batch in records.values])

    def close(self) -> None:
        self._inner.close()
