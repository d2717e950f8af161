"""Periods of time: OVERLAPS."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.table.functions.binding import FunctionError, bind
from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.sql import syntax
from firesteel.table.types.data_types import DayTimeIntervalType, YearMonthIntervalType
from firesteel.table.types.derivation import common_type

__all__ = ["overlaps"]

Period = tuple[Expression, Expression]


def overlaps(first: syntax.Node, second: syntax.Node, resolve: Callable[[syntax.Node], Expression]) -> Expression:
    """Whether two periods have a moment in common. A period is two moments, in any order, or one and how long it is."""
    (begin, end), (other_begin, other_end) = (_bounds(*_period(node, resolve)) for node in (first, second))
    return bind("AND", [bind("<=", [begin, other_end]), bind("<=", [other_begin, end])])


def _period(node: syntax.Node, resolve: Callable[[syntax.Node], Expression]) -> Period:
    if not isinstance(node, syntax.RowConstructor) or len(node.items) != 2:
        raise FunctionError("OVERLAPS takes periods: (start, end), or (start, interval).")
    return resolve(node.items[0]), resolve(node.items[1])


def _bounds(start: Expression, end: Expression) -> Period:
    if isinstance(end.type, DayTimeIntervalType | YearMonthIntervalType):
        end = bind("+", [start, end])
    forwards = bind("<=", [start, end])
    kind = common_type([start.type, end.type])
    assert kind is not None, "what can be compared has a common type"
    return Call("CASE", (forwards, start, end), kind), Call("CASE", (forwards, end, start), kind)
