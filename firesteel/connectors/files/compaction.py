"""When small part files are put together, and how."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from firesteel.common.serialization import BulkWriterFactory
from firesteel.connectors.files.file_format import END, FileFormat, InputFile
from firesteel.errors import ProgramError, short_repr

__all__ = [
    "ConcatFileCompactor",
    "FileCompactStrategy",
    "FileCompactor",
    "IdenticalFileCompactor",
    "RecordWiseFileCompactor",
]

_BLOCK = 1 << 20


@dataclass(frozen=True)
class FileCompactStrategy:
    """When the parts of a bucket are put together: whichever of two conditions comes first.

    >>> FileCompactStrategy.builder().set_size_threshold(1024).enable_compaction_on_checkpoint(5).build()
    FileCompactStrategy(size_threshold=1024, num_checkpoints_before_compaction=5, num_compact_threads=1)
    """

    size_threshold: int = -1
    num_checkpoints_before_compaction: int = -1
    num_compact_threads: int = 1

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        return FileCompactStrategy.Builder()

    class Builder:
        """Makes a strategy."""

        def __init__(self) -> None:
            self._size = self._checkpoints = -1
            self._threads = 1

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """When the parts that wait in a bucket have so many bytes together."""
            self._size = _number(size_threshold, "set_size_threshold() takes a number of bytes")
            return self

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """When the first of them has waited for so many checkpoints (micro-batches)."""
            what = "enable_compaction_on_checkpoint() takes a number of checkpoints"
            self._checkpoints = _number(num_checkpoints_before_compaction, what)
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """How many buckets are compacted side by side."""
            self._threads = _number(num_compact_threads, "set_num_compact_threads() takes a number of threads")
            return self

        def build(self) -> FileCompactStrategy:
            if self._size < 0 and self._checkpoints < 0:
                raise ProgramError(
                    "A FileCompactStrategy needs a condition: set_size_threshold() or "
                    "enable_compaction_on_checkpoint()."
                )
            return FileCompactStrategy(self._size, self._checkpoints, self._threads)


def _number(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ProgramError(f"{what} of at least 1, got {short_repr(value, 80)}.")
    return value


class FileCompactor(ABC):
    """Makes one file of several. Subclass it where neither concatenating nor reading record by record is right."""

    merges: bool = True
    """Whether it takes more than one file."""
    verbatim: bool = False
    """Whether what it makes of one file is that file."""

    @abstractmethod
    def compact(self, inputs: Sequence[InputFile], out: BinaryIO) -> None:
        """Writes all records of some files into one. The same files give the same records, for it may be repeated."""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Puts the contents one behind the other, with a delimiter between them where one is given: for lines."""
        return ConcatFileCompactor(file_delimiter)

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Leaves every file as it is. They become visible when the strategy says."""
        return IdenticalFileCompactor()

    @staticmethod
    def record_wise_file_compactor(file_format: FileFormat[Any], writer_factory: BulkWriterFactory) -> FileCompactor:
        """Reads all records and writes them anew: for Parquet and the like. PyFlink does not have it."""
        return RecordWiseFileCompactor(file_format, writer_factory)


class ConcatFileCompactor(FileCompactor):
    """Puts contents one behind the other."""

    verbatim = True

    def __init__(self, file_delimiter: bytes | None = None) -> None:
        if file_delimiter is not None and not isinstance(file_delimiter, bytes):
            raise ProgramError(f"A delimiter of files is bytes, got {short_repr(file_delimiter, 80)}.")
        self._delimiter = file_delimiter or b""

    def compact(self, inputs: Sequence[InputFile], out: BinaryIO) -> None:
        for number, one in enumerate(inputs):
            if number:
                out.write(self._delimiter)
            with one.open() as opened:
                while block := opened.read(_BLOCK):
                    out.write(block)


class IdenticalFileCompactor(ConcatFileCompactor):
    """Leaves files as they are."""

    merges = False

    def __init__(self) -> None:
        super().__init__()


class RecordWiseFileCompactor(FileCompactor):
    """Reads records by one format and writes them by another one, usually the same."""

    def __init__(self, file_format: FileFormat[Any], writer_factory: BulkWriterFactory) -> None:
        if not isinstance(file_format, FileFormat) or not isinstance(writer_factory, BulkWriterFactory):
            raise ProgramError(
                "record_wise_file_compactor() takes the format that reads the parts, such as "
                "ParquetColumnarRowInputFormat(…), and the factory of writers that the sink has."
            )
        self._format, self._factory = file_format, writer_factory

    def compact(self, inputs: Sequence[InputFile], out: BinaryIO) -> None:
        writer, reader = self._factory.create(out), self._format.create_reader()
        try:
            for one in inputs:
                for records in reader.read(one, 0, END):
                    for value in records.values:
                        writer.add_element(value)
        finally:
            reader.close()
        writer.finish()
