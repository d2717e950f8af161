"""FOR SYSTEM_TIME AS OF: joins with the version of a table at a time, or with what a connector has now."""

from __future__ import annotations

from firesteel.table.functions.binding import cast_to
from firesteel.table.logical.expressions import Call, Expression, InputRef, columns_of, rewrite
from firesteel.table.logical.joins import all_of, conjuncts, joined
from firesteel.table.logical.plan import Join, LookupJoin, Plan, Project, Scan, TemporalJoin, unique_names
from firesteel.table.logical.time_attributes import is_proctime, is_rowtime, primary_key

__all__ = ["TemporalJoinError", "joined_as_of"]


class TemporalJoinError(Exception):
    """What Flink refuses too. The resolver adds the place."""


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
        return _looked_up(left, right, kind, condition, options)
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


def _looked_up(
    left: Plan, right: Plan, kind: str, condition: Expression | None, options: tuple[tuple[str, str], ...]
) -> Plan:
    if not isinstance(right, Scan):
        raise TemporalJoinError(
            "With PROCTIME() the joined table is one of a connector that can look up keys, not a view. Views have "
            "versions: join them at an event time."
        )
    width = len(left.names)
    keys: dict[int, Expression] = {}
    rest = []
    for part in conjuncts(condition):
        pair = _lookup_key(part, width)
        if pair is None or pair[0] in keys:
            rest.append(part)
            continue
        column, value = pair
        keys[column] = cast_to(value, right.types[column])
        if keys[column] is not value:
            # The value may have been changed by the cast.
            rest.append(part)
    if not keys:
        raise TemporalJoinError("A lookup needs a condition of the kind left.column = table.column.")
    expressions: list[Expression] = list(left.refs())
    places = []
    for value in keys.values():
        if value not in expressions:
            expressions.append(value)
        places.append(expressions.index(value))
    side = left
    added = len(expressions) - width
    if added:
        names = unique_names([*left.names, *(f"$k{at}" for at in range(added))])
        side = Project(left, tuple(expressions), names)

    def moved(part: Expression) -> Expression | None:
        return InputRef(part.index + added, part.type) if isinstance(part, InputRef) and part.index >= width else None

    checked = all_of([rewrite(part, moved) for part in rest])
    join = LookupJoin(side, right, kind, tuple(places), tuple(keys), checked, options)
    if not added:
        return join
    refs = join.refs()
    kept = (*refs[:width], *refs[width + added :])
    return Project(join, kept, unique_names([*left.names, *right.names]))


def _lookup_key(part: Expression, width: int) -> tuple[int, Expression] | None:
    """A column of the table, and what of the left side it equals."""
    if not isinstance(part, Call) or part.function != "=":
        return None
    for column, value in (part.args, part.args[::-1]):
        while isinstance(column, Call) and column.function == "CAST":
            column = column.args[0]
        used = list(columns_of(value))
        if isinstance(column, InputRef) and column.index >= width and used and max(used) < width:
            return column.index - width, value
    return None
