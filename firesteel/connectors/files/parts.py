"""Part files: what they are called, and how they are written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from firesteel.common.serialization import BulkWriterFactory, Encoder
from firesteel.connectors.files.rolling import PartFileInfo
from firesteel.datastream.connectors.base import WriterContext

__all__ = ["HIDDEN", "Finished", "Format", "InProgress", "Part", "RowFormat", "hidden_name", "sync_folder"]

HIDDEN = ".inprogress"


@dataclass(frozen=True)
class Finished:
    """A part that is complete. Paths are relative to the sink's folder."""

    path: str
    """Its visible name."""
    subtask: int
    writer: str


@dataclass(frozen=True)
class InProgress:
    """A part that goes on, valid up to a length in bytes."""

    path: str
    subtask: int
    writer: str
    length: int


class Format:
    """How elements get into a part. This one is for formats that are complete only when they end."""

    resumes = False
    """Whether a part that is cut off between two elements is a good file."""

    def __init__(self, factory: BulkWriterFactory) -> None:
        self.factory = factory

    def opened(self, file: BinaryIO, context: WriterContext) -> tuple[Callable[[Any], Any], Callable[[], None]]:
        """What takes an element, and what ends the file."""
        writer = self.factory.create(file)
        return writer.add_element, writer.finish


class RowFormat(Format):
    """Elements one after the other."""

    resumes = True

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def opened(self, file: BinaryIO, context: WriterContext) -> tuple[Callable[[Any], Any], Callable[[], None]]:
        write, encode, declared = file.write, self.encoder.encode, context.input_type()
        if type(self.encoder) is Encoder and declared is not None:
            formatted = declared.formatter()
            return lambda element: write(encode(formatted(element))), lambda: None
        return lambda element: write(encode(element)), lambda: None


class Part:
    """A part file that is being written."""

    def __init__(self, base: str, bucket: str, name: str, form: Format, context: WriterContext) -> None:
        self.path = os.path.join(bucket, name)
        self._folder = os.path.join(base, bucket)
        os.makedirs(self._folder, exist_ok=True)
        # "x": names are unique; if one is there all the same, it is not ours to overwrite.
        self._file: BinaryIO = open(os.path.join(base, hidden_name(self.path)), "xb")  # noqa: SIM115
        self._add, self._end = form.opened(self._file, context)
        now = context.current_processing_time()
        self.info = PartFileInfo(bucket, now, now)
        self.prepared = 0
        """How much of it the driver knows."""
        self._named = False

    def write(self, element: Any, now: int) -> None:
        written = self._add(element)
        # Asking the file costs a call of the system.
        self.info.size = self._file.tell() if written is None else self.info.size + written
        self.info.last_update_time = now

    def sync(self) -> int:
        """Forces all that was written to disk. Returns its length."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if not self._named:
            # The name of a new file is on disk only when its folder is.
            sync_folder(self._folder)
            self._named = True
        return self._file.tell()

    def finish(self) -> None:
        self._end()
        self.sync()
        self._file.close()

    def close(self) -> None:
        """Gives it up as it is."""
        # Writers of some formats insist on their end, in whatever file.
        with contextlib.suppress(Exception):
            self._end()
        self._file.close()


def hidden_name(path: str) -> str:
    """Where a part is until it is committed.

    >>> hidden_name("2024-01-01/part-0.txt")
    '2024-01-01/.part-0.txt.inprogress'
    """
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}{HIDDEN}")


def sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
