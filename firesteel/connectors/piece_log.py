"""A log of records that cannot be read twice where they came from: polled, or taken from a queue.

    <directory>/00000000000000000000.log      records from number 0 on
    <directory>/00000000000000041250.log      records from number 41250 on, and so on

A *piece* is what came at once: some records, and the cursor from which the system goes on behind them. It is on the
disk, whole and with a checksum, when ``append`` returns. Files whose records nobody will ask for again are removed.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import pickle
import struct
import threading
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from firesteel.common.private_files import make_private_folder
from firesteel.connectors.record_log import DurableFile
from firesteel.durable.versions import PIECE_LOG
from firesteel.errors import CheckpointError

__all__ = ["Part", "PieceLog", "records_of"]

SEGMENT_BYTES = 16 << 20
"""A file that has so many is followed by a new one."""

_HEADER = struct.Struct(">4sIII")
"""A mark, the length of the content, its checksum, the number of records."""
_NAME = b"fsp"
_MARK = _NAME + b"%d" % PIECE_LOG.version


@dataclass(frozen=True)
class _Piece:
    first: int
    count: int
    path: str
    at: int
    length: int
    checksum: int


Part = bytes | list[Any]
"""A piece as it is in the log, or some of its records."""


def records_of(part: Part) -> list[Any]:
    """The records of a piece, or of a part of one."""
    if isinstance(part, list):
        return part
    _, records = pickle.loads(part)
    found: list[Any] = records
    return found


class PieceLog:
    """Pieces in the order in which they came. A position is a number of records.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> log = PieceLog(folder)
    >>> log.append(["a", "b"], cursor=7), log.append(["c"], cursor=9)
    (None, None)
    >>> log.close()
    >>> log = PieceLog(folder)
    >>> log.end, log.cursor, log.records(1, 3)
    (3, 9, ['b', 'c'])
    """

    def __init__(self, directory: str) -> None:
        make_private_folder(directory)
        self.directory = directory
        # One thread appends while another one reads and forgets.
        self._lock = threading.Lock()
        self._pieces: list[_Piece] = []
        self._firsts: list[int] = []
        self.end = self.begin = 0
        """The records that are there: from ``begin`` up to, and not including, ``end``."""
        self.cursor: Any = None
        """The cursor of the last piece."""
        self._file: DurableFile | None = None
        self._path = ""
        self._read_segments()

    @property
    def empty(self) -> bool:
        """Whether nothing was ever appended."""
        return not self._pieces

    def _read_segments(self) -> None:
        names = sorted(name for name in os.listdir(self.directory) if name.endswith(".log"))
        for name in names:
            first = int(name.removesuffix(".log"))
            if name != names[0] and first != self.end:
                raise self._damaged(name)
            if name == names[0]:
                self.begin = self.end = first
            self._open(os.path.join(self.directory, name))
            assert self._file is not None
            whole = self._read_pieces(self._path, self._file.size)
            if whole < self._file.size:
                if name != names[-1]:
                    raise self._damaged(name)
                # What was being written when the last run ended, or while it was copied.
                self._file.cut_back(whole)
        if self._pieces:
            self.cursor, _ = pickle.loads(self._bytes(self._pieces[-1]))

    def _read_pieces(self, path: str, size: int) -> int:
        """Where the last whole piece of a file ends."""
        at = 0
        with open(path, "rb") as file:
            while at < size:
                file.seek(at)
                header = file.read(_HEADER.size)
                self._check_mark(header[: len(_MARK)], path)
                if len(header) < _HEADER.size:
                    break
                mark, length, checksum, count = _HEADER.unpack(header)
                end = at + _HEADER.size + length
                # No piece is empty: zeros behind a mark are what did not reach the disk.
                if mark != _MARK or not length or end > size:
                    break
                # A file may be longer than what reached the disk: only the last piece can be concerned.
                if end == size and zlib.crc32(file.read(length)) != checksum:
                    break
                self._add(_Piece(self.end, count, path, at + _HEADER.size, length, checksum))
                at = end
        return at

    def _check_mark(self, mark: bytes, path: str) -> None:
        """Refuses what is no piece of this version, before anything is cut off. A piece that was being written has the
        beginning of a mark, then nothing, or zeros where the file had grown already."""
        if _MARK.startswith(mark.rstrip(b"\0")):
            return
        version = mark.removeprefix(_NAME)
        if mark.startswith(_NAME) and version.isdigit():
            PIECE_LOG.check(int(version), path)
        raise self._damaged(os.path.basename(path))

    def _add(self, piece: _Piece) -> None:
        with self._lock:
            self._pieces.append(piece)
            self._firsts.append(piece.first)
            self.end = piece.first + piece.count

    def _damaged(self, name: str) -> CheckpointError:
        return CheckpointError(
            f"The log of received records, {os.path.join(self.directory, name)}, is damaged or incomplete. What is in "
            "it cannot be received again: put the file back to go on, or start the job without its checkpoint or "
            "savepoint."
        )

    def _open(self, path: str) -> None:
        self.close()
        self._file, self._path = DurableFile(path), path

    def append(self, records: list[Any], cursor: Any) -> None:
        """Adds a piece, or raises an OSError and adds nothing."""
        if self._file is None or self._file.size >= SEGMENT_BYTES:
            self._open(os.path.join(self.directory, f"{self.end:020d}.log"))
        assert self._file is not None
        content = pickle.dumps((cursor, records), protocol=5)
        checksum = zlib.crc32(content)
        at = self._file.size
        self._file.append(_HEADER.pack(_MARK, len(content), checksum, len(records)) + content)
        self._add(_Piece(self.end, len(records), self._path, at + _HEADER.size, len(content), checksum))
        self.cursor = cursor

    def _bytes(self, piece: _Piece) -> bytes:
        try:
            with open(piece.path, "rb") as file:
                file.seek(piece.at)
                content = file.read(piece.length)
        except FileNotFoundError:
            content = b""
        if zlib.crc32(content) != piece.checksum:
            raise self._damaged(os.path.basename(piece.path))
        return content

    def shares(self, ranges: Iterable[tuple[int, int]]) -> list[list[Part]]:
        """What lies in each of some ranges, one behind the other. Pieces stay as they are in the log: to make records
        of them is left to those who read. Only where a piece belongs to several ranges are its records parted."""
        cut: dict[int, list[Any]] = {}
        return [[self._part(piece, start, end, cut) for piece in self._between(start, end)] for start, end in ranges]

    def _part(self, piece: _Piece, start: int, end: int, cut: dict[int, list[Any]]) -> Part:
        if piece.first >= start and piece.first + piece.count <= end:
            return self._bytes(piece)
        if piece.first not in cut:
            cut[piece.first] = records_of(self._bytes(piece))
        return cut[piece.first][max(0, start - piece.first) : end - piece.first]

    def _between(self, start: int, end: int) -> list[_Piece]:
        if start >= end:
            return []
        if start < self.begin:
            raise self._damaged(f"{self.begin:020d}.log")
        with self._lock:
            low = max(0, bisect.bisect_right(self._firsts, start) - 1)
            high = bisect.bisect_left(self._firsts, end)
            return [piece for piece in self._pieces[low:high] if piece.count]

    def records(self, start: int, end: int) -> list[Any]:
        """The records between two positions."""
        (share,) = self.shares([(start, end)])
        return [record for part in share for record in records_of(part)]

    def size(self, start: int, end: int) -> int:
        """About how many bytes lie between two positions."""
        return sum(
            piece.length * (min(end, piece.first + piece.count) - max(start, piece.first)) // piece.count
            for piece in self._between(start, end)
        )

    def forget(self, position: int) -> None:
        """Removes files all of whose records lie before a position."""
        with self._lock:
            if not self._pieces or position < self.begin:
                return
            last = self._pieces[bisect.bisect_right(self._firsts, position) - 1]
            gone = {piece.path for piece in self._pieces if piece.path < last.path}
            if gone:
                self._pieces = [piece for piece in self._pieces if piece.path not in gone]
                self._firsts = [piece.first for piece in self._pieces]
                self.begin = self._firsts[0]
        for path in sorted(gone):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
