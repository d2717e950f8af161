"""The final rows of a query as a data frame."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from firesteel.common.types import RowKind
from firesteel.table.table_result import TableResult

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["final_frame"]


def final_frame(result: TableResult) -> pd.DataFrame:
    """What is left of the changelog when all input has come."""
    import pandas as pd

    kept: Counter[tuple[Any, ...]] = Counter()
    values: dict[tuple[Any, ...], list[Any]] = {}
    with result.collect() as rows:
        for row in rows:
            cells = list(row)
            key = tuple(map(repr, cells))
            values[key] = cells
            added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            kept[key] += 1 if added else -1
    final = [values[key] for key, number in kept.items() for _ in range(number)]
    return pd.DataFrame(final, columns=result.get_resolved_schema().get_column_names())
