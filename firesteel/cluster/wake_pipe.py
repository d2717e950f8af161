"""Wakes up a thread that waits for several descriptors at once."""

from __future__ import annotations

import contextlib
import os
import threading

__all__ = ["WakePipe"]


class WakePipe:
    """A pipe that says only that something has happened.

    >>> pipe = WakePipe()
    >>> pipe.wake(); pipe.clear(); pipe.close(); pipe.wake()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writing: int | None
        self.reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        """Can be read from after :meth:`wake`."""

    def wake(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            if self._writing is not None:
                os.write(self._writing, b"x")

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.reading, 4096)

    def close(self) -> None:
        """Nobody waits any more. Others get the numbers of the descriptors now, so nothing is written after this."""
        with self._lock:
            if self._writing is not None:
                os.close(self._writing)
                os.close(self.reading)
                self._writing = None
