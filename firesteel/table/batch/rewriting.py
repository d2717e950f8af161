"""Plans of batch mode for the operators of streams: the same final rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

from firesteel.table.functions.binding import bind
from firesteel.table.logical.expressions import AggregateCall, Expression, InputRef, Literal
from firesteel.table.logical.first_rows import first_rows
from firesteel.table.logical.plan import Aggregate, Plan, Project, Scan, Sort, UnionAll, Values
from firesteel.table.types.data_types import BooleanType, RowType

__all__ = ["as_stream", "with_inputs"]

_SURE = BooleanType(is_nullable=False)


def with_inputs(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The relation with other inputs, whatever kind it is of."""
    changed: dict[str, object] = {}
    for each in fields(plan):
        value = getattr(plan, each.name)
        if isinstance(value, Plan):
            changed[each.name] = change(value)
        elif isinstance(value, tuple) and value and all(isinstance(item, Plan) for item in value):
            changed[each.name] = tuple(change(item) for item in value)
    return replace(plan, **changed) if changed else plan


def as_stream(plan: Plan) -> Plan:
    """A plan whose changelog ends with the rows that batch mode gives. An order without a limit is no concern of
    queries around it."""
    plan = with_inputs(plan, as_stream)
    if isinstance(plan, Scan) and plan.watermark is not None:
        # Nothing is late: time ends when all rows have come.
        return replace(plan, watermark=None)
    if isinstance(plan, Sort):
        return plan.input if plan.limit is None and not plan.offset else first_rows(plan)
    if isinstance(plan, Aggregate) and not plan.keys and plan.calls:
        return _never_empty(plan)
    return plan


def _never_empty(plan: Aggregate) -> Plan:
    """A stream without rows has no sum yet, a table without rows has one. So there is always one row more, which no
    aggregate counts."""
    width = len(plan.input.names)
    names = (*plan.input.names, "$there")
    there = Project(plan.input, (*plan.input.refs(), Literal(True, _SURE)), names)
    nothing = [Literal(None, kind.nullable()) for kind in plan.input.types]
    kinds = [*(kind.nullable() for kind in plan.input.types), _SURE]
    one = Values(((*nothing, Literal(False, _SURE)),), RowType.of(list(names), kinds))
    both = UnionAll((there, one))
    counted = InputRef(width, _SURE)
    expressions: list[Expression] = [InputRef(index, kind) for index, kind in enumerate(kinds)]
    calls: list[AggregateCall] = []
    for call in plan.calls:
        if call.filter is None:
            calls.append(replace(call, filter=width))
            continue
        wanted = bind("AND", [expressions[call.filter], counted])
        if wanted not in expressions:
            expressions.append(wanted)
        calls.append(replace(call, filter=expressions.index(wanted)))
    all_names = (*names, *(f"$f{index}" for index in range(len(expressions) - len(names))))
    return replace(plan, input=Project(both, tuple(expressions), all_names), calls=tuple(calls))
