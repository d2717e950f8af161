"""Reads the logs of jobs: which files there are, a range of bytes, the last lines."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LogFile", "last_lines", "log_files", "read_range"]

_NAME = re.compile(r"[A-Za-z0-9-]+\.log(?:\.\d+)?")


@dataclass(frozen=True)
class LogFile:
    """One file, or an older part of one."""

    name: str
    size: int
    changed: int
    """In milliseconds since 1970."""


def log_files(folder: Path) -> list[LogFile]:
    """Plain files only, by name."""
    found = []
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError:
        return []
    for entry in entries:
        if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            info = entry.stat(follow_symlinks=False)
            found.append(LogFile(entry.name, info.st_size, int(info.st_mtime * 1000)))
    return found


def read_range(path: Path, start: int, most: int) -> bytes:
    """So many bytes from a place on; from the end with a negative one."""
    with open(path, "rb", opener=_no_links) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size + start) if start < 0 else min(start, size))
        return file.read(most)


def last_lines(path: Path, count: int, most: int = 1 << 20) -> bytes:
    """The last lines of a file, within its last bytes.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"one\\ntwo\\nthree\\n"); file.flush()
    ...     last_lines(Path(file.name), 2)
    b'two\\nthree\\n'
    """
    content = read_range(path, -most, most)
    lines = content.splitlines(keepends=True)
    return b"".join(lines[-count:]) if count > 0 else b""


def _no_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)
