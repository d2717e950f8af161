"""Reads records one after the other, and finds places by counting them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

from firesteel.connectors.compressed import damaged
from firesteel.connectors.files.file_format import END, FormatPlanner, FormatReader, InputFile, Reach, T
from firesteel.connectors.source import CHUNK_RECORDS, Records
from firesteel.connectors.text_positions import changed

__all__ = ["RecordReader", "RecordsAhead"]

ReadRecords = Callable[[IO[bytes], str], Iterator[Any]]


class _Opened(NamedTuple):
    file: InputFile
    stream: IO[bytes]
    records: Iterator[Any]
    place: int
    """How many records were taken."""


def _open(read: ReadRecords, file: InputFile) -> _Opened:
    stream = file.open_decompressed()
    return _Opened(file, stream, iter(read(stream, file.path)), 0)


def _taken(opened: _Opened, count: int) -> list[Any]:
    try:
        return list(itertools.islice(opened.records, count))
    except OSError as error:
        if opened.file.compression is None:
            raise
        raise damaged(opened.file.path, error) from error


class _Standing:
    """One file that stays open where the last question ended."""

    def __init__(self, read: ReadRecords) -> None:
        self._read = read
        self._opened: _Opened | None = None

    def at(self, file: InputFile, place: int) -> _Opened:
        """The file, open at that place."""
        opened, self._opened = self._opened, None
        if opened is not None and (opened.place > place or not _same(opened.file, file)):
            opened.stream.close()
            opened = None
        if opened is None:
            opened = _open(self._read, file)
        while opened.place < place:
            skipped = len(_taken(opened, min(CHUNK_RECORDS, place - opened.place)))
            if not skipped:
                opened.stream.close()
                raise changed(file.path, f"it had more than {place} records and has {opened.place} now")
            opened = opened._replace(place=opened.place + skipped)
        return opened

    def keep(self, opened: _Opened) -> None:
        self._opened = opened

    def close(self) -> None:
        if self._opened is not None:
            self._opened.stream.close()
            self._opened = None


def _same(one: InputFile, two: InputFile) -> bool:
    return (one.path, one.size, one.modified) == (two.path, two.size, two.modified)


class RecordsAhead(FormatPlanner):
    """Reads ahead: nothing but the records themselves says how many there are."""

    def __init__(self, read: ReadRecords, bytes_per_record: int) -> None:
        self._bytes_per_record = bytes_per_record
        self._standing = _Standing(read)
        self._known: tuple[InputFile, int, bool] | None = None
        """How many records a file was seen to have at least, and whether those are all."""

    def advance(self, file: InputFile, place: int, records: int) -> Reach:
        # One more, so that a file is not left with nothing but its end to read.
        wanted = place + records + 1
        seen, whole = 0, False
        if self._known is not None and _same(self._known[0], file):
            _, seen, whole = self._known
        if seen < wanted and not whole:
            opened = self._standing.at(file, seen)
            while seen < wanted and not whole:
                count = len(_taken(opened, min(CHUNK_RECORDS, wanted - seen)))
                seen, whole = seen + count, count == 0
            self._standing.keep(opened._replace(place=seen))
            self._known = (file, seen, whole)
        end = min(place + records, seen)
        count = end - place
        return Reach(end, count, count * self._bytes_per_record, whole and end == seen)

    def close(self) -> None:
        self._standing.close()


class RecordReader(FormatReader[T]):
    """Reads so many records from so many on."""

    def __init__(self, read: ReadRecords) -> None:
        self._standing = _Standing(read)

    def read(self, file: InputFile, start: int, end: int) -> Iterator[Records[T]]:
        file.check()
        opened = self._standing.at(file, start)
        place = start
        try:
            while end == END or place < end:
                values = _taken(opened, CHUNK_RECORDS if end == END else min(CHUNK_RECORDS, end - place))
                if not values:
                    break
                place += len(values)
                yield Records(values)
            if end != END and place < end:
                raise changed(file.path, f"it had {end} records and has {place} now")
            file.check()
        except BaseException:
            opened.stream.close()
            raise
        if end == END:
            opened.stream.close()
        else:
            self._standing.keep(opened._replace(place=place))

    def close(self) -> None:
        self._standing.close()
