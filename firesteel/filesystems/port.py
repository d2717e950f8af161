"""What is asked of a file system. Paths are whole ones, as :func:`~firesteel.filesystems.resolved` gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol

__all__ = ["FileInfo", "FileSystem", "Storage"]


class FileInfo(NamedTuple):
    """A file as it was when somebody looked."""

    path: str
    size: int
    modified: int
    """In nanoseconds."""


class _Files(Protocol):
    """What every file system has. What is not there raises FileNotFoundError, what goes wrong another OSError."""

    def exists(self, path: str) -> bool: ...

    def is_folder(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, content: bytes) -> None:
        """Writes a file durably: whoever looks, even after a loss of power, sees all of it or what was there before."""

    def make_folder(self, path: str) -> None:
        """Makes a folder and those above it that are missing. One that is there stays as it is."""

    def delete(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it; nothing where there is none."""


class Storage(_Files, Protocol):
    """Where a checkpoint folder lies. The driver's own files there are few and small; Spark's part is Spark's.

    What is made is for its owner alone, where the file system has permissions: state is as confidential as records.
    """

    def sizes(self, folder: str) -> dict[str, int]:
        """The files of a folder with their bytes; none where there is no folder."""

    def create(self, path: str, content: bytes) -> bool:
        """Writes a file that is not there yet. Returns False, and changes nothing, where it is."""

    def overwrite(self, path: str, content: bytes) -> None:
        """Writes a small file in place. It is never missing meanwhile, but may be empty or torn for a moment, while
        ``write`` may remove the one before, on file systems that cannot replace a file in one step."""

    def remove_if_empty(self, folder: str) -> None:
        """Removes a folder, unless something is in it, in one step: somebody else may just be putting it there."""


class FileSystem(_Files, Protocol):
    """Where the files of sources and sinks lie: large ones, read and written in tasks."""

    appends: bool
    """Whether what was written to a file is durable before the file is closed. An object store has nothing to show of
    an object until all of it is there."""

    def info(self, path: str) -> FileInfo | None:
        """The file itself; None where there is none."""

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """All files below a folder, however deep; none where there is no folder."""

    def names(self, folder: str) -> Iterator[str]:
        """Their paths alone, where that is all that is needed."""

    def open_input(self, path: str) -> BinaryIO:
        """A file to read from, at any place."""

    def open_output(self, path: str) -> BinaryIO:
        """A file to write, under a name that nobody else uses. It is complete when it is closed."""

    def sync(self, file: BinaryIO) -> None:
        """Forces what was written to disk, where the file system ``appends``."""

    def move(self, source: str, target: str) -> None:
        """Gives a file another name. Whoever looks at the target sees all of it or nothing, also if this ends halfway;
        the source may be there still then."""
