"""The kind of each row of a changelog, as one more column of a batch.

The column comes last and is called :data:`KIND`. A batch without it consists of insertions. So a stream that only ever
inserts pays nothing for what others need.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "DELETE",
    "INSERT",
    "KIND",
    "UPDATE_AFTER",
    "UPDATE_BEFORE",
    "Kinds",
    "data_of",
    "has_kinds",
    "kinds_of",
    "signs_of",
    "with_kinds",
]

INSERT: Final = 0
UPDATE_BEFORE: Final = 1
UPDATE_AFTER: Final = 2
DELETE: Final = 3

KIND: Final = "$kind"
"""The name of the column. No column of a table begins with a dollar sign."""

Kinds = npt.NDArray[np.int8]

_SIGNS = np.array([1, -1, 1, -1], np.int8)


def has_kinds(schema: pa.Schema) -> bool:
    return len(schema) > 0 and schema.field(len(schema) - 1).name == KIND


def kinds_of(batch: pa.RecordBatch) -> Kinds | None:
    """The kind of each row; None where all are insertions.

    >>> kinds_of(pa.record_batch({"a": [1]})) is None
    True
    """
    if not has_kinds(batch.schema):
        return None
    kinds: Kinds = batch.column(batch.num_columns - 1).to_numpy()
    return kinds


def data_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without the kinds of its rows."""
    if not has_kinds(batch.schema):
        return batch
    return batch.select(list(range(batch.num_columns - 1)))


def with_kinds(batch: pa.RecordBatch, kinds: Any | None) -> pa.RecordBatch:
    """The batch, which has no kinds, with these.

    >>> with_kinds(pa.record_batch({"a": [1, 1]}), [1, 2]).to_pydict()
    {'a': [1, 1], '$kind': [1, 2]}
    """
    if kinds is None:
        return batch
    column = kinds if isinstance(kinds, pa.Array) else pa.array(kinds, pa.int8())
    return batch.append_column(KIND, column)


def signs_of(kinds: Kinds) -> Kinds:
    """1 for each row that adds something, -1 for each that takes something back.

    >>> signs_of(np.array([0, 1, 2, 3], np.int8)).tolist()
    [1, -1, 1, -1]
    """
    signs: Kinds = _SIGNS[kinds]
    return signs
