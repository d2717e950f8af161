"""Lines of text files, cut into byte ranges, so that a large file is read by many tasks and in many batches."""

from __future__ import annotations

import os
from typing import Any

from firesteel.connectors.blocks import blocks
from firesteel.connectors.source import CHUNK_RECORDS, Chunks, SplitSource
from firesteel.errors import ProgramError

__all__ = ["TextFileSource"]

BYTES_PER_RECORD = 64
"""A guess at a line's length, for sizing batches; the sizes adapt to how long a batch takes."""


class TextFileSource(SplitSource):
    """The lines of one or more files, in order. A position is a byte offset into all of them in a row."""

    def __init__(self, files: tuple[tuple[str, int], ...], charset: str) -> None:
        self._files = files
        self._charset = charset
        self._size = sum(size for _, size in files)

    @classmethod
    def of(cls, path: str, charset: str = "UTF-8") -> TextFileSource:
        """All that is needed to read a file (or every file of a folder) that exists now."""
        path = path.removeprefix("file://")
        if not os.path.exists(path):
            raise ProgramError(f"read_text_file(): there is no file or folder {path!r}.")
        try:
            one, two = "\n".encode(charset), "\n\n".encode(charset)
        except LookupError:
            raise ProgramError(f"read_text_file(): Python knows no character set {charset!r}.") from None
        if two.removeprefix(one) != b"\n":
            raise ProgramError(
                f"read_text_file(): lines of {charset} text cannot be told apart by their bytes. Convert the file "
                "to UTF-8."
            )
        names = [path]
        if os.path.isdir(path):
            # As Hadoop and Flink do, leave out hidden files and folders.
            names = sorted(
                os.path.join(folder, name)
                for folder, folders, found in os.walk(path)
                if not folders.__setitem__(slice(None), [f for f in folders if f[0] not in "._"])
                for name in found
                if name[0] not in "._"
            )
        files = tuple((os.path.abspath(name), os.path.getsize(name)) for name in names)
        return cls(tuple(file for file in files if file[1]), charset)

    def ends_within(self, records: int) -> bool:
        return self._size <= records * BYTES_PER_RECORD

    def initial(self) -> int:
        return 0

    def latest(self, position: int, max_records: int) -> int:
        return min(self._size, position + max_records * BYTES_PER_RECORD)

    def ended(self, position: int) -> bool:
        return position >= self._size

    def count(self, start: int, end: int) -> int:
        return (end - start) // BYTES_PER_RECORD

    def plan(self, start: int, end: int, parallelism: int) -> list[Any]:
        return list(blocks(start, end, parallelism))

    def read(self, share: Any) -> Chunks:
        low, high = share
        first = 0
        for name, size in self._files:
            if first < high and first + size > low:
                yield from self._read_file(name, max(0, low - first), min(size, high - first))
            first += size

    def _read_file(self, name: str, low: int, high: int) -> Chunks:
        """Lines that start in [low, high): a line belongs to the range in which its first byte lies."""
        lines: list[str] = []
        with open(name, "rb") as file:
            if low:
                file.seek(low - 1)
                file.readline()
            while file.tell() < high:
                line = file.readline()
                if not line:
                    break
                lines.append(line.removesuffix(b"\n").removesuffix(b"\r").decode(self._charset))
                if len(lines) >= CHUNK_RECORDS:
                    yield lines, None
                    lines = []
        if lines:
            yield lines, None
