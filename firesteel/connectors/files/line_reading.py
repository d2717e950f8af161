"""Reads lines of files from byte to byte."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from firesteel.connectors.compressed import Lengths
from firesteel.connectors.files.file_format import END, FormatPlanner, FormatReader, InputFile, Reach, T
from firesteel.connectors.source import Records
from firesteel.connectors.text_reading import FileSplit, LineReader, lines_before
from firesteel.errors import InputError, short_repr

__all__ = ["LinePlaces", "LineRangeReader", "Lines", "limit"]


@dataclass(frozen=True)
class Lines:
    """Some lines of a file in a row, as bytes with their ends."""

    lines: list[bytes]
    file: InputFile
    offset: int
    """Where the first of them begins, in the bytes that the file holds."""
    header: Sequence[bytes] = ()
    """The lines that the file begins with, as many as the format has header lines. They are not among
    ``lines``."""

    def failed(self, index: int, reason: str) -> InputError:
        """An error that names the file, the number of one of these lines, and its first bytes."""
        place = self.offset + sum(map(len, self.lines[:index]))
        number = 1 + lines_before(self.file.path, place, self.file.system)
        return InputError(
            f"{self.file.path}, line {number}: {reason}. The line is {short_repr(self.lines[index], 120)}."
        )


class LinePlaces(FormatPlanner):
    """Any byte is a place: a line belongs to the range in which its first byte lies."""

    def __init__(self, bytes_per_record: int) -> None:
        self._bytes_per_record = bytes_per_record
        self._lengths: Lengths | None = None

    def advance(self, file: InputFile, place: int, records: int) -> Reach:
        room = max(1, records * self._bytes_per_record)
        if file.compression is None:
            end = min(file.size, place + room)
            done = end == file.size
        else:
            if self._lengths is None:
                self._lengths = Lengths(file.system)
            end, done = self._lengths.advance(file.path, place, room)
        size = end - place
        return Reach(end, -(-size // self._bytes_per_record), size, done)

    def opens(self, file: InputFile) -> bool:
        return file.compression is not None

    def close(self) -> None:
        if self._lengths is not None:
            self._lengths.close()


def limit(file: InputFile, end: int) -> int | None:
    """Before which byte the last line of a range starts; None for all that a compressed file has."""
    if end != END:
        return end
    return file.size if file.compression is None else None


class LineRangeReader(FormatReader[T]):
    """Reads the lines that begin in a range, and lets a format decode them."""

    def __init__(self, decode: Callable[[Lines], list[T]], header_lines: int) -> None:
        self._decode, self._header_lines = decode, header_lines
        self._reader: LineReader | None = None
        self._header: tuple[InputFile, list[bytes]] | None = None

    def read(self, file: InputFile, start: int, end: int) -> Iterator[Records[T]]:
        if self._reader is None:
            self._reader = LineReader(file.options)
        header = self._header_of(file)
        before = sum(map(len, header))
        for offset, lines in self._reader.read(FileSplit(file.state, file.mark), start, limit(file, end)):
            while lines and offset < before:
                # What stands before the records is shared out like the rest of the file.
                offset += len(lines.pop(0))
            if lines and (values := self._decode(Lines(lines, file, offset, header))):
                yield Records(values)

    def _header_of(self, file: InputFile) -> list[bytes]:
        if not self._header_lines:
            return []
        if self._header is None or self._header[0] != file:
            with file.open_decompressed() as opened:
                self._header = (file, list(itertools.islice(opened, self._header_lines)))
        return self._header[1]

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
