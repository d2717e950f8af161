"""Reads the pieces of files that a subtask gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.connectors.files.enumerator import Piece
from firesteel.connectors.files.file_format import FileFormat, FormatReader, T
from firesteel.connectors.source import Records, SourceReader
from firesteel.filesystems import StorageOptions

__all__ = ["FileReader"]


class FileReader(SourceReader[Piece, T]):
    """Reads files of any format."""

    def __init__(self, form: FileFormat[T], options: StorageOptions | None = None) -> None:
        self._format, self._options = form, options
        self.produces = form.get_produced_type() if form.typed else None
        self._reader: FormatReader[T] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What it holds open belongs to the process that reads.
        return {**self.__dict__, "_reader": None}

    def read(self, split: Piece, start: int, end: int) -> Iterator[Records[T]]:
        if self._reader is None:
            self._reader = self._format.create_reader()
        return self._reader.read(split.file(self._options), start, end)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
