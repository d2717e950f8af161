"""Sums of times and intervals."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.binding import FunctionError
from firesteel.table.functions.evaluation import EvaluationContext
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.values import by_value
from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    LocalZonedTimestampType,
    NumericType,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)

__all__ = ["add_months"]

Interval = DayTimeIntervalType | YearMonthIntervalType
Temporal = DateType | TimeType | TimestampType | LocalZonedTimestampType


def add_months(value: Any, months: int) -> Any:
    """The same day of another month, or its last day.

    >>> import datetime
    >>> add_months(datetime.date(2024, 1, 31), 1)
    datetime.date(2024, 2, 29)
    """
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    day = min(value.day, calendar.monthrange(year, month + 1)[1])
    return value.replace(year=year, month=month + 1, day=day)


def _sum_type(operator: str) -> Any:
    def rule(arguments: Sequence[Expression]) -> DataType:
        left, right = (argument.type for argument in arguments)
        nullable = left.is_nullable or right.is_nullable
        if isinstance(left, Interval) and isinstance(right, Temporal) and operator == "+":
            left, right = right, left
        if isinstance(left, Temporal) and isinstance(right, Interval):
            if isinstance(left, TimeType) and isinstance(right, YearMonthIntervalType):
                raise FunctionError(f"{left} and {right} cannot be added.")
            return left.with_nullability(nullable)
        if isinstance(left, Interval) and type(left) is type(right):
            return left.with_nullability(nullable)
        raise FunctionError(f"a {operator} b takes numbers, or a time and an interval, got {left} and {right}.")

    return rule


def _summed(negative: bool) -> Any:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        left, right = arguments
        kinds = [argument.type for argument in call.args]
        if isinstance(kinds[0], Interval) and isinstance(kinds[1], Temporal):
            left, right = right, left
            kinds.reverse()
        compute = pc.subtract if negative else pc.add
        kind = arrow_type(call.type)
        if isinstance(kinds[0], Interval):
            return compute(left, right)
        if isinstance(kinds[1], YearMonthIntervalType):
            sign = -1 if negative else 1
            step = by_value(lambda value, months: add_months(value, sign * months))
            return step(call, [left, right], context)
        if isinstance(kinds[0], DateType):
            # Whole days: Flink drops the rest.
            days = compute(left.cast(pa.timestamp("ms")), right)
            return days.cast(pa.date32(), safe=False)
        if isinstance(kinds[0], TimeType):
            moment = compute(left.cast(pa.int32()).cast(pa.int64()), right.cast(pa.int64()))
            day = 86_400_000
            begin = pc.multiply(pc.floor(pc.divide(moment.cast(pa.float64()), float(day))), float(day))
            inside = pc.subtract(moment.cast(pa.float64()), begin)
            return inside.cast(pa.int32()).cast(kind)
        return compute(left, right.cast(pa.duration(kind.unit)))

    return kernel


def _scaled_type(arguments: Sequence[Expression]) -> DataType:
    left, right = (argument.type for argument in arguments)
    nullable = left.is_nullable or right.is_nullable
    for interval, number in ((left, right), (right, left)):
        if isinstance(interval, Interval) and isinstance(number, NumericType):
            return interval.with_nullability(nullable)
    raise FunctionError(f"a * b takes numbers, or an interval and a number, got {left} and {right}.")


def _scaled(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    left, right = arguments
    if not isinstance(call.args[0].type, Interval):
        left, right = right, left
    kind = arrow_type(call.type)
    product = pc.multiply(left.cast(pa.int64()), right.cast(pa.int64(), safe=False))
    return product.cast(kind, safe=False)


def _negated(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    kind = arrow_type(call.type)
    return pc.negate(arguments[0].cast(pa.int64())).cast(kind, safe=False)


_TWO = Signature(("any", "any"))
register(Function("TIME +", _TWO, _sum_type("+"), _summed(False), syntax="a + b"))
register(Function("TIME -", _TWO, _sum_type("-"), _summed(True), syntax="a - b"))
register(Function("TIME *", _TWO, _scaled_type, _scaled, syntax="a * b"))
register(Function("TIME NEGATE", Signature(("interval",)), lambda arguments: arguments[0].type, _negated, syntax="-a"))
