"""Several sources one after the other, as one: the history in files, then what happens now.

The position has an entry for each source that was begun: where it began, and how far it was read. The next one is begun
when the one before has ended. Each keeps its own kind of position, its splits and its reader.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.connectors.source import Position, Records, SideRecords, SourceReader, SplitEnumerator, SplitRange

__all__ = ["HybridEnumerator", "HybridReader", "NumberedSplit"]

NumberedSplit = tuple[int, Any]
"""The number of a source, and a split of it."""
Begun = list[list[Position]]


class HybridEnumerator(SplitEnumerator[NumberedSplit]):
    """Plans for the source whose turn it is."""

    def __init__(self, sources: Sequence[SplitEnumerator[Any]]) -> None:
        self._sources = list(sources)
        self.bounded = all(source.bounded for source in sources)
        self.splittable = all(source.splittable for source in sources)
        self.keeps_files = any(source.keeps_files for source in sources)
        self.needs_driver = any(source.needs_driver for source in sources)
        self._directory: str | None = None
        self._started: set[int] = set()

    def begin_in_driver(self, directory: str) -> None:
        for number, source in enumerate(self._sources):
            if source.needs_driver:
                source.begin_in_driver(os.path.join(directory, str(number)))

    def end_in_driver(self) -> None:
        for source in self._sources:
            if source.needs_driver:
                source.end_in_driver()

    def start(self, directory: str) -> None:
        self._directory = directory

    def stop(self) -> None:
        for number in sorted(self._started):
            self._sources[number].stop()
        self._started.clear()

    def _source(self, number: int) -> SplitEnumerator[Any]:
        """A source, started when it is first needed: the last one may be a server that the first days do without."""
        if number not in self._started and self._directory is not None:
            self._sources[number].start(os.path.join(self._directory, str(number)))
            self._started.add(number)
        return self._sources[number]

    def initial(self) -> Position:
        first = self._sources[0].initial()
        return [[first, first]]

    def latest(self, position: Begun, max_records: int) -> Position:
        begun = [list(one) for one in position]
        number = len(begun) - 1
        source = self._source(number)
        while number + 1 < len(self._sources) and source.ended(begun[number][1]):
            number += 1
            source = self._source(number)
            first = source.initial()
            begun.append([first, first])
        begun[number][1] = source.latest(begun[number][1], max_records)
        return begun

    def ended(self, position: Begun) -> bool:
        number = len(position) - 1
        return number + 1 == len(self._sources) and self._source(number).ended(position[number][1])

    def _ranges(self, start: Begun, end: Begun) -> Iterator[tuple[int, Position, Position]]:
        for number, (first, high) in enumerate(end):
            low = start[number][1] if number < len(start) else first
            if low != high:
                yield number, low, high

    def count(self, start: Begun, end: Begun) -> int:
        return sum(self._source(number).count(low, high) for number, low, high in self._ranges(start, end))

    def size(self, start: Begun, end: Begun) -> int | None:
        sizes = [self._source(number).size(low, high) for number, low, high in self._ranges(start, end)]
        known = [size for size in sizes if size is not None]
        return sum(known) if known else None

    def pending(self, position: Begun) -> int | None:
        number = len(position) - 1
        return self._source(number).pending(position[number][1]) if number in self._started else None

    def plan(self, start: Begun, end: Begun, parallelism: int) -> list[list[SplitRange[NumberedSplit]]]:
        shares: list[list[SplitRange[NumberedSplit]]] = [[] for _ in range(parallelism)]
        for number, low, high in self._ranges(start, end):
            for subtask, ranges in enumerate(self._source(number).plan(low, high, parallelism)):
                shares[subtask] += [
                    SplitRange((number, one.split), one.start, one.end, _name(number, one.name or str(subtask)))
                    for one in ranges
                ]
        return shares

    def splits(self, position: Begun, parallelism: int) -> list[list[str]]:
        number = len(position) - 1
        source = self._source(number)
        found = source.splits(position[number][1], parallelism)
        if found is None:
            # Its subtasks read a piece each, which is a split for as long as the source goes on.
            over = source.ended(position[number][1])
            found = [[] if over else [str(subtask)] for subtask in range(parallelism)]
        return [[_name(number, name) for name in names] for names in found]

    def processing_time(self, position: Begun) -> int | None:
        number = len(position) - 1
        return self._source(number).processing_time(position[number][1])

    @property
    def learns_of_checkpoints(self) -> bool:
        return any(source.learns_of_checkpoints for source in self._sources)

    def committed(self, position: Begun) -> None:
        for number, (_, at) in enumerate(position):
            if number in self._started and self._sources[number].learns_of_checkpoints:
                self._sources[number].committed(at)


def _name(number: int, name: str) -> str:
    return f"{number}/{name}"


class HybridReader(SourceReader[NumberedSplit, Any]):
    """Hands each range to the reader of its source."""

    def __init__(self, readers: Sequence[SourceReader[Any, Any]]) -> None:
        self._readers = list(readers)
        self.interleaves = all(reader.interleaves for reader in readers)
        self._context: Any = None
        self._opened: set[int] = set()

    def open(self, context: Any) -> None:
        self._context = context

    def _reader(self, number: int) -> SourceReader[Any, Any]:
        if number not in self._opened:
            self._readers[number].open(self._context)
            self._opened.add(number)
        return self._readers[number]

    def begin(self, ranges: Sequence[SplitRange[NumberedSplit]]) -> None:
        for number in sorted({one.split[0] for one in ranges}):
            own = [SplitRange(r.split[1], r.start, r.end, r.name) for r in ranges if r.split[0] == number]
            self._reader(number).begin(own)

    def read(self, split: NumberedSplit, start: Position, end: Position) -> Iterator[Records[Any] | SideRecords | int]:
        number, own = split
        return self._reader(number).read(own, start, end)

    def close(self) -> None:
        for number in sorted(self._opened):
            self._readers[number].close()
        self._opened.clear()
