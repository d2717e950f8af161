"""This machine's files, or what is mounted among them."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from typing import BinaryIO

from firesteel.common.private_files import make_private_folder, open_private, replace_file, sync_folder
from firesteel.filesystems.port import FileInfo

__all__ = ["LOCAL", "LocalFileSystem"]

_BUFFER = 1 << 20


class LocalFileSystem:
    """A :class:`~firesteel.filesystems.Storage` and a :class:`~firesteel.filesystems.FileSystem`.

    What is written as a whole is for its owner alone. What ``open_output`` makes is for others to read, as the umask
    says.
    """

    appends = True

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def sizes(self, folder: str) -> dict[str, int]:
        try:
            with os.scandir(folder) as entries:
                return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
        except (FileNotFoundError, NotADirectoryError):
            return {}

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, content: bytes) -> None:
        make_private_folder(os.path.dirname(path))
        replace_file(path, content, durable=True)

    def create(self, path: str, content: bytes) -> bool:
        make_private_folder(os.path.dirname(path))
        try:
            with open_private(path, "xb") as file:
                file.write(content)
        except FileExistsError:
            return False
        return True

    def overwrite(self, path: str, content: bytes) -> None:
        replace_file(path, content)

    def make_folder(self, path: str) -> None:
        make_private_folder(path)

    def delete(self, path: str) -> None:
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.exists(path):
            os.remove(path)

    def remove_if_empty(self, folder: str) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(folder)

    # Files of sources and sinks

    def info(self, path: str) -> FileInfo | None:
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileInfo(path, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None

    def walk(self, folder: str) -> Iterator[FileInfo]:
        return (found for found in map(self.info, self.names(folder)) if found is not None)

    def names(self, folder: str) -> Iterator[str]:
        return (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names)

    def open_input(self, path: str) -> BinaryIO:
        return open(path, "rb", buffering=_BUFFER)

    def open_output(self, path: str) -> BinaryIO:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # "x": names are unique; if one is there all the same, it is not ours to overwrite.
        return open(path, "xb")

    def sync(self, file: BinaryIO) -> None:
        file.flush()
        os.fsync(file.fileno())

    def move(self, source: str, target: str) -> None:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(source, target)
        sync_folder(os.path.dirname(target))


LOCAL = LocalFileSystem()
