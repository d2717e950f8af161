"""Which columns are times that a stream proceeds by: those with a watermark, and the clock."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.logical.analytic_windows import AnalyticWindow
from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal, rewrite
from firesteel.table.logical.interval_joins import PROCTIME, ROWTIME, Interval, interval_of_times
from firesteel.table.logical.joins import conjuncts
from firesteel.table.logical.plan import (
    Aggregate,
    Correlate,
    Expand,
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
    SortOrder,
    TemporalJoin,
    ToChangelog,
    UnionAll,
    WindowTable,
)
from firesteel.table.logical.window_columns import is_windowed, kept_columns

__all__ = [
    "PROCTIME",
    "ROWTIME",
    "UNSORTABLE",
    "in_order_of_time",
    "interval_of",
    "is_proctime",
    "is_rowtime",
    "primary_key",
    "time_attribute",
]


UNSORTABLE = (
    "A stream has no end, so it cannot be sorted: ORDER BY needs a LIMIT, or begins with a time attribute in ascending "
    "order."
)


def time_attribute(plan: Plan, index: int) -> str | None:
    """ROWTIME if watermarks are for a column, PROCTIME if the column is the clock; else None."""
    if isinstance(plan, Scan) or hasattr(plan, "rowtimes"):
        return ROWTIME if plan.names[index] in plan.rowtimes else None
    if isinstance(plan, Project):
        scan, name = plan.input, plan.column_names[index]
        if isinstance(scan, Scan) and name in scan.rowtimes and name not in scan.names:
            # It is computed from what the table reads.
            return ROWTIME
        expression = plan.expressions[index]
        if isinstance(expression, Call) and expression.function == "PROCTIME":
            return PROCTIME
        return time_attribute(plan.input, expression.index) if isinstance(expression, InputRef) else None
    if isinstance(plan, UnionAll):
        kinds = {time_attribute(branch, index) for branch in plan.branches}
        return kinds.pop() if len(kinds) == 1 else None
    below = _below(plan, index)
    return time_attribute(*below) if below is not None else None


def _below(plan: Plan, index: int) -> tuple[Plan, int] | None:
    """Where the values of a column come from unchanged, and in order."""
    if isinstance(plan, Filter | RowNumber | OverWindow | AnalyticWindow | Sort):
        return (plan.input, index) if index < len(plan.input.names) else None
    if isinstance(plan, TemporalJoin | LookupJoin):
        return (plan.left, index) if index < len(plan.left.names) else None
    if isinstance(plan, Join):
        # Watermarks are held back behind a join within an interval of event time: its rows are not late.
        interval = interval_of(plan)
        if interval is None or interval.processing_time:
            return None
        width = len(plan.left.names)
        return (plan.left, index) if index < width else (plan.right, index - width)
    if isinstance(plan, ToChangelog):
        return (plan.input, index - 1) if index else None
    if isinstance(plan, FromChangelog):
        return plan.input, index if index < plan.place else index + 1
    if isinstance(plan, Correlate):
        return (plan.input, plan.kept[index]) if index < len(plan.kept) else None
    if isinstance(plan, WindowTable):
        # What the windows were made of is an ordinary column behind them; window_time goes on.
        return (plan.input, plan.time) if index == len(plan.names) - 1 else None
    if isinstance(plan, Expand):
        return (plan.input, index) if index in kept_columns(plan) else None
    if isinstance(plan, Aggregate):
        return (plan.input, plan.keys[index]) if index < len(plan.keys) and is_windowed(plan) else None
    return None


def interval_of(plan: Join) -> Interval | None:
    """How far apart the times of both rows of a join may be, if the condition bounds that."""
    return interval_of_times(plan, time_attribute)


def is_rowtime(plan: Plan, index: int) -> bool:
    """Whether watermarks are for this column."""
    return time_attribute(plan, index) == ROWTIME


def is_proctime(plan: Plan, index: int) -> bool:
    """Whether the column is the clock's time: PROCTIME()."""
    return time_attribute(plan, index) == PROCTIME


def in_order_of_time(plan: Plan, order: Sequence[SortOrder]) -> bool:
    """Whether an order is one that a stream can be put in without an end: by its time, then by whatever else."""
    return bool(order) and not order[0].descending and time_attribute(plan, order[0].column) is not None


def primary_key(plan: Plan) -> tuple[int, ...] | None:
    """The columns of which a relation has each combination once: a declared key, or what deduplication is by."""
    place: dict[int, int] = {at: at for at in range(len(plan.names))}
    conditions: list[Expression] = []
    while isinstance(plan, Project | Filter):
        if isinstance(plan, Filter):
            conditions += conjuncts(plan.condition)
        else:
            below = plan.expressions
            place = {source.index: at for index, at in place.items() if isinstance(source := below[index], InputRef)}
            conditions = [_substituted(each, below) for each in conditions]
        plan = plan.input
    if isinstance(plan, Scan):
        names: tuple[str, ...] = getattr(plan.table, "primary_key", ())
        key = tuple(plan.names.index(name) for name in names if name in plan.names)
        complete = bool(names) and len(key) == len(names)
    elif isinstance(plan, RowNumber):
        key = plan.partition
        complete = _keeps_last(plan, conditions)
    else:
        return None
    return tuple(place[at] for at in key) if complete and all(at in place for at in key) else None


def _substituted(expression: Expression, below: tuple[Expression, ...]) -> Expression:
    return rewrite(expression, lambda part: below[part.index] if isinstance(part, InputRef) else None)


def _keeps_last(numbered: RowNumber, conditions: list[Expression]) -> bool:
    """Whether the newest row of each partition is what stays: WHERE rn = 1, ordered by the time, descending."""
    order, place = numbered.order, len(numbered.names) - 1
    if len(order) != 1 or not order[0].descending or not is_rowtime(numbered.input, order[0].column):
        return False
    for condition in conditions:
        if isinstance(condition, Call) and condition.function in ("=", "<="):
            column, bound = (_uncast(each) for each in condition.args)
            first = isinstance(bound, Literal) and bound.value == 1
            if first and isinstance(column, InputRef) and column.index == place:
                return True
    return False


def _uncast(expression: Expression) -> Expression:
    while isinstance(expression, Call) and expression.function == "CAST":
        expression = expression.args[0]
    return expression
