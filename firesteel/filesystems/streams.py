"""Streams of clients of remote file systems as Python's own files."""

from __future__ import annotations

import io
from typing import Any, BinaryIO, cast

__all__ = ["buffered_input", "buffered_output"]

_BUFFER = 1 << 20


def buffered_input(stream: Any) -> BinaryIO:
    """A file to read from a raw stream."""
    return cast("BinaryIO", io.BufferedReader(stream, _BUFFER))


def buffered_output(stream: Any) -> BinaryIO:
    """A file to write to a client's stream, which has ``write`` (of ``bytes``) and ``close``."""
    return cast("BinaryIO", io.BufferedWriter(_Output(stream), _BUFFER))


class _Output(io.RawIOBase):
    """A client's stream as Python's buffers want one: it says how much it has taken, and where it is."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(data)
        # A copy: not every client takes a view of a buffer.
        self._stream.write(bytes(data))
        self._written += size
        return size

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
