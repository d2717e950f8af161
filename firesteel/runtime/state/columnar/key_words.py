"""Keys as words: each column of a key becomes 64-bit numbers, equal where its values are equal, and comes back.

Numbers and times are their own words. Texts, bytes, decimals, arrays, maps and rows get numbers of their own, which are
remembered. NULL is a bit of one more word, which exists once a NULL has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.runtime.columns.nested import encode_nested, is_nested, plain
from firesteel.runtime.state.columnar.index import WordIndex, Words
from firesteel.runtime.state.weight import mean_weight

__all__ = ["KeyIndex", "distinct_keys"]

_SPAN = 1 << 62
_ENTRY = 150
"""About what a dict, a list and a number take for each value."""


def distinct_keys(columns: Sequence[pa.Array], rows: int) -> tuple[npt.NDArray[np.integer[Any]], list[pa.Array]]:
    """For each row the number of its key, and the distinct keys in the order in which they came first.

    >>> codes, keys = distinct_keys([pa.array(["a", "b", "a"]), pa.array([1, None, 1])], 3)
    >>> codes.tolist(), [key.to_pylist() for key in keys]
    ([0, 1, 0], [['a', 'b'], [1, None]])
    """
    if not columns:
        return np.zeros(rows, np.int32), []
    encoded = [_encoded(column) for column in columns]
    if len(encoded) == 1:
        return encoded[0].indices.to_numpy(), [encoded[0].dictionary]
    combined = encoded[0].indices.to_numpy().astype(np.int64)
    spans = [len(one.dictionary) for one in encoded]
    span = spans[0]
    for one, size in zip(encoded[1:], spans[1:], strict=True):
        if span * max(size, 1) >= _SPAN:
            renumbered = pc.dictionary_encode(pa.array(combined))
            combined, span = renumbered.indices.to_numpy().astype(np.int64), len(renumbered.dictionary)
        combined = combined * size + one.indices.to_numpy()
        span *= max(size, 1)
    whole = pc.dictionary_encode(pa.array(combined))
    codes = whole.indices.to_numpy()
    first = np.empty(len(whole.dictionary), np.int64)
    # Backwards, so that the first row of each key is what stays.
    first[codes[::-1]] = np.arange(rows - 1, -1, -1)
    rows_of_keys = pa.array(first)
    return codes, [column.take(rows_of_keys) for column in columns]


def _encoded(column: pa.Array) -> pa.DictionaryArray:
    if isinstance(column, pa.DictionaryArray):
        column = column.cast(column.type.value_type)
    if is_nested(column.type):
        return encode_nested(column)
    if pa.types.is_floating(column.type):
        # -0.0 becomes 0.0, as in the index: two keys for one slot would overwrite each other.
        column = pc.add(column, pa.scalar(0.0, column.type))
    return pc.dictionary_encode(column, null_encoding="encode")


class _Numbers:
    """A column of numbers, times or truth values."""

    nbytes = 0
    """Beside its words."""

    def __init__(self, kind: pa.DataType) -> None:
        self._type = kind
        self._floating = pa.types.is_floating(kind)
        self._plain = kind if pa.types.is_integer(kind) else _plain_type(kind)

    def words(self, column: pa.Array) -> npt.NDArray[np.int64]:
        if column.null_count:
            column = pc.fill_null(column, pa.scalar(0, self._plain).cast(self._type))
        if self._floating:
            # -0.0 becomes 0.0, every NaN the same.
            floats = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False) + 0.0
            return np.where(np.isnan(floats), np.nan, floats).view(np.int64)
        plain = column if self._plain == self._type else column.cast(self._plain)
        numbers: npt.NDArray[np.int64] = plain.to_numpy(zero_copy_only=False).astype(np.int64)
        return numbers

    def values(self, words: npt.NDArray[np.int64], nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
        if self._floating:
            return pa.array(words.view(np.float64), mask=nulls).cast(self._type)
        if pa.types.is_boolean(self._type):
            return pa.array(words.astype(bool), mask=nulls)
        return pa.array(words, mask=nulls).cast(self._plain).cast(self._type)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_boolean(kind):
        return pa.int8()
    return pa.int32() if kind.bit_width == 32 else pa.int64()


class _Interned:
    """A column of anything else: each value gets a number when it first comes."""

    def __init__(self, kind: pa.DataType) -> None:
        self._type = kind
        self._numbers: dict[Any, int] = {}
        self._values: list[Any] = []

    @property
    def nbytes(self) -> int:
        """About how many bytes the values and their numbers take."""
        return int(len(self._values) * (_ENTRY + mean_weight(self._values)))

    def words(self, column: pa.Array) -> npt.NDArray[np.int64]:
        values = column.to_pylist()
        keys = list(map(plain, values)) if is_nested(self._type) else values
        numbers = self._numbers
        found = list(map(numbers.get, keys))
        if None in found:
            for at, number in enumerate(found):
                if number is None:
                    number = numbers.get(keys[at])
                    if number is None:
                        number = numbers[keys[at]] = len(numbers)
                        self._values.append(values[at])
                    found[at] = number
        return np.array(found, np.int64)

    def values(self, words: npt.NDArray[np.int64], nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
        known, numbers = self._values, words.tolist()
        if nulls is None:
            return pa.array([known[number] for number in numbers], self._type)
        pairs = zip(numbers, nulls.tolist(), strict=True)
        return pa.array([None if missing else known[number] for number, missing in pairs], self._type)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_primitive(kind) and not pa.types.is_decimal(kind)


class KeyIndex:
    """Keys of some columns to slots.

    >>> index = KeyIndex([pa.string(), pa.int32()])
    >>> index.slots([pa.array(["a", "b", None]), pa.array([1, None, 1], pa.int32())]).tolist()
    [0, 1, 2]
    >>> index.slots([pa.array([None, "b"]), pa.array([1, 2], pa.int32())]).tolist()
    [2, 3]
    >>> [column.to_pylist() for column in index.keys(np.array([2, 1]))]
    [[None, 'b'], [1, None]]
    """

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self._kinds = list(kinds)
        self._reset()

    def _reset(self) -> None:
        kinds = self._kinds
        self._columns: list[_Numbers | _Interned] = [
            _Numbers(kind) if _is_number(kind) else _Interned(kind) for kind in kinds
        ]
        # Without columns there is one key, and a word is needed to look it up with.
        self._index = WordIndex(max(1, len(kinds)))
        self._nulls = False

    @property
    def size(self) -> int:
        return self._index.size

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory it takes."""
        return self._index.nbytes + sum(column.nbytes for column in self._columns)

    def slots(self, keys: Sequence[pa.Array], add: bool = True) -> npt.NDArray[np.int64]:
        """The slots of distinct keys. New keys get new slots, or -1 if they are not to be added."""
        if not keys:
            return self._index.slots([np.zeros(1, np.int64)], add)
        words: Words = [column.words(values) for column, values in zip(self._columns, keys, strict=True)]
        if not self._nulls and any(values.null_count for values in keys):
            self._nulls = True
            self._index.widen()
        if self._nulls:
            marks = np.zeros(len(keys[0]), np.int64)
            for bit, values in enumerate(keys):
                if values.null_count:
                    marks |= pc.is_null(values).to_numpy(zero_copy_only=False).astype(np.int64) << bit
                    words[bit] = np.where(marks >> bit & 1, 0, words[bit])
            words.append(marks)
        return self._index.slots(words, add)

    def words(self, slots: npt.NDArray[np.int64], column: int) -> npt.NDArray[np.int64]:
        """The words of one column of the keys."""
        return self._index.words(slots)[column]

    def keys(self, slots: npt.NDArray[np.int64]) -> list[pa.Array]:
        """The keys of some slots, column by column."""
        words = self._index.words(slots)
        found = []
        for bit, column in enumerate(self._columns):
            nulls = (words[-1] >> bit & 1).astype(bool) if self._nulls else None
            found.append(column.values(words[bit], nulls))
        return found

    def keep(self, slots: npt.NDArray[np.int64]) -> None:
        """Forgets all other keys. These get new slots 0, 1, 2, … in their order."""
        keys = self.keys(slots)
        self._reset()
        if len(slots):
            self.slots(keys)
