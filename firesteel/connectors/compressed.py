"""Compressed files: which ones are, how they are read, and how long what they hold is.

A compressed file can be read from its beginning only. Places in it are counted in the bytes that it holds. Whoever goes
on where the last batch ended keeps the file open; after a restart it is read from its beginning to that place again.
"""

from __future__ import annotations

import io
import os
from typing import IO, cast

from firesteel.errors import InputError
from firesteel.filesystems import LOCAL, FileSystem

__all__ = ["Lengths", "codec_of", "open_binary", "skip"]

_CODECS = {".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd"}
_BUFFER = 1 << 20


def codec_of(path: str) -> str | None:
    """How a file is compressed, by its ending.

    >>> codec_of("a.txt.gz"), codec_of("b.ZST"), codec_of("c.txt")
    ('gzip', 'zstd', None)
    """
    return _CODECS.get(os.path.splitext(path)[1].lower())


def open_binary(path: str, system: FileSystem = LOCAL) -> IO[bytes]:
    """A file's bytes, or those that it holds if it is compressed."""
    codec = codec_of(path)
    if codec is None:
        return system.open_input(path)
    # Arrow is there with Spark. It is loaded by those who read such files.
    import pyarrow as pa

    stream = pa.input_stream(path if system is LOCAL else system.open_input(path), compression=codec)
    return cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", stream), _BUFFER))


def skip(file: IO[bytes], count: int, path: str) -> int:
    """Reads over so many bytes. Returns how many there were."""
    left = count
    while left > 0:
        try:
            content = file.read(min(left, _BUFFER))
        except OSError as error:
            raise damaged(path, error) from error
        if not content:
            break
        left -= len(content)
    return count - left


def damaged(path: str, error: OSError) -> InputError:
    return InputError(f"The file {path} cannot be read as {codec_of(path)}: {error}.")


class Lengths:
    """How far compressed files reach: read ahead by whoever plans batches, as far as is asked for.

    It has one file open at a time. What was found out stays known.
    """

    def __init__(self, system: FileSystem = LOCAL) -> None:
        self._system = system
        self._path: str | None = None
        self._file: IO[bytes] | None = None
        self._seen: dict[str, int] = {}
        """So many bytes each file has at least."""
        self._whole: set[str] = set()
        """Files that are known to have no more than that."""

    def advance(self, path: str, offset: int, count: int) -> tuple[int, bool]:
        """The place behind at most ``count`` bytes more, and whether the file ends there."""
        seen = self._seen.get(path, 0)
        # One byte more, so that a file is not left with nothing but its end to read.
        wanted = offset + count + 1
        if wanted > seen and path not in self._whole:
            if path != self._path:
                self.close()
                self._path, self._file = path, open_binary(path, self._system)
                seen = 0
            assert self._file is not None
            seen += skip(self._file, wanted - seen, path)
            self._seen[path] = seen
            if seen < wanted:
                self._whole.add(path)
                self.close()
        end = min(offset + count, self._seen[path])
        return end, path in self._whole and end == self._seen[path]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._path = self._file = None
