"""Writes what it reads to a file, and begins a new one when that is full: ``log_writer.py FILE BYTES KEPT``.

A process of its own, small and without imports of ours. The driver, its JVM and the workers write to it through a pipe
as they would to a file. It outlives the job manager, and the driver by so much that the last words of a crash are
written: it ends when nobody can write any more.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["copy"]

CHUNK = 1 << 16


def copy(source: int, path: str, size: int, kept: int) -> None:
    """Copies until the end of the input. Parts end at the end of a line, where there is one."""
    target = _opened(path)
    written = os.fstat(target).st_size
    while True:
        try:
            chunk = os.read(source, min(CHUNK, size))
        except InterruptedError:
            continue
        if not chunk:
            return
        if written + len(chunk) > size:
            cut = chunk.find(b"\n") + 1
            _write(target, chunk[:cut])
            chunk = chunk[cut:]
            os.close(target)
            _rotate(path, kept)
            target, written = _opened(path), 0
        _write(target, chunk)
        written += len(chunk)


def _opened(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _write(target: int, chunk: bytes) -> None:
    while chunk:
        try:
            chunk = chunk[os.write(target, chunk) :]
        except OSError:
            # The disk is full: what is said is lost, and the job goes on.
            return


def _rotate(path: str, kept: int) -> None:
    """``log`` becomes ``log.1``, that ``log.2``, and so on."""
    for number in range(kept, 0, -1):
        older = path if number == 1 else f"{path}.{number - 1}"
        if os.path.exists(older):
            os.replace(older, f"{path}.{number}")


if __name__ == "__main__":
    # What ends the job must not end its log.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    copy(0, sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
