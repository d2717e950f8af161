"""Rows in an order."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.logical.plan import SortOrder

__all__ = ["sorted_rows"]


def sorted_rows(rows: pa.Table, order: Sequence[SortOrder]) -> pa.Table:
    """The rows in an order; those that are equal stay as they were."""
    for each in reversed(order):
        # From the last column to the first one, because NULLs have a place of their own in each.
        column = rows.column(each.column)
        places = pc.array_sort_indices(
            column.combine_chunks(),
            order="descending" if each.descending else "ascending",
            null_placement="at_end" if each.nulls_last else "at_start",
        )
        rows = rows.take(places)
    return rows
