"""Recognises aggregates over windows: window_start and window_end are among the columns that rows are grouped by."""

from __future__ import annotations

from dataclasses import dataclass, replace

from firesteel.table.logical.expressions import AggregateCall, Expression, InputRef, columns_of
from firesteel.table.logical.plan import Aggregate, Filter, Plan, Project, WindowTable, unique_names
from firesteel.table.physical.calcs import CalcPlan, merged_calc
from firesteel.table.types.data_types import DataType

__all__ = ["WindowedAggregate", "window_aggregate"]

_PROPERTIES = ("start", "end", "time")


@dataclass(frozen=True)
class WindowedAggregate:
    """What the operator needs: the input with keys, arguments and the time, and its result."""

    input: Plan
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: WindowTable
    time: int
    properties: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[DataType, ...]
    results: tuple[Expression, ...]
    """The columns of the aggregate, over those of the operator."""


def window_aggregate(plan: Aggregate) -> WindowedAggregate | None:
    """The aggregate as one over windows, if it is one."""
    calc = merged_calc(plan.input)
    window = calc.input
    if not isinstance(window, WindowTable):
        return None
    first = len(window.input.names)
    part_of = {key: _part(calc.expressions[key], first) for key in plan.keys}
    if not {"start", "end"} <= set(part_of.values()) or not _apart(calc, plan, first, part_of):
        return None
    if window.kind == "SESSION" and not _by_partition(calc, plan, window, part_of):
        return None
    expressions = list(calc.expressions)
    used = [*[key for key in plan.keys if part_of[key] is None], *_arguments(plan)]
    columns = [*dict.fromkeys(used)]
    below: Plan = window.input if calc.condition is None else Filter(window.input, calc.condition)
    time = InputRef(window.time, window.input.types[window.time])
    names = unique_names([*(plan.input.names[column] for column in columns), "$time"])
    projected = Project(below, (*(expressions[column] for column in columns), time), names)
    place = {column: index for index, column in enumerate(columns)}
    keys = tuple(place[key] for key in plan.keys if part_of[key] is None)
    calls = tuple(_moved(call, place) for call in plan.calls)
    types = (*(projected.types[key] for key in keys), *(call.type for call in calls), *window.types[-3:])
    result_names = unique_names(
        [*(names[key] for key in keys), *(f"$a{index}" for index in range(len(calls))), *_PROPERTIES]
    )
    results: list[Expression] = []
    plain = iter(range(len(keys)))
    for key in plan.keys:
        part = part_of[key]
        index = next(plain) if part is None else len(keys) + len(calls) + _PROPERTIES.index(part)
        results.append(InputRef(index, types[index]))
    results += [InputRef(len(keys) + index, call.type) for index, call in enumerate(calls)]
    return WindowedAggregate(
        projected, keys, calls, window, len(columns), _PROPERTIES, result_names, types, tuple(results)
    )


def _part(expression: Expression, first: int) -> str | None:
    if isinstance(expression, InputRef) and expression.index >= first:
        return _PROPERTIES[expression.index - first]
    return None


def _by_partition(calc: CalcPlan, plan: Aggregate, window: WindowTable, part_of: dict[int, str | None]) -> bool:
    """Whether groups are what sessions are made of: else sessions come first, and groups within them."""
    if any(call.distinct for call in plan.calls):
        return False
    keys = [calc.expressions[key] for key in plan.keys if part_of[key] is None]
    columns = {key.index for key in keys if isinstance(key, InputRef)}
    return columns == set(window.partition) and len(keys) == len(columns)


def _arguments(plan: Aggregate) -> list[int]:
    found: list[int] = []
    for call in plan.calls:
        found += call.args
        if call.filter is not None:
            found.append(call.filter)
    return found


def _apart(calc: CalcPlan, plan: Aggregate, first: int, part_of: dict[int, str | None]) -> bool:
    """Whether nothing but keys asks for the window."""
    others = [calc.expressions[key] for key in (*plan.keys, *_arguments(plan)) if part_of.get(key) is None]
    if calc.condition is not None:
        others.append(calc.condition)
    return all(index < first for each in others for index in columns_of(each))


def _moved(call: AggregateCall, place: dict[int, int]) -> AggregateCall:
    chosen = place[call.filter] if call.filter is not None else None
    return replace(call, args=tuple(place[each] for each in call.args), filter=chosen)
