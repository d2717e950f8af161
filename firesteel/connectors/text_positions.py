"""How far text files were read, and whether they are still the files that were read.

A position is an object of JSON. A file that was begun is in it with its path: how far it was read, its size and its
modification time at that moment, and a checksum of the bytes before that place. Files that were finished may be many.
They are in an object of their folder, whose name ends with a slash: size, modification time, checksum, and of a
compressed file the place that was reached, which its size does not tell. A file that was not begun is not in it.
"""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any, NamedTuple, cast

from firesteel.connectors.compressed import codec_of
from firesteel.errors import InputError
from firesteel.filesystems import LOCAL, FileInfo, FileSystem, is_remote

__all__ = ["Entry", "FileState", "Position", "TextPosition"]

Position = dict[str, Any]

_MARK_BYTES = 1024
_MARKS = 16
"""A checksum is of so many pieces of that length: the first, the last, and others between them at equal distances."""
_WHOLE_BYTES = 1 << 20
"""Up to so many bytes it is of all of them: that takes less than a millisecond, and a job makes several per batch."""
_SCAN_BYTES = 1 << 16


@dataclass(frozen=True)
class FileState:
    """A file as it was when somebody looked."""

    path: str
    size: int
    modified: int
    """In nanoseconds."""

    def check(self, end: int = 0, mark: int = 0, system: FileSystem = LOCAL) -> None:
        """Raises if the file is gone, or is another one now. One that has only grown is still the same: what stands
        before ``end`` has the checksum ``mark`` as before."""
        found = system.info(self.path)
        if found is None:
            raise gone(self.path)
        if self.compare(found) and end and not self.matches(end, mark, system):
            raise changed(self.path, "it was replaced by another one")

    def compare(self, found: FileInfo) -> bool:
        """Returns whether the file has grown. Raises if it was changed otherwise."""
        if found.size < self.size:
            raise changed(self.path, f"it had {self.size} bytes and has {found.size} now")
        grown = found.size > self.size and codec_of(self.path) is None
        if not grown and (found.size, found.modified) != (self.size, self.modified):
            raise changed(self.path, "it was written to after the job had looked at it")
        return grown

    def mark(self, end: int, system: FileSystem = LOCAL) -> int:
        """A checksum of what stands before a place of the file, or of all of a compressed one."""
        end = self._marked(end)
        return self._checksum([(0, end)] if end <= _WHOLE_BYTES else _samples(end), system)

    def _marked(self, end: int) -> int:
        return self.size if codec_of(self.path) else end

    def matches(self, end: int, mark: int, system: FileSystem = LOCAL) -> bool:
        """Whether a checksum that was made earlier still holds. At first, one was of the last piece only, and then of
        samples wherever there was room for them."""
        if mark == self.mark(end, system):
            return True
        marked = self._marked(end)
        if _MARKS * _MARK_BYTES < marked <= _WHOLE_BYTES and mark == self._checksum(_samples(marked), system):
            return True
        return codec_of(self.path) is None and mark == self._checksum([(max(0, end - _MARK_BYTES), end)], system)

    def is_same(self, end: int, mark: int, system: FileSystem = LOCAL) -> bool:
        """Whether a checksum holds and leaves nothing out."""
        return self._marked(end) <= _WHOLE_BYTES and mark == self.mark(end, system)

    def _checksum(self, pieces: list[tuple[int, int]], system: FileSystem) -> int:
        found = 0
        with _unbuffered(self.path, system) as file:
            for start, end in pieces:
                file.seek(start)
                content = file.read(end - start)
                if len(content) < end - start:
                    raise changed(self.path, "it has become shorter")
                found = zlib.crc32(content, found)
        return found

    def has_line_end(self, low: int, high: int, system: FileSystem = LOCAL) -> bool:
        with _unbuffered(self.path, system) as file:
            file.seek(low)
            return any(b"\n" in file.read(min(_SCAN_BYTES, high - at)) for at in range(low, high, _SCAN_BYTES))


def _samples(end: int) -> list[tuple[int, int]]:
    step = (end - _MARK_BYTES) / (_MARKS - 1)
    starts = [round(n * step) for n in range(_MARKS)]
    return [(start, start + _MARK_BYTES) for start in starts]


def _unbuffered(path: str, system: FileSystem) -> IO[bytes]:
    """For small pieces here and there."""
    return cast("IO[bytes]", open(path, "rb", buffering=0)) if system is LOCAL else system.open_input(path)


class Entry(NamedTuple):
    """How far one file was read. Of a compressed file the offset counts what it holds, the size what it takes."""

    offset: int
    size: int
    modified: int
    mark: int
    done: bool = False


