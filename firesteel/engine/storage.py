"""Where a checkpoint folder lies: on a file system of this machine, or on one that Spark knows (hdfs, s3a, gs, abfs).

The driver's own files there are few and small: this port is all it needs. Spark's part of the folder is Spark's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from typing import Protocol
from urllib.parse import urlsplit

from firesteel.common.private_files import make_private_folder, open_private

__all__ = ["LOCAL", "LocalStorage", "Storage", "is_remote", "joined"]


def is_remote(path: str) -> bool:
    """Whether a path is a URI of another file system than this machine's.

    >>> is_remote("hdfs://name/checkpoints"), is_remote("/var/checkpoints")
    (True, False)
    """
    return "://" in path and urlsplit(path).scheme not in ("", "file")


def joined(folder: str, *names: str) -> str:
    """A path inside a folder, which may be a URI."""
    return "/".join([folder.rstrip("/"), *names])


class Storage(Protocol):
    """Files by their paths. What is not there raises FileNotFoundError, what goes wrong another OSError.

    What is made is for its owner alone, where the file system has permissions: state is as confidential as records.
    """

    def exists(self, path: str) -> bool: ...

    def is_folder(self, path: str) -> bool: ...

    def sizes(self, folder: str) -> dict[str, int]:
        """The files of a folder with their bytes; none where there is no folder."""

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, content: bytes) -> None:
        """Writes a file durably: whoever looks, even after a loss of power, sees all of it or what was there before."""

    def create(self, path: str, content: bytes) -> bool:
        """Writes a file that is not there yet. Returns False, and changes nothing, where it is."""

    def make_folder(self, path: str) -> None:
        """Makes a folder and those above it that are missing. One that is there stays as it is."""

    def delete(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it; nothing where there is none."""

    def remove_if_empty(self, folder: str) -> None:
        """Removes a folder, unless something is in it, in one step: somebody else may just be putting it there."""


class LocalStorage:
    """This machine's files, or what is mounted among them."""

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
        folder, name = os.path.split(path)
        make_private_folder(folder)
        draft = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}")
        try:
            with open_private(draft, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            # A full disk, most likely: what was written takes up what little room there is.
            with contextlib.suppress(OSError):
                os.remove(draft)
            raise
        # The name is on disk only when the folder is.
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def create(self, path: str, content: bytes) -> bool:
        make_private_folder(os.path.dirname(path))
        try:
            with open_private(path, "xb") as file:
                file.write(content)
        except FileExistsError:
            return False
        return True

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


LOCAL = LocalStorage()
