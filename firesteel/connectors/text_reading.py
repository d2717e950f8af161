"""Reads the lines of one byte range of a file, in a task."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from typing import IO, NamedTuple

from firesteel.connectors.compressed import codec_of, damaged, open_binary, skip
from firesteel.connectors.source import CHUNK_RECORDS, Records
from firesteel.connectors.text_positions import FileState, changed, gone
from firesteel.errors import InputError, ProgramError
from firesteel.filesystems import LOCAL, FileInfo, FileSystem, StorageOptions, file_system_of

__all__ = ["FileSplit", "LineReader", "RangeReader", "check_charset", "lines_before"]

BLOCK_BYTES = 256 << 10
"""So many bytes of lines are read at once, and those of the last line behind them."""

_DECODED_TOGETHER = frozenset({"utf-8", "ascii", "iso8859-1", "cp1252"})
"""Character sets in which many lines together are the same text as one by one: a line's end is one byte that no other
character has, and no line depends on the one before."""


class FileSplit(NamedTuple):
    """A file, as it was when the batch was planned."""

    file: FileState
    mark: int | None
    """A checksum of what stands before the end of the range that is read, if it is known."""


class _Opened(NamedTuple):
    path: str
    size: int
    modified: int
    file: IO[bytes]
    high: int
    """Where the range ended that was read last."""
    at: int
    """Where the file stands: at the first line that starts behind that."""


class RangeReader:
    """Gives the lines that start in a range, as text. ``call`` is what the user has called, for errors."""

    def __init__(
        self, charset: str, errors: str, options: StorageOptions | None = None, call: str = "read_text_file"
    ) -> None:
        self._charset = charset
        self._errors = errors
        self._options = options
        self._call = call
        self._lines = LineReader(options)

    def read(self, split: FileSplit, low: int, high: int | None) -> Iterator[Records[str]]:
        together = self._errors == "strict" and codecs.lookup(self._charset).name in _DECODED_TOGETHER
        if not together:
            for first, lines in self._lines.read(split, low, high):
                yield Records(self.decoded(lines, split.file.path, first))
            return
        for first, block in self._lines.blocks(split, low, high):
            try:
                values = _lines_of(block.decode(self._charset))
            except UnicodeDecodeError:
                raise self._undecodable(_cut(block), split.file.path, first) from None
            yield Records(values)

    def decoded(self, lines: list[bytes], path: str, first: int) -> list[str]:
        """Lines without their ends as text; the first one stands at that byte of its file."""
        charset, errors = self._charset, self._errors
        try:
            return [_without_end(line).decode(charset, errors) for line in lines]
        except UnicodeDecodeError:
            raise self._undecodable(lines, path, first) from None

    def _undecodable(self, lines: list[bytes], path: str, first: int) -> InputError:
        """Which line it is: counted now, because nobody counts lines that are well."""
        for line in lines:
            try:
                _without_end(line).decode(self._charset, self._errors)
            except UnicodeDecodeError as error:
                number = 1 + lines_before(path, first, file_system_of(path, self._options))
                byte = line[error.start]
                return InputError(
                    f"{path}, line {number}: byte 0x{byte:02x} at place {error.start + 1} of the line is not valid "
                    f"{self._charset} ({error.reason}). Name the file's character set (charset_name), or let such "
                    f"bytes be replaced with {self._call}(..., errors='replace')."
                )
            first += len(line)
        raise AssertionError("all lines could be decoded the second time")

    def close(self) -> None:
        self._lines.close()


class LineReader:
    """Gives the lines that start in a range, as bytes with their ends: a line belongs to the range in which its first
    byte lies.

    A compressed file stays open for the range that follows.
    """

    def __init__(self, options: StorageOptions | None = None) -> None:
        self._options = options
        self._opened: _Opened | None = None

    def read(self, split: FileSplit, low: int, high: int | None) -> Iterator[tuple[int, list[bytes]]]:
        """Lines in pieces of some thousand, each with the place of its first one. Without ``high``, all that there
        are."""
        for first, block in self.blocks(split, low, high):
            lines = _cut(block)
            for start in range(0, len(lines), CHUNK_RECORDS):
                piece = lines[start : start + CHUNK_RECORDS]
                yield first, piece
                first += sum(map(len, piece))

    def blocks(self, split: FileSplit, low: int, high: int | None) -> Iterator[tuple[int, bytes]]:
        """The same lines as they stand in the file, in blocks of whole ones."""
        state, path = split.file, split.file.path
        system = file_system_of(path, self._options)
        file, at = self._open(state, low, system)
        # The file's last line ends where the file ended when the batch was planned, whatever was added since. Of a
        # compressed file, which must not change at all, that is its end anyway.
        end = state.size if codec_of(path) is None else None
        first, block = at, b""
        try:
            while high is None or at < high:
                if block:
                    yield first, block
                first, block = at, self._block(file, path, BLOCK_BYTES if high is None else min(BLOCK_BYTES, high - at))
                if not block:
                    if high is None:
                        break
                    raise changed(path, f"it ends at byte {at} and had {high} when the batch was planned")
                if end is not None and at + len(block) > end:
                    block = block[: end - at]
                at += len(block)
            # Before the last of them is handed on.
            grown = state.compare(self._info(file, path, system))
            if grown and high is not None and split.mark is not None and not state.matches(high, split.mark, system):
                raise changed(path, "it was replaced by another one")
            if block:
                yield first, block
        except BaseException:
            file.close()
            raise
        if codec_of(path) is None or high is None:
            file.close()
        else:
            self._opened = _Opened(path, state.size, state.modified, file, high, at)

    def _open(self, state: FileState, low: int, system: FileSystem) -> tuple[IO[bytes], int]:
        """The file at the first line that starts in the range."""
        path = state.path
        opened, self._opened = self._opened, None
        if opened is not None:
            same = opened[:3] == (path, state.size, state.modified)
            if same and opened.high == low:
                return opened.file, opened.at
            opened.file.close()
        try:
            file = open_binary(path, system)
        except FileNotFoundError:
            raise gone(path) from None
        try:
            state.compare(self._info(file, path, system))
            if not low:
                return file, 0
            if codec_of(path) is None:
                file.seek(low - 1)
            elif skip(file, low - 1, path) < low - 1:
                raise changed(path, "it holds less than it did")
            return file, low - 1 + len(self._line(file, path))
        except BaseException:
            file.close()
            raise

    @staticmethod
    def _info(file: IO[bytes], path: str, system: FileSystem) -> FileInfo:
        if system is LOCAL and codec_of(path) is None:
            # The one that is open, whatever has its name by now.
            found = os.fstat(file.fileno())
            return FileInfo(path, found.st_size, found.st_mtime_ns)
        info = system.info(path)
        if info is None:
            raise gone(path)
        return info

    @classmethod
    def _block(cls, file: IO[bytes], path: str, size: int) -> bytes:
        """The lines that start in the next so many bytes; none at the end of the file."""
        try:
            block = file.read(size)
        except OSError as error:
            if codec_of(path) is None:
                raise
            raise damaged(path, error) from error
        return block if not block or block.endswith(b"\n") else block + cls._line(file, path)

    @staticmethod
    def _line(file: IO[bytes], path: str) -> bytes:
        try:
            return file.readline()
        except OSError as error:
            if codec_of(path) is None:
                raise
            raise damaged(path, error) from error

    def close(self) -> None:
        if self._opened is not None:
            self._opened.file.close()
            self._opened = None


def _cut(block: bytes) -> list[bytes]:
    """The lines of a block, with their ends."""
    return io.BytesIO(block).readlines()


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _lines_of(text: str) -> list[str]:
    """The lines of a text that ends with a whole one, without their ends."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def lines_before(path: str, place: int, system: FileSystem) -> int:
    with open_binary(path, system) as file:
        count = 0
        while place > 0:
            content = file.read(min(place, 1 << 20))
            if not content:
                break
            count += content.count(b"\n")
            place -= len(content)
    return count


def check_charset(charset: str, errors: str, call: str) -> None:
    """Raises if lines cannot be told apart, or read, in this character set."""
    try:
        one, two = "\n".encode(charset), "\n\n".encode(charset)
    except LookupError:
        raise ProgramError(f"{call}: Python knows no character set {charset!r}.") from None
    if two.removeprefix(one) != b"\n":
        raise ProgramError(
            f"{call}: lines of {charset} text cannot be told apart by their bytes. Convert the file to UTF-8."
        )
    try:
        codecs.lookup_error(errors)
    except LookupError:
        raise ProgramError(
            f"{call}: errors is {errors!r}; it must be 'strict', 'replace', 'ignore' or another name that "
            "Python's decoders know."
        ) from None