class TextPosition:
    """A position, seen from a source that has these files now, by their paths."""

    def __init__(self, entries: dict[str, Entry], files: Mapping[str, FileState], system: FileSystem = LOCAL) -> None:
        self.entries = entries
        self._files = files
        self._system = system

    @staticmethod
    def of(position: Any, files: Mapping[str, FileState], system: FileSystem = LOCAL) -> TextPosition:
        if isinstance(position, int):
            return TextPosition(_of_number(position, files), files, system)
        entries: dict[str, Entry] = {}
        for path, found in position.items():
            if isinstance(found, dict):
                entries.update((path + name, _finished(*one)) for name, one in found.items())
            else:
                # Earlier, finished files were marked by a fifth value.
                entries[path] = Entry(*found)
        return TextPosition(entries, files, system)

    def to_json(self) -> Position:
        found: Position = {}
        for path, entry in self.entries.items():
            if entry.done:
                folder, slash, name = path.rpartition("/")
                reached = [entry.offset] if codec_of(path) else []
                found.setdefault(folder + slash, {})[name] = [entry.size, entry.modified, entry.mark, *reached]
            else:
                found[path] = list(entry[:-1])
        return found

    @cached_property
    def finished(self) -> bool:
        """Whether nothing is left to read."""
        return next(self.left(), None) is None

    def left(self) -> Iterator[tuple[FileState, Entry]]:
        """The files that have something left to read, with what is known of them. Raises if one was changed."""
        for path, file in self._files.items():
            entry = self.entries.get(path)
            if entry is None:
                yield file, Entry(0, file.size, file.modified, 0, False)
            elif file.size == entry.size:
                if file.modified != entry.modified:
                    self._recognise(file, entry)
                if not entry.done:
                    yield file, entry
            elif _has_grown(file, entry, self._system):
                yield file, entry
        for path, entry in self.entries.items():
            if not entry.done and path not in self._files:
                raise gone(path)

    def since(self, start: TextPosition) -> list[tuple[FileState, int, int, int]]:
        """What lies between an earlier position and this one, in the order of the files' names, and the checksum
        before its end."""
        found = []
        for path, entry in self.entries.items():
            before = start.entries.get(path)
            low = before.offset if before is not None else 0
            if entry.offset > low:
                file = self._files.get(path)
                if file is None or file.size != entry.size:
                    file = FileState(path, entry.size, entry.modified)
                elif file.modified != entry.modified:
                    self._recognise(file, entry)
                found.append((file, low, entry.offset, entry.mark))
        return sorted(found, key=lambda one: one[0].path)

    def _recognise(self, file: FileState, entry: Entry) -> None:
        """A file that has another modification time, but is as long as it was: copied once more, or put back. Raises if
        it is another one, or may be."""
        if not file.is_same(entry.offset, entry.mark, self._system):
            if not file.matches(entry.offset, entry.mark, self._system):
                raise other(file.path)
            raise perhaps_other(file.path, entry.modified)
        # So it is looked at only once.
        self.entries[file.path] = entry._replace(modified=file.modified)


def _finished(size: int, modified: int, mark: int, offset: int | None = None) -> Entry:
    return Entry(size if offset is None else offset, size, modified, mark, True)


def _has_grown(file: FileState, entry: Entry, system: FileSystem) -> bool:
    """Whether a file of another size has only got longer. Raises if it was changed otherwise."""
    path = file.path
    if file.size < entry.size:
        raise changed(path, f"it had {entry.size} bytes when the job's position was saved and has {file.size} now")
    if codec_of(path) is not None or not file.matches(entry.offset, entry.mark, system):
        raise other(path)
    # The line that the position lies in was read to its end, which was that of the file if no other came before.
    if not file.has_line_end(entry.offset - 1, entry.size, system):
        raise changed(path, "something was added to its last line, which was read without it")
    return True


def _of_number(position: int, files: Mapping[str, FileState]) -> dict[str, Entry]:
    """A position of version 0.1 and before, which counted the bytes of all files in a row."""
    if position == 0:
        return {}
    file = next(iter(files.values()), None)
    if file is not None and len(files) == 1 and position <= file.size:
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


def other(path: str) -> InputError:
    return changed(path, "it is not the file that was read when the job's position was saved")


def perhaps_other(path: str, modified: int) -> InputError:
    """Of a file that is too long for a checksum of all of it."""
    seconds, nanos = divmod(modified, 10**9)
    advice = (
        ""
        if is_remote(path)
        else f" If it is the same, set its time back: touch -d @{seconds}.{nanos:09} {shlex.quote(path)}"
    )
    return changed(
        path,
        "its modification time is another one than that of the file that was read, and it is too long to tell a copy "
        f"from an edit of the same length.{advice}",
    )


def gone(path: str) -> InputError:
    return InputError(
        f"The file {path} is gone, and the job has not read all of it. Put it back to go on, or start the job without "
        "its checkpoint or savepoint."
    )
