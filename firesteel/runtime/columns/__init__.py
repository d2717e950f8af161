"""Rows as columns: Arrow batches with a kind for each row, how they are routed, sent, and scanned group by group.

Nothing here is imported by jobs whose records are Python objects.
"""

from firesteel.runtime.columns.kinds import (
    DELETE,
    INSERT,
    KIND,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    data_of,
    kinds_of,
    with_kinds,
)
from firesteel.runtime.columns.types import ColumnsType

__all__ = [
    "DELETE",
    "INSERT",
    "KIND",
    "UPDATE_AFTER",
    "UPDATE_BEFORE",
    "ColumnsType",
    "data_of",
    "kinds_of",
    "with_kinds",
]
