"""Contiguous blocks: how a range of a batch is shared out, so that reading subtask by subtask keeps its order."""

from __future__ import annotations

import itertools
import zlib
from typing import TypeVar

__all__ = ["blocks", "scattered", "spread"]

T = TypeVar("T")


def blocks(start: int, end: int, parts: int) -> list[tuple[int, int] | None]:
    """Cuts [start, end) into ``parts`` contiguous blocks of nearly equal size; None where there is nothing left.

    >>> blocks(0, 10, 3), blocks(0, 1, 2), blocks(1, 2, 2)
    ([(0, 3), (3, 6), (6, 10)], [(0, 1), None], [None, (1, 2)])
    """
    size = end - start
    if size < parts:
        return spread([(start + offset, start + offset + 1) for offset in range(size)], start, parts)
    bounds = [start + size * part // parts for part in range(parts + 1)]
    return list(itertools.pairwise(bounds))


def spread(few: list[T], position: int, parts: int) -> list[T | None]:
    """Gives fewer things than there are subtasks to neighbouring subtasks, by turns.

    In a slow stream each subtask must get a record now and then, or its event time would hold back that of all. The
    turn follows from the position, so that a replay reads the same.
    """
    if not few:
        return [None] * parts
    first = position // len(few) % (parts - len(few) + 1)
    return [None] * first + few + [None] * (parts - len(few) - first)


def scattered(position: int) -> int:
    """A number for positions that do not count records, such as bytes: they may all be even, say."""
    return zlib.crc32(position.to_bytes(8, "big"))
