"""Plans which parts of which files each batch reads.

A position says how many batches were planned, what the last one of them reads (its *pieces*), the file in which it
ends, if it ends inside of one, and which files were begun before (:mod:`.known_files`). So what a batch reads follows
from its two positions alone, without a look at the folder; and planning one costs what it reads, however many files
were read before. Files are read one after the other, so there is one at most that was begun and is not finished.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from firesteel.connectors.blocks import blocks
from firesteel.connectors.files.file_format import END, FileFormat, FormatPlanner, InputFile, Reach
from firesteel.connectors.files.known_files import FileSet
from firesteel.connectors.source import SplitEnumerator, SplitRange
from firesteel.durable.versions import FILE_POSITION
from firesteel.errors import CheckpointError
from firesteel.filesystems import FileInfo, StorageOptions

__all__ = ["FileEnumerator", "Piece"]

SMALL_FILE = 4 << 20
"""Files up to this size are not looked into when a batch is planned that has room for all of it."""
MAX_FILES = 2048
"""Files of a batch at most: they are all in its position."""
UNLIMITED = 1 << 40
"""Whoever asks for more records than that wants all there are, in one batch."""


class Piece(NamedTuple):
    """A part of a file that one batch reads, as it stands in a position."""

    path: str
    size: int
    modified: int
    mark: int | None
    start: int
    end: int
    weight: int
    """About how many bytes it is."""

    def file(self, options: StorageOptions | None) -> InputFile:
        return InputFile(self.path, self.size, self.modified, self.mark, options)


Range = SplitRange[Piece]
Position = dict[str, Any]


class FileEnumerator(SplitEnumerator[Piece]):
    """Plans batches of files of any format."""

    def __init__(
        self, files: FileSet, form: FileFormat[Any], options: StorageOptions | None = None, split_files: bool = True
    ) -> None:
        self._files, self._format, self._options = files, form, options
        self._split_files = split_files
        self.bounded = files.bounded
        self._planner: FormatPlanner | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What it holds open belongs to the process that plans.
        return {**self.__dict__, "_planner": None}

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()

    def ends_within(self, records: int) -> bool:
        return self._files.within(records * self._format.bytes_per_record)

    def initial(self) -> None:
        return None

    # How far a batch reads

    def latest(self, position: Position | None, max_records: int) -> Position:
        _check(position)
        known = position["known"] if position else self._files.first()
        pieces: list[Piece] = []
        begun: list[FileInfo] = []
        left, room, read = None, max_records, 0
        for file, place in self._unfinished(position, known):
            if room <= 0 or (len(pieces) >= MAX_FILES and max_records < UNLIMITED):
                break
            if place == 0:
                begun.append(FileInfo(file.path, file.size, file.modified))
            reach = self._reach(file, place, room)
            mark = None if reach.done else self._mark(file, reach.place)
            pieces.append(Piece(file.path, file.size, file.modified, mark, place, reach.place, max(1, reach.size)))
            room -= max(1, reach.records)
            read += max(1, reach.records)
            if not reach.done:
                left = [file.path, file.size, file.modified, mark, reach.place]
                break
        if not pieces and position is not None:
            return position
        before = position or {"at": 0, "bytes": 0, "records": 0}
        return {
            "format": FILE_POSITION.version,
            "at": before["at"] + 1,
            "bytes": before["bytes"] + sum(piece.weight for piece in pieces),
            "records": before["records"] + read,
            "known": self._files.begun(known, begun),
            "open": left,
            "pieces": [list(piece) for piece in pieces],
        }

    def _unfinished(self, position: Position | None, known: Any) -> Iterator[tuple[InputFile, int]]:
        """The file in which the last batch ended, and then those that were not begun."""
        if position is not None and position["open"] is not None:
            path, size, modified, mark, place = position["open"]
            file = InputFile(path, size, modified, mark, self._options)
            file.check(place if self._format.appendable else None)
            yield file, place
        for one in self._files.pending(known):
            yield InputFile(*one, mark=None, options=self._options), 0

    def _reach(self, file: InputFile, place: int, room: int) -> Reach:
        if self._planner is None:
            self._planner = self._format.create_planner()
        if place == 0 and self._planner.opens(file):
            estimate = -(-file.size // self._format.bytes_per_record)
            small = file.size <= SMALL_FILE and estimate <= room
            if small or (room >= UNLIMITED and not self._splits(file.path)):
                return Reach(END, estimate, file.size, True)
        return self._planner.advance(file, place, room)

    def _mark(self, file: InputFile, place: int) -> int:
        if self._format.appendable and file.compression is None:
            return file.state.mark(place, file.system)
        # It must not change at all, so what is known of it holds.
        return file.mark if file.mark is not None else file.state.mark(file.size, file.system)

    def ended(self, position: Position | None) -> bool:
        return position is not None and position["open"] is None and self._files.exhausted(position["known"])

    def count(self, start: Position | None, end: Position | None) -> int:
        return _total(end, "records") - _total(start, "records")

    def size(self, start: Position | None, end: Position | None) -> int:
        return _total(end, "bytes") - _total(start, "bytes")

    # Who reads what of it

    def plan(self, start: Position | None, end: Position | None, parallelism: int) -> list[list[Range]]:
        if _total(start, "at") == _total(end, "at"):
            return [[] for _ in range(parallelism)]
        if end is None or _total(start, "at") + 1 != end["at"]:
            raise CheckpointError(
                f"A file source is at step {_total(start, 'at')} and should read what step {_total(end, 'at')} says. "
                "The log of the job's checkpoint has a gap."
            )
        _check(end)
        pieces = [Piece(*piece) for piece in end["pieces"]]
        total = sum(piece.weight for piece in pieces)
        # All pieces in a row, cut into blocks of equal size, one for each subtask.
        return [list(self._cut(pieces, *block)) if block else [] for block in blocks(0, total, parallelism)]

    def _cut(self, pieces: list[Piece], low: int, high: int) -> Iterator[Range]:
        """What lies in a block. What cannot be cut belongs to the block in which it begins."""
        firsts = itertools.accumulate((piece.weight for piece in pieces), initial=0)
        for piece, first in zip(pieces, firsts, strict=False):
            last = first + piece.weight
            if piece.end == END or not self._splits(piece.path):
                if low <= first < high:
                    yield SplitRange(piece, piece.start, piece.end)
            elif first < high and last > low:
                length = piece.end - piece.start
                begin = piece.start + length * (max(low, first) - first) // piece.weight
                end = piece.start + length * (min(high, last) - first) // piece.weight
                # What a checksum of a file that may grow is of ends with the piece.
                kept = end == piece.end or not self._format.appendable
                if begin < end:
                    yield SplitRange(piece if kept else piece._replace(mark=None), begin, end)

    def _splits(self, path: str) -> bool:
        return self._split_files and self._format.splits(path)


def _check(position: Position | None) -> None:
    """A position may come from a checkpoint or savepoint of another version."""
    if position is not None:
        FILE_POSITION.check(position.get("format"))


def _total(position: Position | None, what: str) -> int:
    return int(position[what]) if position is not None else 0
