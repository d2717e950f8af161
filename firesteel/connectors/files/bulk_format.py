"""Formats of blocks that can be found and read by themselves: row groups, stripes, blocks between sync markers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from firesteel.connectors.files.file_format import END, FileFormat, FormatPlanner, FormatReader, InputFile, Reach, T
from firesteel.connectors.source import Records

__all__ = ["Block", "BulkFormat"]


class Block(NamedTuple):
    """One block of a file."""

    records: int
    size: int
    """About how many bytes they are, uncompressed."""


class BulkFormat(FileFormat[T]):
    """Blocks that can be found without reading what they hold. A place is the number of a block.

    A subclass says which blocks a file has, and reads some of them in a row.

    >>> class Pages(BulkFormat[str]):
    ...     def blocks(self, file):
    ...         return [Block(records=1, size=4096)] * (file.size // 4096)
    ...     def read_blocks(self, file, first, last):
    ...         with file.open() as opened:
    ...             opened.seek(first * 4096)
    ...             yield [opened.read(4096).decode() for _ in range(first, last)]
    """

    splittable = True

    @abstractmethod
    def blocks(self, file: InputFile) -> Sequence[Block]:
        """All blocks of a file, in order: from its footer, or by leaping from one to the next."""

    @abstractmethod
    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[T]]:
        """The records of the blocks from ``first`` up to, and not including, ``last``, in pieces of some thousand."""

    def narrowed(self, asked: Collection[str]) -> BulkFormat[T]:
        """The same format where only some columns are asked for: it need not read the others, which may be NULL."""
        return self

    def splits(self, path: str) -> bool:
        # Such formats compress inside of blocks, and say so themselves.
        return self.splittable

    def create_planner(self) -> FormatPlanner:
        return _BulkPlanner(self)

    def create_reader(self) -> FormatReader[T]:
        return _BulkReader(self)


class _Latest:
    """The blocks of the file that was asked for last."""

    def __init__(self, form: BulkFormat[Any]) -> None:
        self._format = form
        self._file: InputFile | None = None
        self._blocks: Sequence[Block] = ()

    def of(self, file: InputFile) -> Sequence[Block]:
        known = self._file
        if known is None or (known.path, known.size, known.modified) != (file.path, file.size, file.modified):
            self._blocks = self._format.blocks(file)
            self._file = file
        return self._blocks


class _BulkPlanner(FormatPlanner):
    def __init__(self, form: BulkFormat[Any]) -> None:
        self._latest = _Latest(form)

    def advance(self, file: InputFile, place: int, records: int) -> Reach:
        blocks = self._latest.of(file)
        end = place
        count = size = 0
        while end < len(blocks) and (end == place or count + blocks[end].records <= records):
            count, size = count + blocks[end].records, size + blocks[end].size
            end += 1
        return Reach(end, count, size, end >= len(blocks))


class _BulkReader(FormatReader[T]):
    def __init__(self, form: BulkFormat[T]) -> None:
        self._format = form
        self._latest = _Latest(form)

    def read(self, file: InputFile, start: int, end: int) -> Iterator[Records[T]]:
        file.check()
        last = len(self._latest.of(file)) if end == END else end
        for values in self._format.read_blocks(file, start, last):
            if values:
                yield Records(values)
        file.check()
