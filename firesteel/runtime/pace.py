"""How many records a task takes in hand at once, so that large ones do not fill its memory.

Operators work on lists of records, thousands at a time, which is what makes them fast. With records of megabytes such
a list would be gigabytes. So a task starts each batch with a few records, looks at what they weigh, and takes more as
long as that is little. A sample of each list is weighed, never each record.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any

__all__ = ["CHUNK", "WEIGHED_FROM", "Pace", "about"]

CHUNK = 8192
"""The most records that an operator gets at once."""

WEIGHED_FROM = 8
"""Shorter lists of results are not weighed: they cannot pile up."""

_FIRST = 16
_FEW = 128
"""Of fewer records than that each list of results is weighed: they may be large, and there are not many lists."""
_GROWTH = 8
_ROOM = 16 << 20
"""Bytes of results that a task should have in hand at once."""

_SIZED = frozenset((str, bytes, bytearray))
_SMALL = frozenset((int, float, bool, type(None)))
_SAMPLE = 8


def _size(value: Any, depth: int = 3) -> int:
    kind = type(value)
    if kind in _SMALL:
        return 8
    if kind in _SIZED:
        return len(value)
    if depth:
        if kind is tuple or kind is list:
            return _sizes(value, len(value), depth)
        if kind is dict:
            return _sizes(value.values(), len(value), depth)
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is dict:
            return _sizes(attributes.values(), len(attributes), depth)
        if isinstance(value, tuple | list | set | frozenset):
            return _sizes(value, len(value), depth)
    return sys.getsizeof(value, 64)


def _sizes(values: Iterable[Any], count: int, depth: int) -> int:
    if count <= _SAMPLE:
        return 8 + sum([_size(value, depth - 1) for value in values])
    return 8 + sum([_size(value, depth - 1) for value in islice(values, _SAMPLE)]) * count // _SAMPLE


def about(values: list[Any]) -> int:
    """About how many bytes the records of a list have, known by its first and its last.

    >>> about([("a", b"x" * 1000)] * 100) // 1000
    100
    """
    count = len(values)
    if count > 1:
        return (_size(values[0]) + _size(values[-1])) * count // 2
    return _size(values[0]) if count else 0


class Pace:
    """How many records the next call gets.

    >>> pace = Pace()
    >>> pace.records, pace.observe(16, 1000), pace.records
    (16, None, 128)
    >>> pace.observe(128, 128 << 20), pace.records
    (None, 16)
    """

    def __init__(self) -> None:
        self.records = _FIRST

    def begin(self) -> None:
        """A batch begins. It forgets the one before: a repeated batch goes the same way, in whichever process."""
        self.records = _FIRST

    @property
    def weighed_from(self) -> int:
        """How long a list of results of the next call must be to be weighed.

        >>> pace = Pace()
        >>> pace.weighed_from, pace.observe(16, 1000), pace.weighed_from
        (1, None, 8)
        """
        return 1 if self.records < _FEW else WEIGHED_FROM

    def observe(self, records: int, weight: int) -> None:
        """So many records have led to results of so many bytes."""
        fitting = records * _ROOM // max(weight, 1)
        self.records = max(1, min(fitting, self.records * _GROWTH, CHUNK))
