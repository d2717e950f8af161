"""Formats of records one after the other: of any kind, or a record a line."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator
from typing import IO

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.connectors.files.file_format import FileFormat, FormatPlanner, FormatReader, InputFile, T
from firesteel.connectors.files.line_reading import LinePlaces, LineRangeReader, Lines, limit
from firesteel.connectors.files.stream_reading import RecordReader, RecordsAhead
from firesteel.connectors.source import Records
from firesteel.connectors.text_reading import FileSplit, RangeReader, check_charset

__all__ = ["LineFormat", "StreamFormat", "TextLineFormat"]


class StreamFormat(FileFormat[T]):
    """Records one after the other: a subclass gives those of a whole stream, in order.

    A place is a number of records. Files that end in ``.gz``, ``.bz2`` or ``.zst`` arrive decompressed. A job that goes
    on inside a file reads over the records before that place, so this is for files of moderate size;
    :class:`LineFormat` and :class:`~firesteel.connectors.files.bulk_format.BulkFormat` find their places faster.

    >>> class FixedWidth(StreamFormat[bytes]):
    ...     def read_records(self, stream, path):
    ...         while record := stream.read(4):
    ...             yield record
    >>> import io
    >>> list(FixedWidth().read_records(io.BytesIO(b"abcdefgh"), "/data/a.bin"))
    [b'abcd', b'efgh']
    """

    @abstractmethod
    def read_records(self, stream: IO[bytes], path: str) -> Iterator[T]:
        """The records of one file. The same bytes give the same records. The path is for errors."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8", errors: str = "strict") -> StreamFormat[str]:
        """Lines of text. Bytes that are no text in the character set fail the job, with file and line;
        ``errors="replace"`` puts U+FFFD in their place, as PyFlink does."""
        return TextLineFormat(charset_name, errors)

    def create_planner(self) -> FormatPlanner:
        return RecordsAhead(self.read_records, self.bytes_per_record)

    def create_reader(self) -> FormatReader[T]:
        return RecordReader(self.read_records)


class LineFormat(StreamFormat[T]):
    """A record a line. A place is a number of bytes, so large files are read by many subtasks, and a job that goes on
    inside a file begins at the right byte. Compressed files are read from their beginning, by one subtask each.

    >>> class Numbers(LineFormat[int]):
    ...     def decode(self, lines):
    ...         return [int(line) for line in lines.lines]
    """

    splittable = True
    appendable = True
    header_lines: int = 0
    """So many lines at the beginning of each file are no records."""

    @abstractmethod
    def decode(self, lines: Lines) -> list[T]:
        """The records of some lines: usually as many, but a line may have none or several. For one that is not valid,
        raise ``lines.failed(index, reason)``."""

    def read_records(self, stream: IO[bytes], path: str) -> Iterator[T]:
        """The records of a stream of lines, wherever it comes from."""
        header, offset = list(itertools.islice(stream, self.header_lines)), 0
        offset += sum(map(len, header))
        file = InputFile(path, 0, 0)
        while lines := list(itertools.islice(stream, 1024)):
            yield from self.decode(Lines(lines, file, offset, header))
            offset += sum(map(len, lines))

    def create_planner(self) -> FormatPlanner:
        return LinePlaces(self.bytes_per_record)

    def create_reader(self) -> FormatReader[T]:
        return LineRangeReader(self.decode, self.header_lines)


class TextLineFormat(LineFormat[str]):
    """Lines of text.

    >>> import io
    >>> list(TextLineFormat().read_records(io.BytesIO(b"one\\r\\ntwo\\n"), "-"))
    ['one', 'two']
    """

    def __init__(self, charset_name: str = "UTF-8", errors: str = "strict") -> None:
        check_charset(charset_name, errors, "text_line_format()")
        self._charset, self._errors = charset_name, errors

    @property
    def typed(self) -> bool:
        # A subclass may make something else of the lines.
        return type(self).decode is TextLineFormat.decode

    def decode(self, lines: Lines) -> list[str]:
        reader = RangeReader(self._charset, self._errors, lines.file.options, "StreamFormat.text_line_format")
        return reader.decoded(lines.lines, lines.file.path, lines.offset)

    def create_reader(self) -> FormatReader[str]:
        if not self.typed or self.header_lines:
            return super().create_reader()
        return _TextReader(self._charset, self._errors)

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class _TextReader(FormatReader[str]):
    """Reads lines that nobody has to see as bytes."""

    def __init__(self, charset: str, errors: str) -> None:
        self._charset, self._errors = charset, errors
        self._reader: RangeReader | None = None

    def read(self, file: InputFile, start: int, end: int) -> Iterator[Records[str]]:
        if self._reader is None:
            self._reader = RangeReader(self._charset, self._errors, file.options, "StreamFormat.text_line_format")
        return self._reader.read(FileSplit(file.state, file.mark), start, limit(file, end))

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
