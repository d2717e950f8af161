"""VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.operators.table.accumulators import Accumulator, Rows, Values
from firesteel.runtime.state.columnar.slots import SlotColumn

__all__ = ["Variance"]

Array = npt.NDArray[Any]

_FEW = 16
"""Segments that are this few are worked on one by one, row by row."""
_COUNT = SlotColumn("count", pa.int64(), np.int64)
_MEAN = SlotColumn("mean", pa.float64(), np.float64)
_SQUARES = SlotColumn("squares", pa.float64(), np.float64)


class Variance(Accumulator):
    """With ``sums`` it is made of the sums of values and of their squares, as in Flink's OVER; else of the mean and the
    squares of distances from it (Welford's method), as in Flink's groups. Both add in the order in which rows come, so
    they round alike."""

    columns = (_COUNT, _MEAN, _SQUARES)

    def __init__(self, argument: pa.DataType, result: pa.DataType, sample: bool, root: bool, sums: bool) -> None:
        self._divisor = 10.0**argument.scale if pa.types.is_decimal(argument) else 1.0
        self._result = result
        self._sample = sample
        self._root = root
        self._sums = sums

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        values = rows.values.astype(np.float64) / self._divisor
        signs = np.ones(segments.rows, np.int64) if rows.signs is None else rows.signs.astype(np.int64)
        counts = segments.running_sums(signs, base[0])
        if self._sums:
            counted = np.where(signs == 0, 0.0, values)
            sums = segments.running_float_sums(counted * signs, base[1])
            return [counts, sums, segments.running_float_sums(counted * counted * signs, base[2])]
        means, squares = np.empty(segments.rows), np.empty(segments.rows)
        # The first rows of all segments at once, then the second ones, as long as there are many.
        mean, square = base[1].copy(), base[2].copy()
        active, place = np.arange(len(segments.starts)), 0
        while len(active) >= _FEW:
            at = segments.starts[active] + place
            mean[active], square[active] = _step(values[at], signs[at], counts[at], mean[active], square[active])
            means[at], squares[at] = mean[active], square[active]
            place += 1
            active = active[segments.counts[active] > place]
        for number in active.tolist():
            rest = slice(int(segments.starts[number]) + place, int(segments.ends[number]) + 1)
            means[rest], squares[rest] = _one_by_one(
                values[rest].tolist(), signs[rest].tolist(), counts[rest].tolist(), mean[number], square[number]
            )
        return [counts, means, squares]

    def result(self, state: list[Array]) -> Values:
        counts, middle, squares = state
        there = np.maximum(counts, 1)
        distances = squares - middle * middle / there if self._sums else squares
        by = np.maximum(counts - 1, 1) if self._sample else there
        variances = np.maximum(distances, 0.0) / by
        found = np.sqrt(variances) if self._root else variances
        known = counts > (1 if self._sample else 0)
        if pa.types.is_decimal(self._result):
            unit = Decimal(1).scaleb(-self._result.scale)
            content = np.empty(len(found), object)
            content[:] = [
                int(Decimal(repr(value)).quantize(unit, ROUND_HALF_UP).scaleb(self._result.scale))
                for value in found.tolist()
            ]
            return Values(content, known)
        if pa.types.is_integer(self._result):
            found = np.trunc(found)
        return Values(found.astype(self._result.to_pandas_dtype(), copy=False), known)

    def merge(self, segments: Segments, states: list[Array]) -> list[Array]:
        counts, means, squares = states
        total = np.add.reduceat(counts, segments.starts)
        if self._sums:
            return [total, *(np.add.reduceat(each, segments.starts) for each in (means, squares))]
        mean = np.add.reduceat(counts * means, segments.starts) / np.maximum(total, 1)
        apart = means - segments.spread(mean)
        return [total, mean, np.add.reduceat(squares + counts * apart * apart, segments.starts)]


def _step(values: Array, signs: Array, counts: Array, mean: Array, squares: Array) -> tuple[Array, Array]:
    """One row of each segment."""
    apart = values - mean
    after = mean + signs * apart / np.maximum(counts, 1)
    moved = squares + signs * apart * (values - after)
    none = counts == 0
    idle = signs == 0
    return np.where(idle, mean, np.where(none, 0.0, after)), np.where(idle, squares, np.where(none, 0.0, moved))


def _one_by_one(
    values: list[float], signs: list[int], counts: list[int], mean: float, squares: float
) -> tuple[list[float], list[float]]:
    means, every = [], []
    for value, sign, count in zip(values, signs, counts, strict=True):
        if count == 0:
            mean = squares = 0.0
        elif sign:
            apart = value - mean
            mean += sign * apart / count
            squares += sign * apart * (value - mean)
        means.append(mean)
        every.append(squares)
    return means, every
