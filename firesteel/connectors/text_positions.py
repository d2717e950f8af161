"""How far text files were read, and whether they are still the files that were read.

A position is an object of JSON: by file name how far it was read, with its size and its modification time at that
moment, a checksum of the bytes before that place, and whether it was finished. A file that was not begun is not in it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from firesteel.connectors.compressed import codec_of
from firesteel.errors import InputError

__all__ = ["Entry", "FileState", "Position", "TextPosition"]

Position = dict[str, list[Any]]

_MARK_BYTES = 1024


@dataclass(frozen=True)
class FileState:
    """A file as it was when somebody looked."""

    path: str
    size: int
    modified: int
    """In nanoseconds."""

    def check(self, end: int = 0, mark: int = 0) -> None:
        """Raises if the file is gone, or is another one now. One that has only grown is still the same: what stands
        before ``end`` has the checksum ``mark`` as before."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            raise gone(self.path) from None
        if self.compare(found) and end and self.mark(end) != mark:
            raise changed(self.path, "it was replaced by another one")

    def compare(self, found: os.stat_result) -> bool:
        """Returns whether the file has grown. Raises if it was changed otherwise."""
        if found.st_size < self.size:
            raise changed(self.path, f"it had {self.size} bytes and has {found.st_size} now")
        grown = found.st_size > self.size and codec_of(self.path) is None
        if not grown and (found.st_size, found.st_mtime_ns) != (self.size, self.modified):
            raise changed(self.path, "it was written to after the job had looked at it")
        return grown

    def mark(self, end: int) -> int:
        """A checksum of what stands before a place of the file."""
        start = max(0, end - _MARK_BYTES)
        with open(self.path, "rb") as file:
            file.seek(start)
            content = file.read(end - start)
        if len(content) < end - start:
            raise changed(self.path, "it has become shorter")
        return zlib.crc32(content)

    def ends_with_line(self, end: int) -> bool:
        with open(self.path, "rb") as file:
            file.seek(end - 1)
            return file.read(1) == b"\n"


class Entry(NamedTuple):
    """How far one file was read. Of a compressed file the offset counts what it holds, the size what it takes."""

    offset: int
    size: int
    modified: int
    mark: int
    done: bool


class TextPosition:
    """A position, seen from a source that has these files now."""

    def __init__(self, entries: dict[str, Entry], files: tuple[FileState, ...]) -> None:
        self.entries = entries
        self._files = files

    @staticmethod
    def of(position: Any, files: tuple[FileState, ...]) -> TextPosition:
        if isinstance(position, int):
            return TextPosition(_of_number(position, files), files)
        return TextPosition({path: Entry(*entry) for path, entry in position.items()}, files)

    def to_json(self) -> Position:
        return {path: list(entry) for path, entry in self.entries.items()}

    def left(self) -> Iterator[tuple[FileState, Entry]]:
        """The files that have something left to read, with what is known of them. Raises if one was changed."""
        names = set()
        for file in self._files:
            names.add(file.path)
            entry = self.entries.get(file.path)
            if entry is None:
                yield file, Entry(0, file.size, file.modified, 0, False)
            elif (entry.size, entry.modified) == (file.size, file.modified):
                if not entry.done:
                    yield file, entry
            elif _has_grown(file, entry):
                yield file, entry
        for path, entry in self.entries.items():
            if path not in names and not entry.done:
                raise gone(path)

    def since(self, start: TextPosition) -> Iterator[tuple[FileState, int, int, int]]:
        """What lies between an earlier position and this one, file by file, and the checksum before its end."""
        for path, entry in self.entries.items():
            before = start.entries.get(path)
            low = before.offset if before is not None else 0
            if entry.offset > low:
                yield FileState(path, entry.size, entry.modified), low, entry.offset, entry.mark


def _has_grown(file: FileState, entry: Entry) -> bool:
    """Whether a file that is not as it was when it was read has only got longer. Raises if it was changed otherwise."""
    path = file.path
    if file.size < entry.size:
        raise changed(path, f"it had {entry.size} bytes when the job's position was saved and has {file.size} now")
    if codec_of(path) is not None or file.size == entry.size or file.mark(entry.offset) != entry.mark:
        raise changed(path, "it is not the file that was read when the job's position was saved")
    if entry.done and not file.ends_with_line(entry.offset):
        raise changed(path, "something was added to its last line, which was read without it")
    return True


def _of_number(position: int, files: tuple[FileState, ...]) -> dict[str, Entry]:
    """A position of version 0.1 and before, which counted the bytes of all files in a row."""
    if position == 0:
        return {}
    if len(files) == 1 and position <= files[0].size:
        file = files[0]
        done = position == file.size
        return {file.path: Entry(position, file.size, file.modified, file.mark(position), done)}
    raise InputError(
        "read_text_file(): the job's position was saved by an earlier version of Firesteel, which counted the bytes "
        f"of all files in a row ({position}). Which files those were is not known, so it cannot be gone on from. "
        "Finish the job with that version, or start it without its checkpoint or savepoint."
    )


def changed(path: str, how: str) -> InputError:
    return InputError(
        f"The file {path} was changed while a job reads it: {how}. Lines would be lost or read twice. Put the file "
        "back as it was to go on, or start the job without its checkpoint or savepoint. New lines belong into new "
        "files, or behind the last line."
    )


def gone(path: str) -> InputError:
    return InputError(
        f"The file {path} is gone, and the job has not read all of it. Put it back to go on, or start the job without "
        "its checkpoint or savepoint."
    )
