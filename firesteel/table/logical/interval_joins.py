"""Recognises joins whose condition bounds how far the times of both rows are apart."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal
from firesteel.table.logical.joins import all_of, conjuncts
from firesteel.table.logical.plan import Join, Plan
from firesteel.table.types.data_types import DayTimeIntervalType, LocalZonedTimestampType, TimestampType

__all__ = ["PROCTIME", "ROWTIME", "Interval", "interval_of_times"]

ROWTIME = "rowtime"
PROCTIME = "proctime"


@dataclass(frozen=True)
class Interval:
    """The left time minus the right one is between two numbers of milliseconds, both of them included."""

    times: tuple[int, int]
    lower: int
    upper: int
    condition: Expression | None
    """What else is to be checked."""
    processing_time: bool


def interval_of_times(plan: Join, attribute: Callable[[Plan, int], str | None]) -> Interval | None:
    """The bounds of a join, if it has both of them. ``attribute`` says which kind of time a column of a plan is."""
    if plan.kind not in ("INNER", "LEFT", "RIGHT", "FULL"):
        return None
    for one, other in dict.fromkeys(_compared(plan)):
        kind = attribute(plan.left, one)
        if kind is not None and kind == attribute(plan.right, other):
            found = _bounds(plan, one, other, kind == PROCTIME)
            if found is not None:
                return found
    return None


def _compared(plan: Join) -> Iterator[tuple[int, int]]:
    """Times of both sides that the condition compares."""
    width = len(plan.left.names)
    for one, other in zip(plan.left_keys, plan.right_keys, strict=True):
        if isinstance(plan.left.types[one], TimestampType | LocalZonedTimestampType):
            yield one, other
    for part in conjuncts(plan.condition):
        if isinstance(part, Call) and part.function in _TURNED:
            moments = [_moment(each) for each in part.args]
            places = sorted(each[0] for each in moments if each is not None)
            if len(places) == 2 and places[0] < width <= places[1]:
                yield places[0], places[1] - width


def _bounds(plan: Join, left: int, right: int, processing_time: bool) -> Interval | None:
    lower: int | None = None
    upper: int | None = None
    if (left, right) in zip(plan.left_keys, plan.right_keys, strict=True):
        lower = upper = 0
    rest: list[Expression] = []
    for part in conjuncts(plan.condition):
        bound = _bound(part, left, len(plan.left.names) + right)
        if bound is None:
            rest.append(part)
            continue
        operator, apart = bound
        if operator in (">", ">=", "="):
            least = apart + (operator == ">")
            lower = least if lower is None else max(lower, least)
        if operator in ("<", "<=", "="):
            most = apart - (operator == "<")
            upper = most if upper is None else min(upper, most)
    if lower is None or upper is None:
        return None
    return Interval((left, right), lower, upper, all_of(rest), processing_time)


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _bound(part: Expression, left: int, right: int) -> tuple[str, int] | None:
    """``left - right operator milliseconds``, if that is what a condition says."""
    if not isinstance(part, Call) or part.function not in _TURNED:
        return None
    one, other = _moment(part.args[0]), _moment(part.args[1])
    if one is None or other is None:
        return None
    if (one[0], other[0]) == (left, right):
        return part.function, other[1] - one[1]
    if (one[0], other[0]) == (right, left):
        return _TURNED[part.function], one[1] - other[1]
    return None


def _moment(expression: Expression) -> tuple[int, int] | None:
    """A column and what is added to it, in milliseconds."""
    if isinstance(expression, InputRef):
        return expression.index, 0
    if not isinstance(expression, Call):
        return None
    if expression.function == "CAST":
        # From one precision to another: the bounds are whole milliseconds.
        inner = expression.args[0]
        return _moment(inner) if type(inner.type) is type(expression.type) else None
    if expression.function not in ("TIME +", "TIME -"):
        return None
    first, second = expression.args
    if expression.function == "TIME +" and isinstance(first.type, DayTimeIntervalType):
        first, second = second, first
    base, added = _moment(first), _span(second)
    if base is None or added is None:
        return None
    return base[0], base[1] + (added if expression.function == "TIME +" else -added)


def _span(expression: Expression) -> int | None:
    if isinstance(expression, Literal) and isinstance(expression.value, datetime.timedelta):
        return expression.value // datetime.timedelta(milliseconds=1)
    if isinstance(expression, Call) and expression.function == "TIME NEGATE":
        inner = _span(expression.args[0])
        return -inner if inner is not None else None
    return None
