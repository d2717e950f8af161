"""Running results per group, for all rows of a batch at once.

Rows are sorted by group, in their order within each, so that a group is a *segment*. What a loop over the rows would
have after each of them comes out of a few passes over whole arrays. Where a group is emptied and begins anew, another
segment begins.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Ints", "Segments", "sorted_by_code"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]

_RADIX = 1 << 16
_ROUNDS = 8
"""Floats of segments up to this length are added for all segments at once; longer ones segment by segment."""


def sorted_by_code(codes: npt.NDArray[np.integer[Any]], distinct: int) -> Ints:
    """The order in which rows of equal codes come together, stable."""
    if distinct <= _RADIX:
        # Numpy sorts numbers of 16 bits by radix, ten times as fast as others.
        return np.argsort(codes.astype(np.uint16), kind="stable")
    return np.argsort(codes, kind="stable")


class Segments:
    """Where each segment of the sorted rows begins.

    >>> segments = Segments(np.array([0, 2]), 5)
    >>> segments.running_sums(np.array([1, 2, 10, 20, 30]), np.array([100, 0])).tolist()
    [101, 103, 10, 30, 60]
    >>> segments.running_max(np.array([1, 2, 5, 3, 9]), np.array([0, 4])).tolist()
    [1, 2, 5, 5, 9]
    >>> segments.before(np.array([1, 2, 3, 4, 5]), np.array([-1, -2])).tolist()
    [-1, 1, -2, 3, 4]
    """

    def __init__(self, starts: Ints, rows: int) -> None:
        self.starts = starts
        self.rows = rows
        self.counts: Ints = np.diff(starts, append=rows)

    @cached_property
    def numbers(self) -> Ints:
        """The number of each row's segment."""
        return np.repeat(np.arange(len(self.starts)), self.counts)

    @cached_property
    def ends(self) -> Ints:
        return self.starts + self.counts - 1

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A value of each segment for each of its rows."""
        return np.repeat(values, self.counts)

    def places(self) -> Ints:
        """The place of each row in its segment, from 1 on."""
        places: Ints = np.arange(1, self.rows + 1) - self.spread(self.starts)
        return places

    def before(self, values: npt.NDArray[Any], first: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """For each row the value of the row before it; for the first row of each segment what is given."""
        shifted = np.empty_like(values)
        shifted[1:] = values[:-1]
        shifted[self.starts] = first
        return shifted

    def running_counts(self, base: Ints) -> Ints:
        """The number of rows so far."""
        counts: Ints = np.arange(1, self.rows + 1) + self.spread(base - self.starts)
        return counts

    def running_sums(self, values: Ints, base: Ints) -> Ints:
        """Sums so far of whole numbers. They wrap around, as machine numbers do."""
        sums = np.cumsum(values, dtype=values.dtype)
        running: Ints = sums + self.spread(base - (sums[self.starts] - values[self.starts]))
        return running

    def running_float_sums(self, values: Floats, base: Floats) -> Floats:
        """Sums so far of floats, added in their order: another order would round otherwise.

        >>> Segments(np.array([0, 1]), 3).running_float_sums(np.array([1e100, 0.1, 0.2]), np.zeros(2)).tolist()
        [1e+100, 0.1, 0.30000000000000004]
        """
        sums = values.copy()
        starts, counts = self.starts, self.counts
        sums[starts] += base
        longest = int(counts.max(initial=0))
        for place in range(1, min(longest, _ROUNDS)):
            at = starts[counts > place] + place
            sums[at] += sums[at - 1]
        for start, count in zip(starts[counts > _ROUNDS].tolist(), counts[counts > _ROUNDS].tolist(), strict=True):
            rest = slice(start + _ROUNDS - 1, start + count)
            np.cumsum(sums[rest], out=sums[rest])
        return sums

    def running_max(self, values: Ints, base: Ints) -> Ints:
        """The largest so far, of whole numbers that are not too far apart: see :meth:`fits`."""
        values = values.copy()
        values[self.starts] = np.maximum(values[self.starts], base)
        # Not from 0 on: of moments that are close to each other the span is small.
        least = int(values.min()) if len(values) else 0
        span = int(values.max(initial=least)) - least + 1
        # Each segment gets a range of its own, above those before it.
        offsets = self.spread(np.arange(len(self.starts), dtype=np.int64) * span - least)
        largest: Ints = np.maximum.accumulate(values + offsets) - offsets
        return largest

    def fits(self, least: int, most: int) -> bool:
        """Whether numbers from ``least`` to ``most`` get ranges of their own in every segment."""
        return (most - least + 2) * (len(self.starts) + 1) + abs(least) + abs(most) < 1 << 62
