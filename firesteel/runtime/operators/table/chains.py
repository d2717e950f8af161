"""Slots of a table found by the first columns of their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.state.columnar.index import grown
from firesteel.runtime.state.columnar.key_words import KeyIndex, distinct_keys
from firesteel.runtime.state.columnar.slots import SlotTable

__all__ = ["Chains"]

Array = npt.NDArray[Any]

LONG = 256
"""Chains of more slots are not followed one by one."""


class Chains:
    """Slots with the same first columns are a chain: each knows the one before it. Chains are not stored, but made anew
    after a restart.

    >>> table = SlotTable([pa.string()], [], [pa.int64()])
    >>> _ = table.slots([pa.array(["a", "b", "a"]), pa.array([1, 2, 3])])
    >>> chains = Chains(table, [pa.string()])
    >>> [found.tolist() for found in chains.matches([pa.array(["b", "a", "c"])], 3)]
    [[0, 1, 1], [1, 2, 0]]
    """

    def __init__(self, table: SlotTable, key_types: Sequence[pa.DataType]) -> None:
        self._table = table
        self._key_types = list(key_types)
        self._generation = -1
        table.indexes.append(self)

    def matches(self, keys: Sequence[pa.Array], rows: int) -> tuple[Array, Array]:
        """For each slot of the chains of rows with these keys: the place of the row, and the slot. By row; slots that
        are not alive are among them."""
        self._link()
        codes, distinct = distinct_keys(keys, rows)
        found = self._index.slots(distinct, add=False)
        at = np.where(found >= 0, self._last[found], -1)[codes]
        places: list[Array] = []
        slots: list[Array] = []
        long = (found >= 0) & (self._lengths[found] > max(LONG, self._linked >> 12))
        if long.any():
            found_places, found_slots = self._long_matches(np.where(long, found, -1)[codes])
            places.append(found_places)
            slots.append(found_slots)
            at[long[codes]] = -1
        open_ones = np.flatnonzero(at >= 0)
        at = at[open_ones]
        while len(at):
            places.append(open_ones)
            slots.append(at)
            at = self._before[at]
            further = at >= 0
            at, open_ones = at[further], open_ones[further]
        if not places:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        every, matched = np.concatenate(places), np.concatenate(slots)
        order = np.argsort(every, kind="stable")
        return every[order], matched[order]

    def _long_matches(self, chains: Array) -> tuple[Array, Array]:
        """The same of the long chains of some rows (-1: another one), all at once: by going through all slots."""
        wanted = np.zeros(self._index.size, bool)
        wanted[chains[chains >= 0]] = True
        # The last one first, as everywhere.
        slots = np.flatnonzero(wanted[self._owners[: self._linked]])[::-1]
        owners = self._owners[slots]
        order = np.argsort(owners, kind="stable")
        slots, owners = slots[order], owners[order]
        asking = np.flatnonzero(chains >= 0)
        starts = np.searchsorted(owners, chains[asking])
        lengths = self._lengths[chains[asking]]
        ends = np.cumsum(lengths)
        return np.repeat(asking, lengths), slots[np.arange(ends[-1]) + np.repeat(starts - ends + lengths, lengths)]

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory it takes. What is of slots that are gone is made anew with the next rows."""
        if self._generation != self._table.generation:
            return 0
        arrays = (self._last, self._before, self._owners, self._lengths)
        return self._index.nbytes + sum(array.nbytes for array in arrays)

    def _link(self) -> None:
        """Puts rows that are new into the chains of their keys."""
        if self._generation != self._table.generation:
            self._generation = self._table.generation
            self._index = KeyIndex(self._key_types)
            self._last = np.full(1024, -1, np.int64)
            self._before = np.full(1024, -1, np.int64)
            self._owners = np.zeros(1024, np.int64)
            self._lengths = np.zeros(1024, np.int64)
            self._linked = 0
        size = self._table.size
        if size == self._linked:
            return
        fresh = np.arange(self._linked, size)
        keys = self._table.keys(fresh)[: len(self._key_types)]
        codes, distinct = distinct_keys(keys, len(fresh))
        owners = self._index.slots(distinct)
        self._last = _with_room(self._last, self._index.size)
        self._before = _with_room(self._before, size)
        self._owners = grown(self._owners, size)
        self._owners[fresh] = owners[codes]
        self._lengths = grown(self._lengths, self._index.size)
        self._lengths[owners] += np.bincount(codes, minlength=len(owners))
        order = np.argsort(codes, kind="stable")
        codes, rows = codes[order], fresh[order]
        first = np.ones(len(rows), bool)
        first[1:] = codes[1:] != codes[:-1]
        before = np.concatenate(([-1], rows[:-1]))
        before[first] = self._last[owners[codes[first]]]
        self._before[rows] = before
        ends = np.append(first[1:], True)
        self._last[owners[codes[ends]]] = rows[ends]
        self._linked = size


def _with_room(array: Array, size: int) -> Array:
    larger = grown(array, size)
    if larger is not array:
        larger[len(array) :] = -1
    return larger
