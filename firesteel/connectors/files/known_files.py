"""Which files a source has begun, and which are still to come: those that were there at first, or a watched folder.

Both keep a *record* in the source's position. Its size matters, for it is logged with every batch.
"""

from __future__ import annotations

import base64
import bisect
import hashlib
import logging
import time
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.connectors.files.listing import PathPattern, listed, matches
from firesteel.connectors.text_positions import changed
from firesteel.errors import InputError
from firesteel.filesystems import FileInfo, StorageOptions, file_system_of

__all__ = ["FileSet", "MonitoredFiles", "StaticFiles"]

logger = logging.getLogger("firesteel.connectors.files")

NAMED = 64
"""So many names of files that are still to be read are in the record of a static set."""
_SHOWN = 3
_CHUNK_ENTRIES = 4096
_ENTRY_BYTES = 12
_ENTRY_CHARS = 16
"""Twelve bytes in base64."""


class FileSet(ABC):
    """The files of a source, in the order in which they are read."""

    bounded: bool

    @abstractmethod
    def first(self) -> Any:
        """The record before any file was begun."""

    @abstractmethod
    def pending(self, record: Any) -> Iterator[FileInfo]:
        """The files that have not been begun."""

    @abstractmethod
    def begun(self, record: Any, files: Sequence[FileInfo]) -> Any:
        """The record after these have been begun, which were the first ones of ``pending``."""

    @abstractmethod
    def exhausted(self, record: Any) -> bool:
        """Whether no file will come any more."""

    def within(self, size: int) -> bool:
        """Whether it is known to have no more bytes than that."""
        return False


