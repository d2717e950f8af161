"""Which kinds of rows a relation has."""

from __future__ import annotations

from firesteel.common.types import RowKind
from firesteel.table.catalog.tables import DeclaredTable, StreamTable
from firesteel.table.logical.expressions import AggregateCall, InputRef
from firesteel.table.logical.patterns import MatchRecognize
from firesteel.table.logical.plan import (
    Aggregate,
    Filter,
    FromChangelog,
    Join,
    LookupJoin,
    OverWindow,
    Plan,
    Project,
    RowNumber,
    Scan,
    Sort,
    SortedWindow,
    TableAggregate,
    TemporalJoin,
    ToChangelog,
)
from firesteel.table.logical.time_attributes import interval_of, time_attribute
from firesteel.table.logical.window_columns import is_window_join, is_windowed, window_columns
from firesteel.table.physical.calcs import CalcPlan, merged_calc, place_limits
from firesteel.table.physical.external.connector import Changes
from firesteel.table.physical.sources import declared_changes
from firesteel.table.types.data_types import BigIntType

__all__ = ["changelog_mode", "inserts_only", "numbered_over"]


def inserts_only(plan: Plan) -> bool:
    """Whether nothing is ever taken back."""
    if isinstance(plan, Aggregate) and is_windowed(plan):
        return True
    if isinstance(plan, Aggregate):
        # Every row once: it never goes away if its input's rows do not.
        return not plan.calls and inserts_only(plan.input)
    if isinstance(plan, Project | Filter):
        calc = merged_calc(plan)
        if isinstance(calc.input, RowNumber):
            return numbered_over(calc, calc.input) is not None or window_columns(calc.input) is not None
    if isinstance(plan, SortedWindow | TableAggregate):
        return False
    if isinstance(plan, Sort) and plan.limit is not None:
        return False
    if isinstance(plan, RowNumber):
        return window_columns(plan) is not None
    if isinstance(plan, MatchRecognize | ToChangelog):
        return True
    if isinstance(plan, FromChangelog):
        return all(kind == RowKind.INSERT.value for _, kind in plan.kinds)
    if isinstance(plan, Join) and (is_window_join(plan) or interval_of(plan) is not None):
        return True
    if isinstance(plan, Join) and plan.kind not in ("INNER", "SEMI"):
        return False
    if isinstance(plan, TemporalJoin):
        return inserts_only(plan.left)
    if isinstance(plan, Scan) and isinstance(plan.table, StreamTable):
        return plan.table.insert_only
    if isinstance(plan, Scan) and isinstance(plan.table, DeclaredTable):
        return declared_changes(plan.table, plan.path) is Changes.INSERT
    return all(map(inserts_only, plan.inputs))


def changelog_mode(plan: Plan) -> str:
    """The kinds of rows that a relation may have, as Flink writes them. No update comes without what was before."""
    kinds = _kinds(plan)
    names = [("I", "I"), ("U", "UB"), ("U", "UA"), ("D", "D")]
    return f"[{','.join(name for kind, name in names if kind in kinds)}]"


def _kinds(plan: Plan) -> frozenset[str]:
    if inserts_only(plan):
        return frozenset("I")
    below = frozenset[str]().union(*map(_kinds, plan.inputs))
    if isinstance(plan, Project | Filter):
        calc = merged_calc(plan)
        return frozenset("IUD") if isinstance(calc.input, RowNumber) else _kinds(calc.input)
    if isinstance(plan, Aggregate):
        # A group goes when its last row is taken back.
        return frozenset("IU" if below == {"I"} else "IUD")
    if isinstance(plan, Join) and plan.kind != "INNER":
        # A row without a match is taken back when one comes.
        return below | {"I", "D"}
    if isinstance(plan, TemporalJoin | LookupJoin):
        return _kinds(plan.left)
    if isinstance(plan, FromChangelog):
        return frozenset("IUUD"[kind] for _, kind in plan.kinds)
    if isinstance(plan, Scan | RowNumber | Sort | SortedWindow | TableAggregate):
        return frozenset("IUD")
    return below


def numbered_over(calc: CalcPlan, numbered: RowNumber) -> Plan | None:
    """ROW_NUMBER() in the order of time whose number is not limited: it counts rows, and never takes one back."""
    order = numbered.order
    if len(order) != 1 or order[0].descending or time_attribute(numbered.input, order[0].column) is None:
        return None
    if place_limits(calc, len(numbered.names) - 1) is not None:
        return None
    count = AggregateCall("COUNT", (), BigIntType(is_nullable=False))
    over = OverWindow(numbered.input, numbered.partition, order[0].column, True, None, (count,))
    plan: Plan = over if calc.condition is None else Filter(over, calc.condition)
    same = [InputRef(at, kind) for at, kind in enumerate(over.types)] == list(calc.expressions)
    return plan if same and plan.names == calc.names else Project(plan, calc.expressions, calc.names)
