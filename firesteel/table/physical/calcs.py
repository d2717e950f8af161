"""Merges what has no state: projections and filters on top of one another become one step."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.functions.binding import bind
from firesteel.table.functions.registry import find
from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal, columns_of, rewrite
from firesteel.table.logical.joins import conjuncts
from firesteel.table.logical.plan import Filter, Plan, Project

__all__ = ["CalcPlan", "merged_calc", "place_limits"]


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
    """Not if a random number would be drawn twice."""
    return all(map(_is_deterministic, below)) or (
        condition is None and all(isinstance(expression, InputRef) for expression in expressions)
    )


def _is_deterministic(expression: Expression) -> bool:
    if not isinstance(expression, Call):
        return True
    function = find(expression.function)
    return (function is None or function.deterministic) and all(map(_is_deterministic, expression.args))


def place_limits(calc: CalcPlan, place: int) -> tuple[int, int, Expression | None, bool] | None:
    """From which to which place rows are wanted, what else is asked of them, and whether the place itself is. None if
    there is no last place."""
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
    return start, end, checked, wanted


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
