"""Delimited records in a file: what came over a line that cannot be read twice."""

from __future__ import annotations

import bisect
import itertools
import os

from firesteel.common.private_files import make_private_folder
from firesteel.durable.versions import RECORD_LOG

__all__ = ["DurableFile", "RecordLog"]

_SCAN_BYTES = 1 << 20
_VERSION = b"format "
"""How the first line of ``socket.cuts`` begins where it says its version. Version 1 says none."""


class DurableFile:
    """A file that grows by whole pieces: a piece is on the disk when ``append`` returns, or not in the file at all.

    A disk that is full takes a part of what is written before it says so. That part is taken back.

    >>> import tempfile
    >>> file = DurableFile(os.path.join(tempfile.mkdtemp(), "pieces"))
    >>> file.append(b"one"), file.append(b"two"), file.size, file.content()
    (None, None, 6, b'onetwo')
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self._descriptor).st_size
        self._torn = False
        """Whether there may be a part of a piece behind ``size``."""

    def append(self, data: bytes) -> None:
        if self._torn:
            self.cut_back(self.size)
        self._torn = True
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except OSError:
            self.cut_back(self.size)
            raise
        self.size += len(data)
        self._torn = False

    def cut_back(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        self.size = size
        self._torn = False

    def content(self) -> bytes:
        return os.pread(self._descriptor, self.size, 0)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RecordLog:
    """Bytes as they came, synced to disk before they count. A position is a number of bytes, always at a record's end.

    A record ends with the delimiter, or where the line broke: such *cuts* are kept in a file of their own, because a
    delimiter written in their place could be read as part of the record before it. Delimiters are found from a record's
    start on, left to right, however the bytes are cut into pieces.

    >>> import tempfile
    >>> log = RecordLog(tempfile.mkdtemp(), b"aa")
    >>> for piece in (b"xa", b"aay", b"aa", b"za"):
    ...     log.append(piece)
    >>> log.records(0, log.complete)
    [b'x', b'ay']
    >>> log.cut()
    >>> log.records(0, log.complete)
    [b'x', b'ay', b'za']
    """

    def __init__(self, directory: str, delimiter: bytes) -> None:
        make_private_folder(directory)
        self._delimiter = delimiter
        self.path = os.path.join(directory, "socket.log")
        self._file = DurableFile(self.path)
        self._cuts_file = DurableFile(os.path.join(directory, "socket.cuts"))
        size = self._file.size
        # A line without its end was being written when the last run ended.
        *whole, rest = self._cuts_file.content().split(b"\n")
        if whole and whole[0].startswith(_VERSION):
            # The cuts of a later version begin with it. Before anything is cut off: they may mean something else.
            version = whole.pop(0).removeprefix(_VERSION)
            RECORD_LOG.check(int(version) if version.isdigit() else version, directory)
        self._cuts = [int(line) for line in whole]
        self._cuts_file.cut_back(self._cuts_file.size - len(rest))
        self._tail = b""
        """What of an unfinished record may be the beginning of a delimiter."""
        self.durable = self.complete = self._cuts[-1] if self._cuts else 0
        """``durable``: bytes that a restart would find. ``complete``: those of them in records that have ended."""
        while self.durable < size:
            self._advance(self._read(self.durable, min(size, self.durable + _SCAN_BYTES)))

    def append(self, data: bytes) -> None:
        """Adds all of it, or raises an OSError and adds nothing."""
        self._file.append(data)
        self._advance(data)

    def _advance(self, data: bytes) -> None:
        self.durable += len(data)
        first, *others = (self._tail + data).split(self._delimiter)
        rest = others[-1] if others else first
        if others:
            self.complete = self.durable - len(rest)
        self._tail = rest[max(0, len(rest) - len(self._delimiter) + 1) :]

    def cut(self) -> None:
        """Ends the record that the log stands in, if there is one."""
        if self.durable > self.complete:
            self._cuts_file.append(b"%d\n" % self.durable)
            self._cuts.append(self.durable)
            self._tail = b""
            self.complete = self.durable

    def close(self) -> None:
        self._file.close()
        self._cuts_file.close()

    def _read(self, start: int, end: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(end - start)

    def records(self, start: int, end: int) -> list[bytes]:
        """The records between two positions."""
        found: list[bytes] = []
        for segment in self._segments(start, end):
            pieces = segment.split(self._delimiter)
            # Behind the last delimiter there is nothing, unless the segment ends with a cut.
            found += pieces if pieces[-1] else pieces[:-1]
        return found

    def _segments(self, start: int, end: int) -> list[bytes]:
        """The bytes between two places, parted at the cuts between them."""
        content = self._read(start, end)
        inner = self._cuts[bisect.bisect_right(self._cuts, start) : bisect.bisect_left(self._cuts, end)]
        borders = [start, *inner, end]
        return [content[low - start : high - start] for low, high in itertools.pairwise(borders)]

    def last_end(self, start: int, end: int) -> int | None:
        """The last record's end that lies behind ``start`` and not behind ``end``."""
        *_, last = self._segments(start, end)
        rest = last.split(self._delimiter)[-1]
        if not rest or end in self._cuts:
            return end
        found = end - len(rest)
        return found if found > start else None

    def first_end(self, start: int, clear: int) -> int:
        """The first record's end behind ``start``, where one is known to be, and known not to be before ``clear``."""
        cut = bisect.bisect_right(self._cuts, start)
        limit = self._cuts[cut] if cut < len(self._cuts) else self.complete
        # A delimiter may begin before what is clear, and may lie across two pieces.
        overlap = len(self._delimiter) - 1
        for at in range(max(start, clear - overlap), limit, _SCAN_BYTES):
            found = self._read(at, min(limit, at + _SCAN_BYTES + overlap)).find(self._delimiter)
            if found >= 0:
                return at + found + len(self._delimiter)
        return limit
