"""Stored rows found by the group that they belong to, without looking at those of other groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from firesteel.runtime.columns.scans import sorted_by_code
from firesteel.runtime.operators.table.stored_rows import StoredRows
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotTable

__all__ = ["RowsOfGroups"]

Array = npt.NDArray[Any]

RECENT = 1024
"""So many rows may be looked through one by one, or an eighth of all."""


class RowsOfGroups:
    """Rows lie sorted by group; those that came since lie behind them, and are sorted in when they are many. What was
    removed is left out then. Nothing of it is stored: it is made anew when slots got other numbers."""

    def __init__(self, rows: StoredRows, groups: SlotTable, width: int) -> None:
        """``width``: how many columns a key of the groups has, with which keys of the rows begin."""
        self._rows, self._groups, self._width = rows, groups, width
        self._seen: tuple[int, ...] = ()
        self._number: Array = np.full(0, -1, np.int64)
        """Of each group -1, but while something is looked for."""
        self._sorted: Array = np.zeros(0, np.int64)
        self._starts: Array = np.zeros(2, np.int64)
        self._forget_recent()

    def _forget_recent(self) -> None:
        self._recent: list[Array] = []
        self._recent_groups: list[Array] = []
        self._recent_count = 0

    def add(self, slots: Array, groups: Array) -> None:
        """Rows that were stored just now, in their order, with the slots of their groups. :meth:`find` came before."""
        self._recent.append(slots)
        self._recent_groups.append(groups)
        self._recent_count += len(slots)
        self._seen = self._state()

    def find(self, groups: Array) -> tuple[Array, Array]:
        """The rows of these groups: their slots, and the place of their group among those asked for. Those of a group
        are in the order in which they came."""
        if self._seen != self._state():
            self._sort_all()
        elif self._recent_count > max(RECENT, len(self._sorted) // 8):
            self._sort(*self._known())
        inside = groups < len(self._starts) - 1
        known = np.where(inside, groups, 0)
        begins = self._starts[known]
        counts = np.where(inside, self._starts[known + 1] - begins, 0)
        places = np.repeat(np.arange(len(groups)), counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        slots = self._sorted[np.repeat(begins, counts) + within]
        if self._recent_count:
            slots, places = self._with_recent(groups, slots, places)
        alive = self._rows.table.alive[slots]
        return slots[alive], places[alive]

    def _with_recent(self, groups: Array, slots: Array, places: Array) -> tuple[Array, Array]:
        if len(self._recent) > 1:
            self._recent = [np.concatenate(self._recent)]
            self._recent_groups = [np.concatenate(self._recent_groups)]
        if len(self._number) < self._groups.size:
            self._number = np.full(2 * self._groups.size, -1, np.int64)
        self._number[groups] = np.arange(len(groups))
        found = self._number[self._recent_groups[0]]
        self._number[groups] = -1
        there = found >= 0
        return np.concatenate((slots, self._recent[0][there])), np.concatenate((places, found[there]))

    def _state(self) -> tuple[int, ...]:
        table = self._rows.table
        return table.generation, table.size, self._groups.generation

    def _sort_all(self) -> None:
        slots, _ = self._rows.content()
        codes, keys = distinct_keys(self._rows.table.keys(slots)[: self._width], len(slots))
        owners = self._groups.slots(keys)[codes] if len(slots) else codes
        self._sort(slots, owners)
        self._seen = self._state()

    def _known(self) -> tuple[Array, Array]:
        """Rows and groups as they are known, each group's in order."""
        sizes = np.diff(self._starts)
        slots = np.concatenate((self._sorted, *self._recent))
        owners = np.concatenate((np.repeat(np.arange(len(sizes)), sizes), *self._recent_groups))
        alive = self._rows.table.alive[slots]
        return slots[alive], owners[alive]

    def _sort(self, slots: Array, owners: Array) -> None:
        size = self._groups.size
        self._sorted = slots[sorted_by_code(owners, size)]
        counts = np.bincount(owners, minlength=size)
        self._starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        if len(self._starts) == 1:
            self._starts = np.zeros(2, np.int64)
        self._forget_recent()
