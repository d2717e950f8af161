"""Where rows live: the engine's stable hash and key groups, for all rows of a batch at once.

The key of a row is the value of its key column, or a tuple of several. It has the same hash here and in
:mod:`firesteel.runtime.keys`: so state that was written as columns may be read, edited and restored key by key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.datastream.functions import KeySelector
from firesteel.runtime.columns.nested import is_nested, plain
from firesteel.runtime.keys import stable_hash, stable_hashes, subtask_of

__all__ = ["KeyColumns", "key_groups", "row_hashes", "subtasks_by_group"]

Hashes = npt.NDArray[np.uint32]

_MERSENNE = (1 << 61) - 1
_NULL = np.uint32(stable_hash(None))
_NAN = "NaN"
_TUPLE = 17
_MULTIPLIER = np.uint32(0x45D9F3B)
_SPREAD = np.uint32(0x9E3779B1)


class KeyColumns(KeySelector):
    """Keys a stream of batches by some of their columns.

    >>> KeyColumns((0, 1)).get_key(pa.record_batch({"a": [1, 2], "b": ["x", "y"], "c": [0, 0]}))
    [(1, 'x'), (2, 'y')]
    """

    def __init__(self, indices: Sequence[int]) -> None:
        self.indices = tuple(indices)

    def get_key(self, value: pa.RecordBatch) -> list[Any]:
        """The key of each row."""
        columns = [value.column(index).to_pylist() for index in self.indices]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)) or [()] * value.num_rows

    def __repr__(self) -> str:
        return f"KeyColumns{self.indices}"


def _mix(numbers: Hashes) -> Hashes:
    numbers = (numbers ^ (numbers >> np.uint32(16))) * _MULTIPLIER
    numbers = (numbers ^ (numbers >> np.uint32(16))) * _MULTIPLIER
    return numbers ^ (numbers >> np.uint32(16))


def _of_integers(numbers: npt.NDArray[np.int64]) -> Hashes:
    """What Python's hash of such a number is folded to."""
    if len(numbers) and (numbers.min() <= -_MERSENNE or numbers.max() >= _MERSENNE):
        numbers = np.fmod(numbers, _MERSENNE)
    # Python's hash of -1 is -2.
    folded = np.where(numbers == -1, np.int64(-2), numbers)
    return _mix((folded ^ (folded >> 32)).astype(np.uint32))


def _of_column(column: pa.Array) -> Hashes:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_integer(column.type):
        if column.null_count:
            filled = _of_integers(_as_int64(pc.fill_null(column, pa.scalar(0, column.type))))
            filled[pc.is_null(column).to_numpy(zero_copy_only=False)] = _NULL
            return filled
        return _of_integers(_as_int64(column))
    if is_nested(column.type):
        return np.fromiter((stable_hash(plain(value)) for value in column.to_pylist()), np.uint32, len(column))
    # Each value is hashed once; what a column has many of is mostly alike.
    encoded = column if isinstance(column, pa.DictionaryArray) else pc.dictionary_encode(column)
    values = encoded.dictionary.to_pylist()
    if pa.types.is_floating(encoded.dictionary.type):
        # In SQL a NaN is a key like any other; keys of programs must not have it.
        values = [_NAN if value != value else value for value in values]
    hashed = np.fromiter(stable_hashes(values), np.uint32, len(values))
    if encoded.null_count:
        hashed = np.append(hashed, _NULL)
    indices = pc.fill_null(encoded.indices, len(values)) if encoded.null_count else encoded.indices
    found: Hashes = hashed[indices.to_numpy()]
    return found


def _as_int64(column: pa.Array) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers


def row_hashes(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """The stable hash of each row's key.

    >>> row_hashes([pa.array([7, -1])], 2).tolist() == [stable_hash(7), stable_hash(-1)]
    True
    >>> row_hashes([pa.array([7]), pa.array(["a"])], 1).tolist() == [stable_hash((7, "a"))]
    True
    """
    if len(columns) == 1:
        return _of_column(columns[0])
    hashed: Hashes = np.full(rows, _TUPLE, np.uint32)
    for column in columns:
        hashed = _mix(hashed * np.uint32(31) + _of_column(column))
    return hashed


def key_groups(hashed: Hashes, max_parallelism: int) -> npt.NDArray[np.uint32]:
    """The key group of each hash: :func:`firesteel.runtime.keys.key_group`."""
    return ((hashed * _SPREAD) >> np.uint32(8)) % np.uint32(max_parallelism)


def subtasks_by_group(max_parallelism: int, parallelism: int) -> npt.NDArray[np.uint16]:
    """The subtask of each key group."""
    return np.array([subtask_of(group, max_parallelism, parallelism) for group in range(max_parallelism)], np.uint16)
