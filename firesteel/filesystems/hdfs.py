"""HDFS, through a client that needs neither Java nor Hadoop's native library (the package ``hdfs-native``).

It finds name services and high availability as Hadoop's own does: in the files of ``HADOOP_CONF_DIR``. The user is
``HADOOP_USER_NAME``, or whoever runs the job; Kerberos needs ``libgssapi``.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
from collections.abc import Iterator
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from firesteel.errors import ConfigurationError
from firesteel.filesystems.port import FileInfo
from firesteel.filesystems.streams import buffered_input, buffered_output

__all__ = ["HdfsFileSystem", "arrow_of_hdfs", "has_client"]

_NANOS_PER_MILLI = 1_000_000


def has_client() -> bool:
    """Whether the package is there. Without it, Arrow looks for Hadoop's native library."""
    try:
        import hdfs_native  # noqa: F401
    except ImportError:
        return False
    return True


@functools.lru_cache(maxsize=8)
def _client(address: str, process: int) -> Any:
    # One per process and name service: it holds connections and threads, which do not survive a fork.
    import hdfs_native

    try:
        return hdfs_native.Client(address)
    except Exception as error:
        raise ConfigurationError(f"Cannot open {address}: {error}.") from error


def _address(path: str) -> str:
    """The name service, or host and port, of a URI; for ``hdfs:///path`` that of ``fs.defaultFS``."""
    parts = urlsplit(path)
    return f"hdfs://{parts.netloc}"


def arrow_of_hdfs(path: str) -> tuple[Any, str]:
    """Arrow's file system of a URI, and the path as it takes it."""
    from pyarrow import fs

    parts = urlsplit(path)
    found = _fsspec(parts.hostname, parts.port, os.getpid())
    return fs.PyFileSystem(fs.FSSpecHandler(found)), parts.path or "/"


@functools.lru_cache(maxsize=8)
def _fsspec(host: str | None, port: int | None, process: int) -> Any:
    # Not kept by fsspec: it drops what it keeps in every process that is forked, and the client's threads, which it
    # would wait for, are not there.
    from hdfs_native.fsspec import HdfsFileSystem as FsspecHdfs

    return FsspecHdfs(host, port, skip_instance_cache=True)


class HdfsFileSystem:
    """A :class:`~firesteel.filesystems.FileSystem` on HDFS. Renaming is one step there, so what is written aside and
    renamed appears as a whole. A file is used as an object is: written once, complete when it is closed."""

    appends = False

    def __init__(self, path: str) -> None:
        self._address = _address(path)
        self._client = _client(self._address, os.getpid())

    def _inner(self, path: str) -> str:
        return path[len(self._address) :] or "/"

    def _status(self, path: str) -> Any:
        try:
            return self._client.get_file_info(self._inner(path))
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        return self._status(path) is not None

    def is_folder(self, path: str) -> bool:
        found = self._status(path)
        return found is not None and bool(found.isdir)

    def read(self, path: str) -> bytes:
        content: bytes = self._client.read(self._inner(path)).read()
        return content

    def write(self, path: str, content: bytes) -> None:
        # Aside first: whoever looks sees all of it, or what was there before.
        aside = path + ".new"
        self.delete(aside)
        with self.open_output(aside) as file:
            file.write(content)
        self._client.rename(self._inner(aside), self._inner(path), True)

    def make_folder(self, path: str) -> None:
        self._client.mkdirs(self._inner(path), 0o755, True)

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._client.delete(self._inner(path), True)

    def info(self, path: str) -> FileInfo | None:
        found = self._status(path)
        return None if found is None or found.isdir else self._info_of(found)

    def _info_of(self, found: Any) -> FileInfo:
        return FileInfo(self._address + found.path, int(found.length), int(found.modification_time) * _NANOS_PER_MILLI)

    def walk(self, folder: str) -> Iterator[FileInfo]:
        try:
            yield from (
                self._info_of(one) for one in self._client.list_status(self._inner(folder), True) if not one.isdir
            )
        except FileNotFoundError:
            return

    def names(self, folder: str) -> Iterator[str]:
        return (found.path for found in self.walk(folder))

    def open_input(self, path: str) -> BinaryIO:
        return buffered_input(_Input(self._client.read(self._inner(path))))

    def open_output(self, path: str) -> BinaryIO:
        self.make_folder(path.rpartition("/")[0])
        return buffered_output(self._client.create(self._inner(path)))

    def sync(self, file: BinaryIO) -> None:
        raise NotImplementedError("A file is durable when it is complete.")

    def move(self, source: str, target: str) -> None:
        self.make_folder(target.rpartition("/")[0])
        self._client.rename(self._inner(source), self._inner(target), True)


class _Input(io.RawIOBase):
    """The client's reader as Python's buffers want one."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._reader.tell(), io.SEEK_END: len(self._reader)}[whence]
        # Behind the end there is nothing to read, and the client does not go there.
        self._reader.seek(min(start + offset, len(self._reader)))
        return int(self._reader.tell())

    def tell(self) -> int:
        return int(self._reader.tell())

    def readinto(self, buffer: Any) -> int:
        content = self._reader.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)
