"""Files as a source. ``firesteel.datastream.connectors.file_system`` has all names of files, these and the sink's."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Any

from firesteel.common.time import Duration
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.files.bulk_format import BulkFormat
from firesteel.connectors.files.enumerator import FileEnumerator, Piece
from firesteel.connectors.files.file_format import FileFormat
from firesteel.connectors.files.known_files import FileSet, MonitoredFiles, StaticFiles
from firesteel.connectors.files.listing import PathPattern, list_files, resolved_paths
from firesteel.connectors.files.reader import FileReader
from firesteel.connectors.files.stream_format import StreamFormat
from firesteel.datastream.connectors.base import Source
from firesteel.errors import ProgramError, short_repr
from firesteel.filesystems import StorageOptions

__all__ = ["FileEnumeratorProvider", "FileSource", "FileSourceBuilder", "FileSplitAssignerProvider"]


class FileEnumeratorProvider:
    """How files are shared out to subtasks."""

    def __init__(self, split_files: bool) -> None:
        self._split_files = split_files

    @property
    def split_files(self) -> bool:
        """Whether several subtasks may read one file."""
        return self._split_files

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Large files are read by several subtasks, where their format allows it. This is the default."""
        return FileEnumeratorProvider(True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """A file's part of a batch is read by one subtask."""
        return FileEnumeratorProvider(False)


class FileSplitAssignerProvider:
    """Which subtask reads which file. Here it follows from what a batch reads, so there is nothing to choose."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        return FileSplitAssignerProvider()


@dataclass(frozen=True)
class _Settings:
    form: FileFormat[Any]
    paths: tuple[str, ...]
    interval: float | None = None
    """Between two looks at a folder, in seconds; None where there is only one."""
    retention: int | None = None
    """In nanoseconds."""
    split_files: bool = True
    options: StorageOptions | None = None
    pattern: PathPattern | None = None
    """What the paths of files have to be."""


class FileSource(Source[Piece, Any]):
    """Reads files below one or more paths: files or folders, plain paths or URIs such as ``s3://bucket/orders``.

    >>> import os, tempfile
    >>> from firesteel.common import WatermarkStrategy
    >>> from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
    >>> from firesteel.testing import memory_environment
    >>> env = memory_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in {"a.txt": "one\\ntwo\\n", "b.txt": "three\\n", ".hidden": "no\\n"}.items():
    ...         _ = open(os.path.join(folder, name), "w").write(text)
    ...     source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).build()
    ...     lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    ...     sorted(lines.execute_and_collect())
    ['one', 'three', 'two']
    """

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat[Any], *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """A source of records one after the other: ``StreamFormat.text_line_format()``, CSV, JSON lines, or a format of
        your own."""
        if not isinstance(stream_format, StreamFormat):
            raise ProgramError(
                f"for_record_stream_format() takes a StreamFormat, got {short_repr(stream_format, 80)}. A BulkFormat "
                "belongs to for_bulk_file_format()."
            )
        return FileSourceBuilder(_Settings(stream_format, _checked(paths)))

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat[Any], *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """A source of files that consist of blocks, such as Parquet."""
        if not isinstance(bulk_format, BulkFormat):
            raise ProgramError(
                f"for_bulk_file_format() takes a BulkFormat, got {short_repr(bulk_format, 80)}. A StreamFormat belongs "
                "to for_record_stream_format()."
            )
        return FileSourceBuilder(_Settings(bulk_format, _checked(paths)))

    @staticmethod
    def for_file_format(file_format: FileFormat[Any], *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """A source of any format, also of one that implements the whole contract itself."""
        if not isinstance(file_format, FileFormat):
            raise ProgramError(f"for_file_format() takes a FileFormat, got {short_repr(file_format, 80)}.")
        return FileSourceBuilder(_Settings(file_format, _checked(paths)))

    def with_storage(self, options: StorageOptions) -> FileSource:
        return FileSource(replace(self._settings, options=options))

    def create_enumerator(self) -> FileEnumerator:
        given = self._settings
        files: FileSet
        if given.interval is None:
            files = StaticFiles(list_files(given.paths, given.options, given.pattern))
        else:
            files = MonitoredFiles(given.paths, given.options, given.interval, given.retention, given.pattern)
        return FileEnumerator(files, given.form, given.options, given.split_files)

    def create_reader(self) -> FileReader[Any]:
        return FileReader(self._settings.form, self._settings.options)

    def get_produced_type(self) -> TypeInformation | None:
        return self._settings.form.get_produced_type()


class FileSourceBuilder:
    """Makes a :class:`FileSource`."""

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings

    def process_static_file_set(self) -> FileSourceBuilder:
        """Reads the files that are there when the program is built, and ends. This is the default."""
        self._settings = replace(self._settings, interval=None)
        return self

    def monitor_continuously(self, discovery_interval: Duration) -> FileSourceBuilder:
        """Reads the files that are there and those that appear later, each once, the oldest first. The source does not
        end by itself. A file must be complete when it appears: write it elsewhere and move it."""
        if not isinstance(discovery_interval, Duration) or discovery_interval.to_millis() < 1:
            raise ProgramError(
                "monitor_continuously() takes a Duration of at least a millisecond, got "
                f"{short_repr(discovery_interval, 80)}."
            )
        self._settings = replace(self._settings, interval=discovery_interval.to_millis() / 1000)
        return self

    def set_retention(self, retention: Duration) -> FileSourceBuilder:
        """For ``monitor_continuously``: files that are so much older than the newest one are forgotten, and no new ones
        of that age are read. Without it all files that were read are remembered, 16 bytes each in every checkpoint."""
        if not isinstance(retention, Duration) or retention.to_millis() < 1:
            raise ProgramError(f"set_retention() takes a Duration, got {short_repr(retention, 80)}.")
        self._settings = replace(self._settings, retention=retention.to_nanos())
        return self

    def match_paths(self, pattern: str) -> FileSourceBuilder:
        """Only files whose absolute path, without the system and bucket of a URI, is all of this regular expression:
        ``/orders/2024-.*\\.csv``."""
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise ProgramError(f"match_paths() takes a regular expression, got {pattern!r}: {error}.") from None
        self._settings = replace(self._settings, pattern=compiled)
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Whether several subtasks may read one file."""
        if not isinstance(file_enumerator, FileEnumeratorProvider):
            raise ProgramError(
                f"set_file_enumerator() takes a FileEnumeratorProvider, got {short_repr(file_enumerator, 80)}."
            )
        self._settings = replace(self._settings, split_files=file_enumerator.split_files)
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Accepted; see :class:`FileSplitAssignerProvider`."""
        return self

    def build(self) -> FileSource:
        return FileSource(self._settings)


def _checked(paths: tuple[str | os.PathLike[str], ...]) -> tuple[str, ...]:
    if not paths:
        raise ProgramError("A FileSource needs at least one path.")
    return resolved_paths(paths)
