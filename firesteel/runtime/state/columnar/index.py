"""A hash index in numpy: keys of one or more 64-bit words to slots 0, 1, 2, …, many keys at a time.

Open addressing. A look-up takes all keys at once through the first place of the table that each may be in, then those
that met another key through the next place, and so on: few rounds, each a handful of array operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["WordIndex", "Words"]

Words = list[npt.NDArray[np.int64]]
"""One array for each word of the keys."""

Slots = npt.NDArray[np.int64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FIRST = 1 << 10


class WordIndex:
    """Slots are given out in the order in which keys come.

    >>> index = WordIndex(2)
    >>> words = [np.array([1, 2, 1]), np.array([7, 7, 8])]
    >>> index.slots(words).tolist(), index.slots([w[::-1] for w in words]).tolist(), index.size
    ([0, 1, 2], [2, 1, 0], 3)
    """

    def __init__(self, width: int) -> None:
        self.size = 0
        self._words: Words = [np.zeros(_FIRST, np.int64) for _ in range(width)]
        self._set_table(2 * _FIRST)

    def _set_table(self, capacity: int) -> None:
        self._table = np.full(capacity, -1, np.int64)
        self._shift = np.uint64(64 - (capacity.bit_length() - 1))

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + sum(word.nbytes for word in self._words)

    @property
    def width(self) -> int:
        return len(self._words)

    def words(self, slots: Slots | slice) -> Words:
        """The keys of some slots."""
        return [word[slots] for word in self._words]

    def slots(self, words: Words, add: bool = True) -> Slots:
        """The slots of keys, no two of which are equal. New keys get new slots, or -1 if they are not to be added."""
        table, mask = self._table, len(self._table) - 1
        at = self._hashed(words)
        found = table[at]
        # Most keys are where they belong, and nearly all tables are small enough to say so at once.
        known = found >= 0
        for word, own in zip(words, self._words, strict=True):
            known &= own[found] == word
        if known.all():
            return found
        fresh = []
        open_ones = np.flatnonzero(~known)
        while len(open_ones):
            empty = found[open_ones] < 0
            fresh.append(open_ones[empty])
            open_ones = open_ones[~empty]
            at[open_ones] = (at[open_ones] + 1) & mask
            met = table[at[open_ones]]
            found[open_ones] = met
            other = met < 0
            for word, own in zip(words, self._words, strict=True):
                other |= own[met] != word[open_ones]
            open_ones = open_ones[other]
        added = np.concatenate(fresh)
        if len(added) and not add:
            found[added] = -1
        elif len(added):
            added.sort()
            found[added] = self._add([word[added] for word in words])
        return found

    def _add(self, words: Words) -> Slots:
        count = len(words[0])
        first, self.size = self.size, self.size + count
        self._words = [grown(own, self.size) for own in self._words]
        for own, word in zip(self._words, words, strict=True):
            own[first : self.size] = word
        slots = np.arange(first, self.size)
        if 2 * self.size > len(self._table):
            self._set_table(1 << (2 * self.size - 1).bit_length() + 1)
            self._place(self.words(slice(0, self.size)), np.arange(self.size))
        else:
            self._place(words, slots)
        return slots

    def _place(self, words: Words, slots: Slots) -> None:
        """Puts slots of keys that are not in the table into it."""
        table, mask = self._table, len(self._table) - 1
        at = self._hashed(words)
        while len(slots):
            free = table[at] < 0
            # Of those that want the same place the last one gets it; the others see that and go on.
            table[at[free]] = slots[free]
            left = table[at] != slots
            at, slots = (at[left] + 1) & mask, slots[left]

    def _hashed(self, words: Words) -> npt.NDArray[np.int64]:
        mixed = words[0].view(np.uint64) * _MULTIPLIER
        for word in words[1:]:
            mixed = ((mixed ^ (mixed >> np.uint64(32))) + word.view(np.uint64)) * _MULTIPLIER
        return (mixed >> self._shift).view(np.int64)

    def widen(self) -> None:
        """Adds a word, which is 0 in all keys that there are."""
        self._words.append(np.zeros(len(self._words[0]), np.int64))
        self._set_table(len(self._table))
        self._place(self.words(slice(0, self.size)), np.arange(self.size))


def grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The array with room for so many, and for as many again."""
    if size <= len(array):
        return array
    larger = np.zeros(max(2 * len(array), 1 << (size - 1).bit_length()), array.dtype)
    larger[: len(array)] = array
    return larger
