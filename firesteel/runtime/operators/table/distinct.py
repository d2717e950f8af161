"""DISTINCT: of all rows of a group with one value only the first counts, until the last of them is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.columns.scans import Segments, sorted_by_code
from firesteel.runtime.operators.table.chains import Chains
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["DistinctValues", "floored"]

Array = npt.NDArray[Any]


def floored(segments: Segments, signs: Array, base: Array) -> tuple[Array, Array | None]:
    """Running counts that never go below zero, and the rows that would have made them (None: there are none).

    >>> counts, ignored = floored(Segments(np.array([0]), 4), np.array([1, -1, -1, 1]), np.array([0]))
    >>> counts.tolist(), ignored.tolist()
    ([1, 0, 0, 1], [False, False, True, False])
    """
    counts = segments.running_sums(signs.astype(np.int64), base)
    if counts.min(initial=0) >= 0:
        return counts, None
    # How far below zero each segment has been so far.
    depth = segments.running_max(np.maximum(-counts, 0), np.zeros(len(base), np.int64))
    return counts + depth, depth > segments.before(depth, np.zeros(len(base), np.int64))


class DistinctValues:
    """How often each group has each value."""

    def __init__(
        self, key_types: Sequence[pa.DataType], parts: Sequence[pa.DataType], time_to_live: int | None = None
    ) -> None:
        """``parts``: what a group is known by besides the stream's key, and the type of the values."""
        self.table = SlotTable(key_types, [SlotColumn("count", pa.int64(), np.int64)], parts, time_to_live)
        self._group_types = [*key_types, *parts[:-1]]
        self._chains: Chains | None = None
        """Made where groups are asked for their values, which need not happen."""

    def weights(self, codes: Array, keys: list[pa.Array], column: pa.Array, weights: Array | None) -> Array:
        """For each row 1 if its value is new to the group, -1 if the group has lost it, else 0.

        ``codes`` says which of ``keys`` a row has; ``weights`` is 1, -1 or 0 where a row is to be left out.
        """
        rows = np.arange(len(codes)) if weights is None else np.flatnonzero(weights)
        found = np.zeros(len(codes), np.int8)
        if not len(rows):
            return found
        pairs, (groups, values) = distinct_keys([pa.array(codes[rows]), column.take(pa.array(rows))], len(rows))
        slots = self.table.slots([*(key.take(groups) for key in keys), values])
        order = sorted_by_code(pairs, len(slots))
        ends = np.cumsum(np.bincount(pairs, minlength=len(slots)))
        segments = Segments(np.concatenate(([0], ends[:-1])), len(rows))
        stored = self.table.values[0][slots]
        if weights is None:
            counts = segments.running_counts(stored)
        else:
            counts, _ = floored(segments, weights[rows][order], stored)
        before = segments.before(counts, stored)
        found[rows[order]] = np.sign(counts) - np.sign(before)
        left = counts[segments.ends]
        self.table.values[0][slots] = left
        self.table.put(slots[left > 0])
        self.table.remove(slots[left == 0])
        return found

    def forget(self, part: int, most: int) -> None:
        """Forgets the groups that have no more than this number as the given column of their key."""
        alive = np.flatnonzero(self.table.alive[: self.table.size])
        self.table.remove(alive[self.table.key_numbers(alive, part) <= most])

    def forget_groups(self, keys: list[pa.Array]) -> None:
        """Forgets the groups with these keys."""
        alive = np.flatnonzero(self.table.alive[: self.table.size])
        if not keys or not len(alive):
            self.table.remove(alive)
            return
        gone = set(zip(*(key.to_pylist() for key in keys), strict=True))
        owners = zip(*(key.to_pylist() for key in self.table.keys(alive)[: len(keys)]), strict=True)
        self.table.remove(alive[[owner in gone for owner in owners]])

    def groups_of(self, slots: Array) -> list[pa.Array]:
        """The keys of the groups that have some values, column by column."""
        return self.table.keys(slots)[:-1]

    def values_of(self, groups: Sequence[pa.Array], count: int) -> tuple[Array, pa.Array]:
        """The values that some groups have: for each the place of its group, and the value."""
        if self._chains is None:
            self._chains = Chains(self.table, self._group_types)
        places, slots = self._chains.matches(groups, count)
        there = self.table.alive[slots]
        return places[there], self.table.keys(slots[there])[-1]
