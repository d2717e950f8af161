"""Lines of text files, cut into byte ranges, so that a large file is read by many tasks and in many batches."""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.connectors.blocks import blocks
from firesteel.connectors.compressed import Lengths, codec_of
from firesteel.connectors.source import Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.connectors.text_positions import Entry, FileState, Position, TextPosition
from firesteel.connectors.text_reading import FileSplit, RangeReader, check_charset
from firesteel.datastream.connectors.base import Source
from firesteel.errors import ConfigurationError, InputError, ProgramError
from firesteel.filesystems import FileSystem, StorageOptions, file_system_of, is_remote, openable

__all__ = ["TextFileEnumerator", "TextFileReader", "TextFileSource"]

BYTES_PER_RECORD = 64
"""A guess at a line's length, for sizing batches; the sizes adapt to how long a batch takes."""

_OWN = ("_lengths", "_recent", "_system")
"""What belongs to the process that uses an enumerator."""
_RECENT = 4

Range = SplitRange[FileSplit]


class TextFileSource(Source[FileSplit, str]):
    """The lines that a file, or all files of a folder, have when the program is built, file by file."""

    def __init__(
        self, path: str, charset: str = "UTF-8", errors: str = "strict", options: StorageOptions | None = None
    ) -> None:
        self._path, self._charset, self._errors, self._options = path, charset, errors, options

    def create_enumerator(self) -> TextFileEnumerator:
        check_charset(self._charset, self._errors, "read_text_file()")
        return TextFileEnumerator.of(self._path, self._options)

    def create_reader(self) -> TextFileReader:
        return TextFileReader(self._charset, self._errors, self._options)