class StaticFiles(FileSet):
    """The files that were there when the program was built, in the order of their names.

    So the name of the last one that was begun tells which ones have been: the record does not grow with their number.
    A program that is built anew, to go on, lists anew. Files that are newer than the newest of the first list do not
    belong to it; how many of the others are left must be the same. The record has the names of those that come next,
    for an error that names the one that is missing.
    """

    bounded = True

    def __init__(self, files: Sequence[FileInfo]) -> None:
        self._files = tuple(files)
        self._left: tuple[FileInfo, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_files": self._files, "_left": None}

    def first(self) -> dict[str, Any]:
        newest = max((file.modified for file in self._files), default=0)
        return {"after": "", "left": len(self._files), "newest": newest, "next": _names(self._files[:NAMED])}

    def within(self, size: int) -> bool:
        return sum(file.size for file in self._files) <= size

    def pending(self, record: dict[str, Any]) -> Iterator[FileInfo]:
        if self._left is None:
            self._left = self._found_again(record)
        left = self._left
        begin = bisect.bisect_right(left, record["after"], key=lambda file: file.path)
        return (left[number] for number in range(begin, len(left)))

    def _found_again(self, record: dict[str, Any]) -> tuple[FileInfo, ...]:
        behind = [file for file in self._files if file.path > record["after"]]
        found = tuple(file for file in behind if file.modified <= record["newest"])
        there = {file.path for file in found}
        prefix, names = record.get("next", ("", ()))
        missing = [prefix + name for name in names if prefix + name not in there]
        others = max(0, record["left"] - len(found) - len(missing))
        if not missing and not others:
            return found
        after = f" behind {record['after']}" if record["after"] else ""
        newer = {file.path for file in behind}
        what = [f"{path} {'was changed' if path in newer else 'is gone'}" for path in missing[:_SHOWN]]
        if others + len(missing) > len(what):
            what.append(f"{others + len(missing) - len(what)}{' more' if what else ''} are gone or were changed")
        raise InputError(
            f"The job had {record['left']} files left to read{after}: {', '.join(what)}. Put them back as they were to "
            "go on, or start the job without its checkpoint or savepoint."
        )

    def begun(self, record: dict[str, Any], files: Sequence[FileInfo]) -> dict[str, Any]:
        if not files:
            return record
        after = files[-1].path
        assert self._left is not None
        begin = bisect.bisect_right(self._left, after, key=lambda file: file.path)
        names = _names(self._left[begin : begin + NAMED])
        return {"after": after, "left": len(self._left) - begin, "newest": record["newest"], "next": names}

    def exhausted(self, record: dict[str, Any]) -> bool:
        return bool(record["left"] == 0)


class MonitoredFiles(FileSet):
    """The files of folders that are looked at again and again, the oldest first.

    A file is read once, so all that were begun have to be known: twelve bytes each, a hash of the path and a checksum
    of the size. With a ``retention`` files that are so much older than the newest one are forgotten, and no new ones of
    that age are read.
    """

    bounded = False
    _pattern: PathPattern | None = None
    """Sets that were stored before there were patterns have none of their own."""

    def __init__(
        self,
        paths: Sequence[str],
        options: StorageOptions | None,
        interval: float,
        retention: int | None,
        pattern: PathPattern | None = None,
    ) -> None:
        self._paths, self._options, self._pattern = tuple(paths), options, pattern
        self._interval, self._retention = interval, retention
        self._start()

    def _start(self) -> None:
        self._seen: dict[bytes, bytes] = {}
        self._seen_of: list[list[Any]] = []
        """The chunks that it was made of."""
        self._pending: deque[FileInfo] = deque()
        self._asked: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_paths", "_options", "_interval", "_retention", "_pattern")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def first(self) -> dict[str, Any]:
        return {"seen": [], "newest": 0}

    def exhausted(self, record: dict[str, Any]) -> bool:
        return False

    def pending(self, record: dict[str, Any]) -> Iterator[FileInfo]:
        self._learn(record["seen"])
        now = time.monotonic()
        if self._asked is None or now - self._asked >= self._interval:
            self._discover(record)
            self._asked = time.monotonic()
        while self._pending and _hash(self._pending[0].path) in self._seen:
            self._pending.popleft()
        return iter(self._pending)

    def _learn(self, chunks: list[list[Any]]) -> None:
        """What was seen before the position that is asked for. Positions only move on, by an entry or a chunk at a
        time, so little is new as a rule."""
        old = self._seen_of
        if chunks == old:
            return
        same = len(old) - 1
        goes_on = old and chunks[:same] == old[:same] and len(chunks) > same
        if goes_on and chunks[same][0].startswith(old[same][0]):
            rest = chunks[same][0][len(old[same][0]) :]
            added = [rest, *(chunk[0] for chunk in chunks[same + 1 :])]
        else:
            self._seen, added = {}, [chunk[0] for chunk in chunks]
        for text in added:
            content = base64.b64decode(text)
            for at in range(0, len(content), _ENTRY_BYTES):
                self._seen[content[at : at + 8]] = content[at + 8 : at + _ENTRY_BYTES]
        self._seen_of = chunks

    def _discover(self, record: dict[str, Any]) -> None:
        horizon = self._horizon(record["newest"])
        found: dict[str, FileInfo] = {}
        for path in self._paths:
            for file in listed(path, file_system_of(path, self._options)):
                if not matches(file.path, self._pattern):
                    continue
                known = self._seen.get(_hash(file.path))
                if known is None:
                    if file.modified >= horizon:
                        found[file.path] = file
                elif known != _size_mark(file.size):
                    raise changed(
                        file.path,
                        "it was read before and has another size now. A folder that is monitored takes new files, each "
                        "of them complete when it appears under its name",
                    )
        for file in self._pending:
            if file.path not in found and _hash(file.path) not in self._seen:
                logger.warning("%s was taken away before it was read", file.path)
        self._pending = deque(sorted(found.values(), key=lambda file: (file.modified, file.path)))

    def _horizon(self, newest: int) -> int:
        return newest - self._retention if self._retention is not None else 0

    def begun(self, record: dict[str, Any], files: Sequence[FileInfo]) -> dict[str, Any]:
        if not files:
            return record
        newest = max(record["newest"], *(file.modified for file in files))
        horizon = self._horizon(newest)
        chunks = [chunk for chunk in record["seen"] if chunk[1] >= horizon]
        rest = deque(files)
        while rest:
            if not chunks or len(chunks[-1][0]) >= _CHUNK_ENTRIES * _ENTRY_CHARS:
                chunks.append(["", 0])
            text, modified = chunks[-1]
            room = _CHUNK_ENTRIES - len(text) // _ENTRY_CHARS
            added = [rest.popleft() for _ in range(min(room, len(rest)))]
            entries = b"".join(_hash(file.path) + _size_mark(file.size) for file in added)
            # Twelve bytes leave no rest in base64, so texts can be put together.
            text += base64.b64encode(entries).decode()
            chunks[-1] = [text, max(modified, *(file.modified for file in added))]
        return {"seen": chunks, "newest": newest}


def _names(files: Sequence[FileInfo]) -> list[Any]:
    """The paths, as the folder of the first and, where they are below it, the rest of each."""
    if not files:
        return ["", []]
    folder = files[0].path.rpartition("/")[0] + "/"
    inside = all(file.path.startswith(folder) for file in files)
    return [folder if inside else "", [file.path.removeprefix(folder) if inside else file.path for file in files]]


def _hash(path: str) -> bytes:
    return hashlib.blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).digest()


def _size_mark(size: int) -> bytes:
    return zlib.crc32(str(size).encode()).to_bytes(4, "big")
