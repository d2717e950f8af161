"""Merges what has no state: projections and filters on top of one another become one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from firesteel.table.functions.binding import bind
from firesteel.table.functions.evaluation import is_deterministic
from firesteel.table.functions.watermarks import CURRENT_WATERMARK
from firesteel.table.logical.expressions import (
    Call,
    Expression,
    InputRef,
    Literal,
    UserCall,
    calls_of,
    columns_of,
    has_user_calls,
    rewrite,
)
from firesteel.table.logical.joins import conjuncts
from firesteel.table.logical.plan import Filter, Plan, Project, Scan
from firesteel.table.logical.time_attributes import is_rowtime
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.data_types import RowType

__all__ = ["CalcPlan", "PlaceLimits", "merged_calc", "place_limits", "steps_of"]


@dataclass(frozen=True)
class CalcPlan:
    """A filter and then a projection of one input."""

    input: Plan
    expressions: tuple[Expression, ...]
    names: tuple[str, ...]
    condition: Expression | None

    @property
    def is_identity(self) -> bool:
        """Whether rows pass as they are."""
        same = all(isinstance(each, InputRef) and each.index == index for index, each in enumerate(self.expressions))
        return self.condition is None and same and self.names == self.input.names


def merged_calc(plan: Plan) -> CalcPlan:
    """The steps without state at the top of a plan, as one."""
    expressions: tuple[Expression, ...] = tuple(plan.refs())
    names = plan.names
    condition: Expression | None = None
    while isinstance(plan, Project | Filter):
        _check_watermarks(plan)
        if isinstance(plan, Filter):
            condition = plan.condition if condition is None else _both(plan.condition, condition)
        else:
            below = plan.expressions
            if not _worth_merging(expressions, condition, below):
                break
            expressions = tuple(_substituted(each, below) for each in expressions)
            condition = _substituted(condition, below) if condition is not None else None
        plan = plan.input
    return CalcPlan(plan, expressions, names, condition)


def _check_watermarks(plan: Project | Filter) -> None:
    for expression in plan.expressions if isinstance(plan, Project) else (plan.condition,):
        for call in calls_of(CURRENT_WATERMARK, expression):
            (argument,) = call.args
            if not isinstance(argument, InputRef) or not is_rowtime(plan.input, argument.index):
                raise SqlValidationError(
                    f"{CURRENT_WATERMARK} takes a column that watermarks are for (WATERMARK FOR), got {argument} "
                    f"of the type {argument.type}."
                )


def _both(first: Expression, second: Expression) -> Expression:
    """The first guards the second, as it does in the query."""
    parts: list[Expression] = []
    for each in (first, second):
        parts += each.args if isinstance(each, Call) and each.function == "AND" else (each,)
    return bind("AND", parts)


def _substituted(expression: Expression, below: tuple[Expression, ...]) -> Expression:
    def replace(part: Expression) -> Expression | None:
        return below[part.index] if isinstance(part, InputRef) else None

    return rewrite(expression, replace)


def _worth_merging(
    expressions: tuple[Expression, ...], condition: Expression | None, below: tuple[Expression, ...]
) -> bool:
    """Not if a random number would be drawn twice, or a user's function called for a condition and for a column."""
    if condition is not None and any(has_user_calls(below[index]) for index in columns_of(condition)):
        return False
    parts = expressions if condition is None else (*expressions, condition)
    drawn = [index for each in parts for index in columns_of(each) if not is_deterministic(below[index])]
    return len(drawn) == len(set(drawn))


def steps_of(calc: CalcPlan) -> list[CalcPlan]:
    """The calc as it is run: where users' functions are in the condition, they are called once, for rows that the rest
    of the condition lets pass, and their results serve condition and columns alike."""
    if calc.condition is None or not has_user_calls(calc.condition):
        return [calc]
    parts = conjuncts(calc.condition)
    plain = [part for part in parts if not has_user_calls(part)]
    rest = [part for part in parts if has_user_calls(part)]
    calls: list[UserCall] = []
    for part in rest:
        _gather(part, calls)
    used = sorted({index for each in (*calc.expressions, *rest) for index in columns_of(each)})
    place = {index: at for at, index in enumerate(used)}
    refs = calc.input.refs()
    expressions: tuple[Expression, ...] = (*(refs[index] for index in used), *calls)
    names = (*(calc.input.names[index] for index in used), *(f"$u{at}" for at in range(len(calls))))
    below = CalcPlan(calc.input, expressions, names, _joined(plain))
    base = Scan(("functions",), RowType.of(list(names), [each.type for each in expressions]), None)

    def moved(part: Expression) -> Expression | None:
        if isinstance(part, UserCall) and part in calls:
            return InputRef(len(used) + calls.index(part), part.type)
        return InputRef(place[part.index], part.type) if isinstance(part, InputRef) else None

    above = CalcPlan(
        base,
        tuple(rewrite(each, moved) for each in calc.expressions),
        calc.names,
        _joined([rewrite(part, moved) for part in rest]),
    )
    return [below, above]


def _gather(expression: Expression, calls: list[UserCall]) -> None:
    if isinstance(expression, UserCall):
        if expression not in calls:
            calls.append(expression)
    elif isinstance(expression, Call):
        for argument in expression.args:
            _gather(argument, calls)


def _joined(parts: list[Expression]) -> Expression | None:
    return None if not parts else parts[0] if len(parts) == 1 else bind("AND", parts)


class PlaceLimits(NamedTuple):
    """Which places of an order are wanted."""

    first: int
    last: int
    condition: Expression | None
    """What else is asked of rows."""
    with_rank: bool
    """Whether the place itself is wanted."""


def place_limits(calc: CalcPlan, place: int) -> PlaceLimits | None:
    """What a condition says of the place. None if there is no last place."""
    start, end = 1, None
    rest: list[Expression] = []
    for part in conjuncts(calc.condition):
        bound = _bound(part, place)
        if bound is None:
            rest.append(part)
            continue
        operator, number = bound
        if operator in ("<=", "<", "="):
            last = number - 1 if operator == "<" else number
            end = last if end is None else min(end, last)
        if operator in (">=", ">", "="):
            start = max(start, number + 1 if operator == ">" else number)
    if end is None:
        return None
    wanted = any(place in columns_of(each) for each in (*calc.expressions, *rest))
    checked = None if not rest else rest[0] if len(rest) == 1 else bind("AND", rest)
    return PlaceLimits(start, end, checked, wanted)


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _bound(part: Expression, place: int) -> tuple[str, int] | None:
    if not isinstance(part, Call) or part.function not in _TURNED:
        return None
    left, right = (_uncast(each) for each in part.args)
    for first, second, operator in ((left, right, part.function), (right, left, _TURNED[part.function])):
        if isinstance(first, InputRef) and first.index == place and isinstance(second, Literal):
            return (operator, second.value) if isinstance(second.value, int) else None
    return None


def _uncast(expression: Expression) -> Expression:
    while isinstance(expression, Call) and expression.function == "CAST":
        expression = expression.args[0]
    return expression
