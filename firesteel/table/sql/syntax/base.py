"""What all that is written has in common."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.table.sql.source import Span

__all__ = [
    "Node",
]


@dataclass(frozen=True)
class Node:
    """Something that was written, and where."""

    span: Span = field(kw_only=True, compare=False, repr=False)
