"""The contract by which a file source reads one file, whatever its format is.

A *place* in a file is a number: 0 is its beginning, larger ones come later, and what they count is the format's affair
(bytes, row groups, records). Two small objects know them. The *planner* works beside the driver and says which place
lies so many records further on. The *reader* works in tasks and reads from one place to another. The places of a batch
are logged before it runs, so the same places must always give the same records.

Three base classes implement this contract for the usual kinds of formats, and ask for less:
:class:`~firesteel.connectors.files.stream_format.StreamFormat` (records one after the other),
:class:`~firesteel.connectors.files.stream_format.LineFormat` (a record a line) and
:class:`~firesteel.connectors.files.bulk_format.BulkFormat` (blocks that can be found and read by themselves).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any, BinaryIO, Generic, NamedTuple, TypeVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.compressed import codec_of, open_binary
from firesteel.connectors.source import Records
from firesteel.connectors.text_positions import FileState, changed, gone, other
from firesteel.filesystems import LOCAL, FileInfo, FileSystem, StorageOptions, file_system_of

__all__ = ["END", "FileFormat", "FormatPlanner", "FormatReader", "InputFile", "Reach"]

T = TypeVar("T")

END = -1
"""The place behind all that a file holds, for somebody who has not looked where that is."""


@dataclass(frozen=True)
class InputFile:
    """A file as it was when its part of a batch was planned, and the way to it."""

    path: str
    size: int
    """In bytes, as it is stored."""
    modified: int
    """In nanoseconds."""
    mark: int | None = None
    """A checksum of what was planned, where there is one: it tells a file that has grown, or was put back, from
    another one."""
    options: StorageOptions | None = None

    @cached_property
    def system(self) -> FileSystem:
        return file_system_of(self.path, self.options)

    @property
    def state(self) -> FileState:
        return FileState(self.path, self.size, self.modified)

    @property
    def compression(self) -> str | None:
        """``gzip``, ``bz2`` or ``zstd``, by the ending of its name; None for a plain file."""
        return codec_of(self.path)

    def open(self) -> BinaryIO:
        """Its bytes as they are stored, at any place."""
        try:
            return self.system.open_input(self.path)
        except FileNotFoundError:
            raise gone(self.path) from None

    def open_arrow(self) -> Any:
        """The same as a file of Arrow (``pyarrow.NativeFile``)."""
        import pyarrow

        if self.system is LOCAL:
            try:
                return pyarrow.OSFile(self.path)
            except FileNotFoundError:
                raise gone(self.path) from None
        opened = self.open()
        raw = getattr(opened, "raw", None)
        # The buffer that Python has put around it is of no use to Arrow.
        return opened.detach() if isinstance(raw, pyarrow.NativeFile) else pyarrow.PythonFile(opened, "r")  # type: ignore[attr-defined]

    def open_decompressed(self) -> IO[bytes]:
        """What it holds, from its beginning on."""
        try:
            return open_binary(self.path, self.system)
        except FileNotFoundError:
            raise gone(self.path) from None

    def check(self, end: int | None = None) -> None:
        """Raises, with the file's name, if it is gone or another one now.

        With ``end``, a number of bytes that were read or will be, it may have grown behind that place.
        """
        found = self.system.info(self.path)
        if found is None:
            raise gone(self.path)
        if (found.size, found.modified) != (self.size, self.modified):
            self._compare(found, end)

    def _compare(self, found: FileInfo, end: int | None) -> None:
        if found.size < self.size:
            raise changed(self.path, f"it had {self.size} bytes and has {found.size} now")
        if found.size > self.size and (end is None or self.compression is not None):
            raise changed(self.path, f"it had {self.size} bytes and has {found.size} now")
        if self.mark is None:
            if found.size == self.size:
                raise changed(self.path, "it was written to after the job had looked at it")
        elif not self.state.matches(self.size if end is None else end, self.mark, self.system):
            raise other(self.path)

    def __getstate__(self) -> dict[str, Any]:
        # Connections stay where they were made.
        return {name: value for name, value in self.__dict__.items() if name != "system"}


class Reach(NamedTuple):
    """How far a part of a batch goes in one file."""

    place: int
    records: int
    """How many there are up to it (an estimate is enough)."""
    size: int
    """About how many bytes they are."""
    done: bool
    """Whether the file ends there."""


class FormatPlanner(ABC):
    """Finds places. There is one per job, beside the driver; it may keep the file open that it was asked for last."""

    @abstractmethod
    def advance(self, file: InputFile, place: int, records: int) -> Reach:
        """The place after about so many records more, and at least after one step. The same question gets the same
        answer, in another process, too."""

    def opens(self, file: InputFile) -> bool:
        """Whether it has to open this file to find places in it. Small files are not worth that."""
        return True

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once at the end."""


class FormatReader(ABC, Generic[T]):
    """Reads files in one subtask. It may keep a file open for the range that follows."""

    @abstractmethod
    def read(self, file: InputFile, start: int, end: int) -> Iterator[Records[T]]:
        """The records from one place up to another, or to :data:`END`, in pieces of some thousand. The same places
        give the same records. Raises an :class:`~firesteel.errors.InputError` if the file is not what it was."""

    def close(self) -> None:
        """Called once at the end."""


class FileFormat(ABC, Generic[T]):
    """How records are read from files. It is pickled on its way to where files are read, and holds settings only."""

    splittable: bool = False
    """Whether each number between two places of a file is a place, too. Then its part of a batch can be shared out to
    several subtasks."""
    appendable: bool = False
    """Whether a file that was added to, while it is read, is still the same up to where it was planned."""
    bytes_per_record: int = 64
    """A guess, for sizing batches before a file was looked into; their sizes adapt to how long a batch takes."""

    @property
    def typed(self) -> bool:
        """Whether records are sure to have the type that the format produces. Then they are not checked again."""
        return False

    @abstractmethod
    def create_planner(self) -> FormatPlanner: ...

    @abstractmethod
    def create_reader(self) -> FormatReader[T]: ...

    def splits(self, path: str) -> bool:
        """Whether this file can be shared out: a compressed one can be read from its beginning only."""
        return self.splittable and codec_of(path) is None

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the records, where the format knows it."""
        return None
