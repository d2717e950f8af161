"""What is left of a changelog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa

from firesteel.runtime.columns.kinds import data_of, kinds_of

__all__ = ["final_rows"]

_TAKEN_BACK = (1, 3)
"""Kinds of rows that are no more: -U and -D."""


def final_rows(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """What is left when all changes have been made, in the order in which it came.

    >>> schema = pa.schema([("n", pa.int64())])
    >>> changes = pa.record_batch({"n": [1, 1, 2], "$kind": pa.array([0, 1, 2], pa.int8())})
    >>> final_rows([changes], schema)["n"].to_pylist()
    [2]
    """
    if not schema.names:
        # Rows without columns cannot be taken back.
        return pa.Table.from_batches([data_of(batch) for batch in batches])
    plain = pa.Table.from_batches([data_of(batch).cast(schema) for batch in batches], schema)
    kinds = [kinds_of(batch) for batch in batches]
    if all(each is None or not set(each.tolist()) & set(_TAKEN_BACK) for each in kinds):
        return plain
    left: dict[str, list[int]] = defaultdict(list)
    number = 0
    for batch, kind in zip(batches, kinds, strict=True):
        names = kind.tolist() if kind is not None else [0] * batch.num_rows
        for row, what in zip(data_of(batch).to_pylist(), names, strict=True):
            places = left[repr(row)]
            if what in _TAKEN_BACK:
                places.pop()
            else:
                places.append(number)
            number += 1
    kept = sorted(place for places in left.values() for place in places)
    return plain.take(pa.array(kept, pa.int64()))
