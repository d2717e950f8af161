"""From what was and what is to rows of a changelog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.columns.kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, with_kinds
from firesteel.runtime.operators.table.accumulators import Values, arrow_of

__all__ = ["changelog", "differing", "joined"]

Array = npt.NDArray[Any]
Pair = tuple[Values, Values]
"""A column before and after."""


def differing(columns: Sequence[Pair], rows: int) -> Array:
    """Where any column has changed."""
    changed = np.zeros(rows, bool)
    for before, after in columns:
        changed |= after.differ(before)
    return changed


def joined(parts: list[Values]) -> Values:
    """Values one behind the other."""
    if len(parts) == 1:
        return parts[0]
    content = np.concatenate([part.content for part in parts])
    if all(part.known is None for part in parts):
        return Values(content)
    return Values(
        content,
        np.concatenate([np.ones(len(part.content), bool) if part.known is None else part.known for part in parts]),
    )


def changelog(
    keys: Sequence[pa.Array],
    existed: Array,
    exists: Array | None,
    changed: Array | None,
    columns: Sequence[Pair],
    schema: pa.Schema,
    update_before: bool,
    sorted_at: Array | None = None,
) -> pa.RecordBatch:
    """Up to two rows for each change: what was (-U, or -D if nothing is left), and what is (+U, or +I if nothing was).

    ``exists`` and ``changed`` None: everywhere. ``sorted_at``: where in all arrays but the keys the change of each key
    is; None if they have the order of the keys.

    >>> before, after = Values(np.array([0, 1])), Values(np.array([1, 2]))
    >>> schema = pa.schema([("word", pa.string()), ("count", pa.int64())])
    >>> existed = np.array([False, True])
    >>> changelog([pa.array(["a", "b"])], existed, None, None, [(before, after)], schema, True).to_pydict()
    {'word': ['a', 'b', 'b'], 'count': [1, 1, 2], '$kind': [0, 1, 2]}
    """
    rows = len(existed)
    old = existed
    new = np.ones(rows, bool) if changed is None else changed | ~existed
    if changed is not None:
        old = existed & (changed if exists is None else changed | ~exists)
    if not update_before:
        old = np.zeros(rows, bool) if exists is None else old & ~exists
    if exists is not None:
        new = new & exists
    kept = None if old.all() and new.all() else _interleaved(sorted_at, old, new)
    was = UPDATE_BEFORE if exists is None else np.where(exists, UPDATE_BEFORE, DELETE)
    kinds = _interleaved(sorted_at, was, np.where(existed, UPDATE_AFTER, INSERT).astype(np.int8))
    source = np.repeat(np.arange(rows), 2)
    if kept is not None:
        kinds, source = kinds[kept], source[kept]
    places = pa.array(source)
    arrays = [key.take(places) for key in keys]
    for (before, after), field in zip(columns, list(schema)[len(keys) :], strict=True):
        both = before.map(lambda one, other: _interleaved(sorted_at, one, other), after)
        arrays.append(arrow_of(both if kept is None else both.map(lambda values: values[kept]), field.type))
    return with_kinds(pa.RecordBatch.from_arrays(arrays, schema=schema), kinds)


def _interleaved(sorted_at: Array | None, was: Array | int, now: Array) -> Array:
    """Two values for each change."""
    both = np.empty(2 * len(now), now.dtype)
    if sorted_at is not None:
        was, now = was if isinstance(was, int) else was[sorted_at], now[sorted_at]
    both[0::2] = was
    both[1::2] = now
    return both
