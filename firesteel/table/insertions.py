"""An INSERT before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.logical.plan import Plan
from firesteel.table.overwriting import Overwrite
from firesteel.table.sql.statements import OnConflict
from firesteel.table.table_descriptor import TableDescriptor

__all__ = ["Insertion"]


@dataclass(frozen=True)
class Insertion:
    """Rows, the table that they go to, and what becomes of those that are there."""

    target: str | TableDescriptor
    plan: Plan
    overwrite: bool | Overwrite = False
    on_conflict: OnConflict | None = None
