"""Which kinds of rows a relation has."""

from __future__ import annotations

from firesteel.table.catalog.tables import StreamTable
from firesteel.table.logical.plan import Aggregate, Join, Plan, RowNumber, Scan
from firesteel.table.physical.window_groups import window_aggregate

__all__ = ["inserts_only"]


def inserts_only(plan: Plan) -> bool:
    """Whether nothing is ever taken back."""
    if isinstance(plan, Aggregate) and window_aggregate(plan) is not None:
        return True
    if isinstance(plan, Aggregate):
        # Every row once: it never goes away if its input's rows do not.
        return not plan.calls and inserts_only(plan.input)
    if isinstance(plan, RowNumber):
        return False
    if isinstance(plan, Join) and plan.kind not in ("INNER", "SEMI"):
        return False
    if isinstance(plan, Scan) and isinstance(plan.table, StreamTable):
        return plan.table.insert_only
    return all(map(inserts_only, plan.inputs))
