"""What joins have in common: rows of a batch beside rows of the other side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.runtime.operators.table.join_state import JoinSide

__all__ = ["both_sides", "known_keys", "places_of", "rows_or_nulls", "true_rows"]

Array = npt.NDArray[Any]


def both_sides(left: pa.Schema, right: pa.Schema) -> pa.Schema:
    """The columns of both, the right ones under names that the left one does not have."""
    renamed = [field.with_name(f"{field.name}_right") if field.name in left.names else field for field in right]
    return pa.schema([*left, *renamed])


def known_keys(keys: Sequence[pa.Array], rows: int) -> Array | None:
    """The rows whose keys have no NULL; None: all."""
    if not any(key.null_count for key in keys):
        return None
    known = np.ones(rows, bool)
    for key in keys:
        known &= pc.is_valid(key).to_numpy(zero_copy_only=False)
    return np.flatnonzero(known)


def places_of(rows: Array) -> pa.Array:
    """Places to take rows from; NULL for -1."""
    nobody = rows < 0
    return pa.array(rows, mask=nobody) if nobody.any() else pa.array(rows)


def rows_or_nulls(side: JoinSide, slots: Array) -> list[pa.Array]:
    """The rows of some slots; NULLs for -1."""
    there = slots >= 0
    if there.all():
        return side.rows(slots)
    place = np.cumsum(there) - 1
    places = pa.array(place, mask=~there)
    return [column.take(places) for column in side.rows(slots[there])]


def true_rows(condition: Any, columns: Sequence[pa.Array], schema: pa.Schema, now: int) -> Array:
    """For which rows a condition is true, at a processing time."""
    joined = pa.RecordBatch.from_arrays(list(columns), schema=schema)
    true: Array = pc.fill_null(condition.evaluate(joined, now), False).to_numpy(zero_copy_only=False)
    return true
