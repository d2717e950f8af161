"""File systems that Arrow knows: S3 and what speaks its protocol, Google's and Azure's object stores, HDFS."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, BinaryIO

from pyarrow import fs

from firesteel.filesystems.credentials import CREDENTIALS, check_credentials
from firesteel.filesystems.hdfs import arrow_of_hdfs, has_client
from firesteel.filesystems.options import StorageOptions
from firesteel.filesystems.paths import S3_SCHEMES, cannot_open, scheme_of
from firesteel.filesystems.port import FileInfo
from firesteel.filesystems.streams import buffered_input, buffered_output

__all__ = ["ArrowFileSystem", "arrow_of"]


def arrow_of(path: str, options: StorageOptions | None = None) -> tuple[Any, str]:
    """Arrow's file system of a resolved path, and the path as it takes it.

    >>> system, path = arrow_of("/data/orders")
    >>> system.type_name, path
    ('local', '/data/orders')
    """
    scheme = scheme_of(path)
    if scheme is None or scheme == "file":
        return fs.LocalFileSystem(), path
    if scheme in S3_SCHEMES:
        return _s3(options or StorageOptions()), path.partition("://")[2]
    if scheme == "hdfs" and has_client():
        return arrow_of_hdfs(path)
    if scheme in CREDENTIALS:
        check_credentials(path)
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(path)
        return found
    except Exception as error:
        raise cannot_open(path, str(error).splitlines()[0].rstrip(".")) from error


@functools.lru_cache(maxsize=8)
def _s3(options: StorageOptions) -> Any:
    # One per process and set of keys: it holds connections. Made where it is used, for it does not survive a fork.
    return fs.S3FileSystem(**options.for_arrow())


class ArrowFileSystem:
    """A :class:`~firesteel.filesystems.FileSystem` through Arrow. Objects appear when they are complete.

    Files are opened with ``compression=None``: Arrow would compress what is written under a name that ends in ``.gz``.
    """

    appends = False

    def __init__(self, path: str, options: StorageOptions) -> None:
        self._system, inner = arrow_of(path, options)
        self._prefix = path[: len(path) - len(inner.rstrip("/"))] if path.endswith(inner.rstrip("/")) else ""
        """What stands before the path that Arrow takes."""

    def _inner(self, path: str) -> str:
        return path[len(self._prefix) :]

    def _info(self, path: str) -> Any:
        return self._system.get_file_info(self._inner(path))

    def exists(self, path: str) -> bool:
        return bool(self._info(path).type != fs.FileType.NotFound)

    def is_folder(self, path: str) -> bool:
        return bool(self._info(path).type == fs.FileType.Directory)

    def read(self, path: str) -> bytes:
        with self._system.open_input_stream(self._inner(path), compression=None) as file:
            content: bytes = file.read()
        return content

    def write(self, path: str, content: bytes) -> None:
        inner = self._inner(path)
        if self._system.type_name != "hdfs":
            # An object is there as a whole or not at all.
            with self._system.open_output_stream(inner, compression=None) as file:
                file.write(content)
            return
        with self._system.open_output_stream(inner + ".new", compression=None) as file:
            file.write(content)
        self._system.move(inner + ".new", inner)

    def make_folder(self, path: str) -> None:
        # Object stores need none, and an empty object in its place would be for nothing.
        if self._system.type_name == "hdfs":
            self._system.create_dir(self._inner(path), recursive=True)

    def delete(self, path: str) -> None:
        kind = self._info(path).type
        with contextlib.suppress(FileNotFoundError):
            if kind == fs.FileType.Directory:
                self._system.delete_dir(self._inner(path))
            elif kind == fs.FileType.File:
                self._system.delete_file(self._inner(path))

    def info(self, path: str) -> FileInfo | None:
        found = self._info(path)
        return self._info_of(found) if found.type == fs.FileType.File else None

    def _info_of(self, found: Any) -> FileInfo:
        return FileInfo(self._prefix + found.path, int(found.size), int(found.mtime_ns or 0))

    def walk(self, folder: str) -> Iterator[FileInfo]:
        selector = fs.FileSelector(self._inner(folder), allow_not_found=True, recursive=True)
        for found in self._system.get_file_info(selector):
            if found.type == fs.FileType.File:
                yield self._info_of(found)

    def names(self, folder: str) -> Iterator[str]:
        return (found.path for found in self.walk(folder))

    def open_input(self, path: str) -> BinaryIO:
        return buffered_input(self._system.open_input_file(self._inner(path)))

    def open_output(self, path: str) -> BinaryIO:
        self.make_folder(path.rpartition("/")[0])
        return buffered_output(self._system.open_output_stream(self._inner(path), compression=None))

    def sync(self, file: BinaryIO) -> None:
        raise NotImplementedError("An object is durable when it is complete.")

    def move(self, source: str, target: str) -> None:
        # An object is copied within the store, and then deleted: the copy appears at once, as a whole.
        self.make_folder(target.rpartition("/")[0])
        self._system.move(self._inner(source), self._inner(target))
