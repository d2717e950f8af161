"""FOR SYSTEM_TIME AS OF: joins with the version of a table at a time, or with what a connector has now."""

from __future__ import annotations

from firesteel.table.logical.expressions import Call, Expression, InputRef
from firesteel.table.logical.joins import joined
from firesteel.table.logical.lookup_joins import TemporalJoinError, looked_up
from firesteel.table.logical.plan import Join, Plan, Project, TemporalJoin
from firesteel.table.logical.time_attributes import is_proctime, is_rowtime, primary_key

__all__ = ["TemporalJoinError", "joined_as_of"]


def joined_as_of(
    left: Plan,
    right: Plan,
    kind: str,
    condition: Expression | None,
    time: Expression,
    options: tuple[tuple[str, str], ...] = (),
) -> Plan:
    """The columns of both sides. ``time`` is a column of the left one, ``options`` those of the hint LOOKUP."""
    if kind not in ("INNER", "LEFT"):
        raise TemporalJoinError(f"A join with FOR SYSTEM_TIME AS OF is INNER or LEFT, not {kind}.")
    if not isinstance(time, InputRef):
        raise TemporalJoinError("FOR SYSTEM_TIME AS OF takes a time attribute of the left table, and nothing else.")
    if is_proctime(left, time.index):
        return looked_up(left, right, kind, condition, options)
    if not is_rowtime(left, time.index):
        raise TemporalJoinError(
            "FOR SYSTEM_TIME AS OF takes a time attribute of the left table: a column with a watermark, or PROCTIME()."
        )
    return _versioned(left, right, kind, condition, time.index)


def _versioned(left: Plan, right: Plan, kind: str, condition: Expression | None, time: int) -> Plan:
    key = primary_key(right)
    if key is None:
        raise TemporalJoinError(
            "A versioned table needs a primary key: PRIMARY KEY (...) NOT ENFORCED, or a view that keeps the last row "
            "of each key by time (ROW_NUMBER() OVER (PARTITION BY key ORDER BY time DESC) = 1)."
        )
    times = [index for index in range(len(right.names)) if is_rowtime(right, index)]
    if len(times) != 1:
        raise TemporalJoinError("A versioned table needs a time: WATERMARK FOR ... of the table that is joined.")
    plan = joined(left, right, kind, condition, push_right=False)
    join = plan.input if isinstance(plan, Project) else plan
    assert isinstance(join, Join)
    used = {_source(join.right, at, len(right.names)) for at in join.right_keys}
    missing = [right.names[at] for at in key if at not in used]
    if missing:
        raise TemporalJoinError(
            f"The condition has to have the whole primary key of the versioned table: {', '.join(missing)} is missing."
        )
    result = TemporalJoin(
        join.left, join.right, kind, join.left_keys, join.right_keys, join.condition, (time, times[0])
    )
    if not isinstance(plan, Project):
        return result
    return Project(result, plan.expressions, plan.column_names)


def _source(right: Plan, column: int, width: int) -> int:
    """The column that a key of the join is, also where it was cast."""
    if column < width or not isinstance(right, Project):
        return column
    expression = right.expressions[column]
    while isinstance(expression, Call) and expression.function == "CAST":
        expression = expression.args[0]
    return expression.index if isinstance(expression, InputRef) else -1