class TextFileEnumerator(SplitEnumerator[FileSplit]):
    """Plans batches of files.

    A position says how far each file was read that was begun, and how the file looked then. So a job that goes on from
    it reads files that were added, and what was added to a file. A file that was changed otherwise is an error that
    names it.
    """

    def __init__(self, files: tuple[FileState, ...], options: StorageOptions | None = None) -> None:
        self._options = options
        self._files = {file.path: file for file in files}
        self._size = sum(file.size for file in files)
        self._start()

    def _start(self) -> None:
        self._recent: list[tuple[Any, TextPosition]] = []
        """The positions that were asked for last: with many files, one takes long to make out."""

    @cached_property
    def _system(self) -> FileSystem:
        # All files are below one path.
        return file_system_of(next(iter(self._files), ""), self._options)

    @cached_property
    def _lengths(self) -> Lengths:
        return Lengths(self._system)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _OWN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    @classmethod
    def of(cls, path: str, options: StorageOptions | None = None) -> TextFileEnumerator:
        """All that is needed to read a file (or every file of a folder) as it is now."""
        path = _resolved(path)
        if is_remote(path):
            return cls(tuple(_remote(path, file_system_of(path, options))), options)
        if not os.path.exists(path):
            raise ProgramError(f"read_text_file(): there is no file or folder {path!r}.")
        names = sorted(_inside(path)) if os.path.isdir(path) else [path]
        files = tuple(_state(os.path.abspath(name)) for name in names)
        return cls(tuple(file for file in files if file.size))

    def ends_within(self, records: int) -> bool:
        plain = not any(map(codec_of, self._files))
        return plain and self._size <= records * BYTES_PER_RECORD

    # Positions

    def initial(self) -> Position:
        return {}

    def _known(self, position: Any) -> TextPosition:
        for at, (recent, known) in enumerate(self._recent):
            if recent is position or recent == position:
                del self._recent[at]
                # With this object, which is found without a comparison when it is asked for again.
                return self._remember(position, known)
        return self._remember(position, TextPosition.of(position, self._files, self._system))

    def _remember(self, position: Any, known: TextPosition) -> TextPosition:
        self._recent.insert(0, (position, known))
        del self._recent[_RECENT:]
        return known

    def latest(self, position: Any, max_records: int) -> Any:
        known, room = self._known(position), max_records * BYTES_PER_RECORD
        if known.finished:
            return position
        entries = {}
        for file, entry in known.left():
            if room <= 0:
                break
            # Here, and not before: what is read in this batch must still be the same file.
            file.check(entry.offset, entry.mark, self._system)
            reached = self._reach(file, entry.offset, room)
            room -= reached.offset - entry.offset
            entries[file.path] = reached
        end = TextPosition({**known.entries, **entries}, self._files, self._system)
        found = end.to_json()
        self._remember(found, end)
        return found

    def _reach(self, file: FileState, offset: int, room: int) -> Entry:
        if codec_of(file.path) is None:
            end = min(file.size, offset + room)
            return Entry(end, file.size, file.modified, file.mark(end, self._system), end >= file.size)
        end, done = self._lengths.advance(file.path, offset, room)
        return Entry(end, file.size, file.modified, file.mark(end, self._system), done)

    def ended(self, position: Any) -> bool:
        return self._known(position).finished

    def count(self, start: Any, end: Any) -> int:
        return self.size(start, end) // BYTES_PER_RECORD

    def size(self, start: Any, end: Any) -> int:
        if start is end or start == end:
            return 0
        return sum(high - low for _, low, high, _ in self._known(end).since(self._known(start)))

    def pending(self, position: Any) -> int:
        left = sum(file.size - entry.offset for file, entry in self._known(position).left())
        return -(-left // BYTES_PER_RECORD)

    def plan(self, start: Any, end: Any, parallelism: int) -> list[list[Range]]:
        found = self._known(end).since(self._known(start))
        ranges = [SplitRange(FileSplit(file, mark), low, high) for file, low, high, mark in found]
        total = sum(one.end - one.start for one in ranges)
        # All ranges in a row, cut into blocks of equal size, one for each subtask.
        return [list(_cut(ranges, *block)) if block else [] for block in blocks(0, total, parallelism)]

    def stop(self) -> None:
        self._lengths.close()


class TextFileReader(SourceReader[FileSplit, str]):
    """Reads lines."""

    produces = Types.STRING()

    def __init__(self, charset: str = "UTF-8", errors: str = "strict", options: StorageOptions | None = None) -> None:
        self._reader = RangeReader(charset, errors, options)

    def read(self, split: FileSplit, start: int, end: int) -> Iterator[Records[str]]:
        return self._reader.read(split, start, end)

    def close(self) -> None:
        self._reader.close()


def _cut(ranges: list[Range], low: int, high: int) -> Iterator[Range]:
    """What lies in a block of all ranges in a row. What cannot be cut belongs to the block in which it begins."""
    sizes = [one.end - one.start for one in ranges]
    for one, first in zip(ranges, itertools.accumulate(sizes, initial=0), strict=False):
        last = first + one.end - one.start
        file, mark = one.split
        if codec_of(file.path) is not None:
            if low <= first < high:
                yield one
        elif first < high and last > low:
            split = FileSplit(file, mark if last <= high else None)
            yield SplitRange(split, one.start + max(0, low - first), one.start + min(last, high) - first)


def _resolved(path: str) -> str:
    try:
        return openable(path, "read_text_file(): the path")
    except ConfigurationError as error:
        raise ProgramError(str(error)) from None


def _remote(path: str, system: FileSystem) -> Iterator[FileState]:
    """The files of another file system, in the order of their names."""
    alone = system.info(path)
    # As Hadoop and Flink do, leave out hidden files and folders.
    found = [alone] if alone else [one for one in system.walk(path) if not re.search(r"/[._]", one.path[len(path) :])]
    if not found and not system.exists(path):
        raise ProgramError(f"read_text_file(): there is no file or folder {path!r}.")
    return (FileState(*one) for one in sorted(found) if one.size)


def _inside(path: str) -> Iterator[str]:
    for folder, folders, names in os.walk(path):
        # As Hadoop and Flink do, leave out hidden files and folders.
        folders[:] = [name for name in folders if name[0] not in "._"]
        for name in names:
            if name[0] not in "._":
                yield os.path.join(folder, name)


def _state(path: str) -> FileState:
    try:
        found = os.stat(path)
    except OSError as error:
        raise InputError(f"read_text_file(): {path} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(found.st_mode):
        kind = "a named pipe" if stat.S_ISFIFO(found.st_mode) else "not a regular file"
        raise ProgramError(
            f"read_text_file(): {path} is {kind}. A job must be able to read its input again after a failure: write it "
            "to a file first, or send it to a socket and use socket_text_stream()."
        )
    return FileState(path, found.st_size, found.st_mtime_ns)
