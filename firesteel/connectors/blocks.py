"""Contiguous blocks: how a range of a batch is shared out, so that reading subtask by subtask keeps its order."""

from __future__ import annotations

__all__ = ["blocks"]


def blocks(start: int, end: int, parts: int) -> list[tuple[int, int] | None]:
    """Cuts [start, end) into ``parts`` contiguous blocks of nearly equal size; None where there is nothing left.

    >>> blocks(0, 10, 3), blocks(0, 1, 2)
    ([(0, 3), (3, 6), (6, 10)], [None, (0, 1)])
    """
    size = end - start
    bounds = [start + size * part // parts for part in range(parts + 1)]
    return [(low, high) if low < high else None for low, high in zip(bounds, bounds[1:], strict=False)]
