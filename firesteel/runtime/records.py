"""Records that are too large to change hands."""

from __future__ import annotations

from typing import Any

from firesteel.errors import ProgramError
from firesteel.runtime.frames import encode

__all__ = ["record_too_large", "size_text"]

SETTING = "firesteel.frames.max-record"


def size_text(size: int) -> str:
    """
    >>> size_text(1536 << 20), size_text(5 << 20), size_text(300)
    ('1.5 GB', '5.0 MB', '300 bytes')
    """
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def record_too_large(values: list[Any], limit: int) -> ProgramError | None:
    """What is to be said of the first record that is larger than the limit, if there is one."""
    for value in values:
        size = len(encode([value]))
        if size > limit:
            return ProgramError(
                f"A record of {size_text(size)} ({type(value).__name__}) cannot be passed on: the limit is "
                f"{size_text(limit)} ({SETTING}). Pass on where the data is, or cut it into smaller records."
            )
    return None
