"""What all that is written has in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass

from firesteel.table.sql.source import Span

__all__ = ["Node", "nodes_of"]


@dataclass(frozen=True)
class Node:
    """Something that was written, and where."""

    span: Span = field(kw_only=True, compare=False, repr=False)


def nodes_of(root: object) -> Iterator[Node]:
    """All that was written, from left to right. Without recursion: chains of operators may be long."""
    left = [root]
    while left:
        node = left.pop()
        if isinstance(node, tuple):
            left += reversed(node)
        elif isinstance(node, Node) and is_dataclass(node):
            yield node
            left += [getattr(node, each.name) for each in reversed(fields(node)) if each.name not in ("span", "user")]
