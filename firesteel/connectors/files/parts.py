"""Part files: what they are called, and how they are written."""

from __future__ import annotations

import contextlib
import copyreg
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from firesteel.common.private_files import sync_folder
from firesteel.common.serialization import BulkWriterFactory, Encoder
from firesteel.connectors.files.layout import Layout
from firesteel.connectors.files.rolling import PartFileInfo
from firesteel.datastream.connectors.base import WriterContext
from firesteel.durable.names import stored_as

__all__ = ["Finished", "Format", "InProgress", "Part", "RowFormat"]


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


@stored_as("finished_part")
def _finished(path: str, subtask: int, writer: str) -> Finished:
    return Finished(path, subtask, writer)


@stored_as("part_in_progress")
def _in_progress(path: str, subtask: int, writer: str, length: int) -> InProgress:
    return InProgress(path, subtask, writer, length)


def _reduce_finished(part: Finished) -> tuple[Any, ...]:
    return _finished, (part.path, part.subtask, part.writer)


def _reduce_in_progress(part: InProgress) -> tuple[Any, ...]:
    return _in_progress, (part.path, part.subtask, part.writer, part.length)


# The driver logs them until they are committed.
copyreg.pickle(Finished, _reduce_finished)
copyreg.pickle(InProgress, _reduce_in_progress)


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
        write, encoded = file.write, self.encoding(context)
        return lambda element: write(encoded(element)), lambda: None

    def encoding(self, context: WriterContext) -> Callable[[Any], bytes]:
        """What makes the bytes of an element, whatever part they go to."""
        encode, declared = self.encoder.encode, context.input_type()
        if type(self.encoder) is Encoder and declared is not None:
            formatted = declared.formatter()
            return lambda element: encode(formatted(element))
        return encode


class Part:
    """A part file that is being written."""

    def __init__(self, layout: Layout, bucket: str, name: str, form: Format, context: WriterContext) -> None:
        self.path = os.path.join(bucket, name)
        self._files, self._hidden = layout.files, layout.hidden(self.path)
        self._file: BinaryIO = self._files.open_output(self._hidden)
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

    def append(self, encoded: list[bytes], size: int, now: int) -> None:
        """Writes elements that are bytes already, so many together."""
        self._file.write(b"".join(encoded))
        self.info.size += size
        self.info.last_update_time = now

    def sync(self) -> int:
        """Forces all that was written to disk, where the file system can. Returns its length."""
        self._files.sync(self._file)
        if not self._named:
            # The name of a new file is on disk only when its folder is.
            sync_folder(os.path.dirname(self._hidden))
            self._named = True
        return self._file.tell()

    def finish(self) -> None:
        self._end()
        if self._files.appends:
            self.sync()
        self._file.close()

    def close(self) -> None:
        """Gives it up as it is."""
        # Writers of some formats insist on their end, in whatever file.
        with contextlib.suppress(Exception):
            self._end()
        # What is not written yet may find no room, and nobody needs it any more.
        with contextlib.suppress(OSError):
            self._file.close()
        if not self._files.appends:
            # Closing an object makes it complete. It is hidden, and nobody will come for it.
            self._files.delete(self._hidden)
