"""Leaves out columns that nobody asks for, before they are sent and kept in state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from firesteel.table.logical.expressions import AggregateCall, Call, Expression, InputRef, columns_of, rewrite
from firesteel.table.logical.plan import (
    Aggregate,
    Correlate,
    Expand,
    Filter,
    Join,
    OverWindow,
    Plan,
    Project,
    RowNumber,
    Scan,
    SortedWindow,
    SortOrder,
    TableAggregate,
    TemporalJoin,
    UnionAll,
    WindowTable,
    unique_names,
)

__all__ = ["columns_read", "pruned"]

Columns = tuple[int, ...]


def pruned(plan: Plan) -> Plan:
    """The same relation from inputs without columns that it does not need.

    >>> from firesteel.table.types import DataTypes
    >>> from firesteel.table.types.data_types import RowType
    >>> table = Scan(("t",), RowType.of(["a", "b", "c"], [DataTypes.INT()] * 3), None)
    >>> groups = Aggregate(table, (1,), (), ("b",))
    >>> pruned(groups).inputs[0].names
    ('b',)
    """
    return _with(plan, tuple(range(len(plan.names))))


def columns_read(plan: Plan) -> Iterator[tuple[Scan, frozenset[str]]]:
    """For each scan of a pruned plan the names of the columns that are asked of it.

    >>> from firesteel.table.types import DataTypes
    >>> from firesteel.table.types.data_types import RowType
    >>> table = Scan(("t",), RowType.of(["a", "b", "c"], [DataTypes.INT()] * 3), None)
    >>> [sorted(names) for _, names in columns_read(pruned(Aggregate(table, (1,), (), ("b",))))]
    [['b']]
    """
    if isinstance(plan, Scan):
        yield plan, frozenset(plan.names)
    elif isinstance(plan, Project) and isinstance(plan.input, Scan):
        scan = plan.input
        expressions = plan.expressions if scan.watermark is None else (*plan.expressions, scan.watermark)
        yield scan, frozenset(scan.names[at] for each in expressions for at in columns_of(each))
    else:
        for each in plan.inputs:
            yield from columns_read(each)


def _with(plan: Plan, needed: Columns) -> Plan:
    """The relation with these columns in this order; they are ascending."""
    if not plan.names:
        return _project(plan, ()) if isinstance(plan, Project) else plan
    prune = _PRUNING.get(type(plan))
    if prune is None:
        whole = tuple(range(len(plan.names)))
        below = {
            each.name: pruned(value) for each in fields(plan) if isinstance(value := getattr(plan, each.name), Plan)
        }
        return _chosen(replace(plan, **below) if below else plan, whole, needed, plan.names)
    return prune(plan, needed)


def _chosen(plan: Plan, there: Columns, needed: Columns, names: Sequence[str]) -> Plan:
    """Of a relation with the columns ``there`` those that are needed, under their old names."""
    wanted = tuple(names[at] for at in needed)
    if there == needed and plan.names == wanted:
        return plan
    refs = plan.refs()
    return Project(plan, tuple(refs[there.index(at)] for at in needed), wanted)


def _ascending(columns: Iterable[int], otherwise: int = 0) -> Columns:
    """Each once. A relation has one column at least: without any it would have no rows."""
    return tuple(sorted(set(columns))) or (otherwise,)


def _moved(expression: Expression, there: Columns) -> Expression:
    place = {column: at for at, column in enumerate(there)}
    return rewrite(
        expression, lambda part: InputRef(place[part.index], part.type) if isinstance(part, InputRef) else None
    )


def _project(plan: Project, needed: Columns) -> Plan:
    expressions = tuple(plan.expressions[at] for at in needed)
    names = tuple(plan.column_names[at] for at in needed)
    if isinstance(plan.input, Scan):
        # The source reads what it reads; and which column is the time is known by the scan.
        return Project(plan.input, expressions, names)
    there = _ascending(column for each in expressions for column in columns_of(each))
    return Project(_with(plan.input, there), tuple(_moved(each, there) for each in expressions), names)


def _filter(plan: Filter, needed: Columns) -> Plan:
    there = _ascending((*needed, *columns_of(plan.condition)))
    result = Filter(_with(plan.input, there), _moved(plan.condition, there))
    return _chosen(result, there, needed, plan.names)


def _join(plan: Join | TemporalJoin, needed: Columns) -> Plan:
    width, condition = len(plan.left.names), plan.condition
    asked = [*needed, *(columns_of(condition) if condition is not None else ())]
    of_left = [*(at for at in asked if at < width), *plan.left_keys]
    of_right = [*(at - width for at in asked if at >= width), *plan.right_keys]
    if isinstance(plan, TemporalJoin):
        of_left.append(plan.times[0])
        of_right.append(plan.times[1])
    left, right = _ascending(of_left), _ascending(of_right)
    there = (*left, *(at + width for at in right))
    filters = plan.kind in ("SEMI", "ANTI")
    first, second = _with(plan.left, left), _with(plan.right, right)
    changes: dict[str, Any] = {
        "left": first,
        "right": second,
        "left_keys": tuple(left.index(key) for key in plan.left_keys),
        "right_keys": tuple(right.index(key) for key in plan.right_keys),
        "condition": _moved(condition, there) if condition is not None else None,
    }
    if isinstance(plan, TemporalJoin):
        changes["times"] = (left.index(plan.times[0]), right.index(plan.times[1]))
    else:
        changes["column_names"] = unique_names([*first.names, *(() if filters else second.names)])
    return _chosen(replace(plan, **changes), left if filters else there, needed, plan.names)


def _aggregate(plan: Aggregate, needed: Columns) -> Plan:
    width = len(plan.keys)
    kept = [at for at in range(len(plan.calls)) if at + width in needed]
    if not kept and not plan.keys and plan.calls:
        kept = [0]
    calls = [plan.calls[at] for at in kept]
    asked = [*plan.keys]
    for call in calls:
        asked += [*call.args, *([call.filter] if call.filter is not None else [])]
    below = _ascending(asked) if asked else ()
    place = {column: at for at, column in enumerate(below)}
    moved = tuple(_moved_call(call, place) for call in calls)
    # COUNT(*) alone needs no column at all, and what is below has one at least.
    source = _with(plan.input, below) if below else Project(_with(plan.input, (0,)), (), ())
    there = (*range(width), *(at + width for at in kept))
    result = replace(
        plan,
        input=source,
        keys=tuple(place[key] for key in plan.keys),
        calls=moved,
        column_names=tuple(plan.column_names[at] for at in there),
    )
    return _chosen(result, there, needed, plan.names)


def _moved_call(call: AggregateCall, place: dict[int, int]) -> AggregateCall:
    chosen = place[call.filter] if call.filter is not None else None
    return replace(call, args=tuple(place[at] for at in call.args), filter=chosen)


def _over(plan: OverWindow, needed: Columns) -> Plan:
    return _with_calls(plan, needed, [plan.time], lambda place: {"time": place[plan.time]})


def _sorted_window(plan: SortedWindow, needed: Columns) -> Plan:
    def moved(place: dict[int, int]) -> dict[str, Any]:
        return {"order": tuple(replace(each, column=place[each.column]) for each in plan.order)}

    return _with_calls(plan, needed, [each.column for each in plan.order], moved)


def _with_calls(
    plan: OverWindow | SortedWindow,
    needed: Columns,
    order: list[int],
    moved: Callable[[dict[int, int]], dict[str, Any]],
) -> Plan:
    """Calls that nobody asks for are left out. ``order``: the columns that rows are ordered by, ``moved``: what the
    plan says of them when columns have other places."""
    width = len(plan.input.names)
    kept = [at for at in range(len(plan.calls)) if at + width in needed] or [0]
    asked = [*(at for at in needed if at < width), *plan.partition, *order]
    for at in kept:
        call = plan.calls[at]
        asked += [*call.args, *([call.filter] if call.filter is not None else [])]
    there = _ascending(asked)
    place = {column: at for at, column in enumerate(there)}
    result = replace(
        plan,
        input=_with(plan.input, there),
        partition=tuple(place[key] for key in plan.partition),
        calls=tuple(_moved_call(plan.calls[at], place) for at in kept),
        **moved(place),
    )
    return _chosen(result, (*there, *(at + width for at in kept)), needed, plan.names)


def _window_table(plan: WindowTable, needed: Columns) -> Plan:
    width = len(plan.input.names)
    there = _ascending([*(at for at in needed if at < width), *plan.partition, plan.time])
    partition = tuple(there.index(key) for key in plan.partition)
    result = replace(plan, input=_with(plan.input, there), time=there.index(plan.time), partition=partition)
    return _chosen(result, (*there, width, width + 1, width + 2), needed, plan.names)


def _expand(plan: Expand, needed: Columns) -> Plan:
    width = len(plan.input.names)
    there = _ascending([*(at for at in needed if at < width), *plan.cleared])
    result = replace(
        plan,
        input=_with(plan.input, there),
        sets=tuple(tuple(there.index(at) for at in kept) for kept in plan.sets),
        cleared=tuple(there.index(at) for at in plan.cleared),
    )
    return _chosen(result, (*there, width), needed, plan.names)


def _row_number(plan: RowNumber, needed: Columns) -> Plan:
    place = len(plan.input.names)
    order = [each.column for each in plan.order]
    there = _ascending([*(at for at in needed if at < place), *plan.partition, *order])
    result = replace(
        plan,
        input=_with(plan.input, there),
        partition=tuple(there.index(key) for key in plan.partition),
        order=tuple(SortOrder(there.index(each.column), each.descending, each.nulls_last) for each in plan.order),
    )
    return _chosen(result, (*there, place), needed, plan.names)


def _correlate(plan: Correlate, needed: Columns) -> Plan:
    width = len(plan.kept)
    kept = [at for at in range(width) if at in needed]
    below = _ascending([*(plan.kept[at] for at in kept), *columns_of(plan.call)])
    call = _moved(plan.call, below)
    assert isinstance(call, Call)
    there = (*kept, *range(width, len(plan.names)))
    result = replace(
        plan,
        input=_with(plan.input, below),
        call=call,
        kept=tuple(below.index(plan.kept[at]) for at in kept),
        column_names=tuple(plan.names[at] for at in there),
    )
    return _chosen(result, there, needed, plan.names)


def _table_aggregate(plan: TableAggregate, needed: Columns) -> Plan:
    below = _ascending([*plan.keys, *plan.call.args])
    result = replace(
        plan,
        input=_with(plan.input, below),
        keys=tuple(below.index(key) for key in plan.keys),
        call=replace(plan.call, args=tuple(below.index(at) for at in plan.call.args)),
    )
    return _chosen(result, tuple(range(len(plan.names))), needed, plan.names)


def _union(plan: UnionAll, needed: Columns) -> Plan:
    names = tuple(plan.names[at] for at in needed)
    branches = tuple(_with(branch, needed) for branch in plan.branches)
    return UnionAll(
        tuple(each if each.names == names else Project(each, tuple(each.refs()), names) for each in branches)
    )


_PRUNING: dict[type[Plan], Callable[[Any, Columns], Plan]] = {
    Project: _project,
    Filter: _filter,
    Join: _join,
    TemporalJoin: _join,
    Aggregate: _aggregate,
    RowNumber: _row_number,
    UnionAll: _union,
    Correlate: _correlate,
    TableAggregate: _table_aggregate,
    OverWindow: _over,
    SortedWindow: _sorted_window,
    WindowTable: _window_table,
    Expand: _expand,
}
