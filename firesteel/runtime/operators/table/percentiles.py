"""PERCENTILE: values of a group in order, and what lies at a share of them."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.operators.table.sequence_accumulators import Array, ValueList

__all__ = ["Percentile", "interpolated"]

_VALUE, _FREQUENCY = "value", "frequency"


class Percentile(ValueList):
    """Keeps the values in order. Where they have frequencies they are dicts with both."""

    def __init__(self, argument: pa.DataType, shares: Sequence[float], result: pa.DataType) -> None:
        super().__init__(argument, self._at_shares, result)
        self._shares = shares
        self._array = pa.types.is_list(result)
        self._weighted = pa.types.is_struct(argument)

    def _change(self, values: list[Any], value: Any, sign: int) -> None:
        if self._weighted and not _counts(value):
            return
        if sign > 0:
            insort(values, value, key=self._order)
            return
        order = self._order(value)
        for at in range(bisect_left(values, order, key=self._order), len(values)):
            if self._order(values[at]) != order:
                return
            if not self._weighted or values[at][_FREQUENCY] == value[_FREQUENCY]:
                del values[at]
                return

    def _order(self, value: Any) -> tuple[bool, Any]:
        """NaN is the largest, as in Java."""
        number = value[_VALUE] if self._weighted else value
        unknown = isinstance(number, float) and math.isnan(number)
        return unknown, 0.0 if unknown else number

    def _at_shares(self, values: list[Any]) -> Any:
        found = list(interpolated(values, self._shares, self._weighted))
        return found if self._array else found[0]

    def merge(self, segments: Segments, states: list[Array]) -> list[Array]:
        merged = super().merge(segments, states)
        for values in merged[0]:
            values.sort(key=self._order)
        return merged


def _counts(value: dict[str, Any]) -> bool:
    return value[_VALUE] is not None and value[_FREQUENCY] is not None and value[_FREQUENCY] > 0


def interpolated(values: Sequence[Any], shares: Sequence[float], weighted: bool = False) -> Iterator[float]:
    """What lies at these shares of the values, which are in order: between two of them in proportion.

    >>> list(interpolated([1, 3, 7, 8, 9], [0, 0.3, 1]))
    [1.0, 3.8000000000000007, 9.0]
    >>> list(interpolated([{"value": 1, "frequency": 2}, {"value": 4, "frequency": 1}], [0.5, 0.75], weighted=True))
    [1.0, 2.5]
    """
    ends: list[int] = []
    if weighted:
        total = 0
        for each in values:
            total += each[_FREQUENCY]
            ends.append(total)
    count = ends[-1] if weighted else len(values)

    def at(place: int) -> float:
        """Places are counted from 1."""
        return float(values[bisect_left(ends, place)][_VALUE] if weighted else values[place - 1])

    for share in shares:
        place = (count - 1) * share + 1
        before, behind = math.floor(place), math.ceil(place)
        low, high = at(before), at(behind)
        yield low if low == high else (behind - place) * low + (place - before) * high
