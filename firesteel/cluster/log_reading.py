"""Reads log files for the page: the end of one, a range of bytes, what follows a position, lines that hold a text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["LogPart", "find_lines", "read_part"]

LARGEST_PART = 1 << 20
_SEARCHED = 64 << 20
"""So many bytes are searched, from the end of the file."""
_LONGEST_LINE = 2_000


@dataclass(frozen=True)
class LogPart:
    """Some lines of a file."""

    text: str
    start: int
    """Where it begins, in bytes."""
    end: int
    """Where it ends, and what follows can be asked for."""
    size: int


def read_part(path: Path, start: int | None = None, length: int = 64 << 10) -> LogPart:
    """A part of a file, of whole lines where possible. ``start`` None means the end of the file; one that is beyond it
    (a file that was rotated is shorter) means the beginning."""
    length = max(1, min(length, LARGEST_PART))
    size = path.stat().st_size
    from_end = start is None
    begin = max(0, size - length) if start is None else (start if 0 <= start <= size else 0)
    with path.open("rb") as file:
        file.seek(begin)
        content = file.read(length)
    if from_end and begin and b"\n" in content:
        # The line that the part begins in the middle of.
        cut = content.index(b"\n") + 1
        begin, content = begin + cut, content[cut:]
    if begin + len(content) < size and b"\n" in content:
        content = content[: content.rindex(b"\n") + 1]
    # A character may be cut in two at the end of what a job has written so far.
    return LogPart(content.decode("utf-8", "replace"), begin, begin + len(content), size)


def find_lines(path: Path, wanted: str, limit: int = 500) -> list[tuple[int, str]]:
    """The last lines that contain a text, without regard to case: the position of each and the line."""
    needle = wanted.lower()
    found: list[tuple[int, str]] = []
    size = path.stat().st_size
    with path.open("rb") as file:
        position = max(0, size - _SEARCHED)
        file.seek(position)
        if position:
            position += len(file.readline())
        for line in file:
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if needle in text.lower():
                found.append((position, text[:_LONGEST_LINE]))
                if len(found) > 2 * limit:
                    del found[:-limit]
            position += len(line)
    return found[-limit:]
