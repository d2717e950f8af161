"""Arrays, maps and rows as keys of a dict: Python has no hashes for lists and dicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.types import Row, make_row

__all__ = ["NAN", "as_key", "plain", "unique_pairs"]

NAN = ("NaN",)
"""Stands for NaN, which is not equal to itself."""


def plain(value: Any) -> Any:
    """A value as Arrow gives it, made of what can be a key of a dict; equal values become equal ones.

    >>> plain({"a": [1, float("nan")], "b": [("k", None)]}) == plain({"a": [1.0, float("nan")], "b": [("k", None)]})
    True
    """
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        # A row: its fields are always the same, in the same order.
        return tuple(map(plain, value.values()))
    # Two of these are not equal to each other.
    return NAN if isinstance(value, float) and value != value else value


def as_key(value: Any) -> Any:
    """A value as programs have it, where it is a key of a dict: arrays are tuples, maps are tuples of pairs.

    >>> as_key(["a", {"b": [1]}])
    ('a', (('b', (1,)),))
    """
    if isinstance(value, Row):
        return make_row(value._fields, [as_key(each) for each in value], value.get_row_kind())
    if isinstance(value, list | tuple):
        return tuple(map(as_key, value))
    if isinstance(value, dict):
        return tuple((as_key(key), as_key(each)) for key, each in value.items())
    return value


def unique_pairs(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Each key once, at its first place and with its last value.

    >>> unique_pairs([([1], "a"), ([2], "b"), ([1], "c")])
    [([1], 'c'), ([2], 'b')]
    """
    found: dict[Any, tuple[Any, Any]] = {}
    for key, value in pairs:
        place = plain(key)
        found[place] = (found[place][0] if place in found else key, value)
    return list(found.values())
