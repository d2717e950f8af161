"""Delimited records in a file: what came over a line that cannot be read twice."""

from __future__ import annotations

import bisect
import itertools
import os
from typing import IO

from firesteel.common.private_files import make_private_folder

__all__ = ["RecordLog"]

_SCAN_BYTES = 1 << 20


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
        self._path = os.path.join(directory, "socket.log")
        self._file: IO[bytes] = open(self._path, "ab")  # noqa: SIM115 - closed by close()
        self._cuts_file: IO[str] = open(os.path.join(directory, "socket.cuts"), "a+")  # noqa: SIM115
        self._cuts_file.seek(0)
        self._cuts = [int(line) for line in self._cuts_file.read().splitlines()]
        self._tail = b""
        """What of an unfinished record may be the beginning of a delimiter."""
        size = os.path.getsize(self._path)
        self.durable = self.complete = self._cuts[-1] if self._cuts else 0
        """``durable``: bytes that a restart would find. ``complete``: those of them in records that have ended."""
        while self.durable < size:
            self._advance(self._read(self.durable, min(size, self.durable + _SCAN_BYTES)))

    def append(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
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
            self._cuts_file.write(f"{self.durable}\n")
            self._cuts_file.flush()
            os.fsync(self._cuts_file.fileno())
            self._cuts.append(self.durable)
            self._tail = b""
            self.complete = self.durable

    def close(self) -> None:
        self._file.close()
        self._cuts_file.close()

    def _read(self, start: int, end: int) -> bytes:
        with open(self._path, "rb") as file:
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
