"""Places in a text."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Span", "line_and_column"]


class Span(NamedTuple):
    """From one character up to another, which is not part of it."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """From the start of this to the end of the other."""
        return Span(self.start, max(self.end, other.end))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Both counted from one.

    >>> line_and_column("a\\nbc", 3)
    (2, 2)
    """
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
