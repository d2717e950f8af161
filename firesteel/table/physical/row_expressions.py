"""Expressions over one row of Python values, for where rows come one by one: the conditions of patterns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from firesteel.table.functions.evaluation import EvaluationContext, Evaluator
from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    BigIntType,
    DataType,
    DecimalType,
    DoubleType,
    IntegralType,
    IntType,
    SmallIntType,
    TinyIntType,
)
from firesteel.table.types.derivation import is_text

__all__ = ["aggregated", "row_function"]

RowFunction = Callable[[Sequence[Any]], Any]
TimedFunction = Callable[[Sequence[Any], int], Any]

_COMPARISONS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_BITS: dict[type[DataType], int] = {TinyIntType: 8, SmallIntType: 16, IntType: 32, BigIntType: 64}


def row_function(expression: Expression, kinds: Sequence[DataType], time_zone: str) -> TimedFunction:
    """What computes the expression for a row of values with these types, at a processing time in milliseconds."""
    simple = _simple(expression)
    if simple is None:
        return _Computed(expression, kinds, time_zone)
    plain = simple
    return lambda row, now: plain(row)


class _Computed:
    """By the kernels for columns, over a batch of one row."""

    def __init__(self, expression: Expression, kinds: Sequence[DataType], time_zone: str) -> None:
        self._evaluator = Evaluator((expression,))
        self._kinds = [arrow_type(kind) for kind in kinds]
        self._names = [f"c{at}" for at in range(len(kinds))]
        self._time_zone = time_zone

    def __call__(self, row: Sequence[Any], now: int) -> Any:
        arrays = [pa.array([value], kind) for value, kind in zip(row, self._kinds, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, names=self._names)
        context = EvaluationContext(1, self._time_zone, now / 1000)
        return self._evaluator.columns(batch, context)[0][0].as_py()


def _simple(expression: Expression) -> RowFunction | None:
    """The expression as plain Python, where that means the same."""
    if isinstance(expression, InputRef):
        return operator.itemgetter(expression.index)
    if isinstance(expression, Literal):
        value = expression.value
        return lambda row: value
    if not isinstance(expression, Call):
        return None
    parts = [_simple(each) for each in expression.args]
    args = [each for each in parts if each is not None]
    if len(args) != len(parts):
        return None
    name, kinds = expression.function, [each.type for each in expression.args]
    if name in _COMPARISONS and type(kinds[0]) is type(kinds[1]):
        return _strict(_COMPARISONS[name], *args)
    if name in _COMPARISONS and is_text(kinds[0]) and is_text(kinds[1]):
        return _strict(_COMPARISONS[name], *args)
    if name in _ARITHMETIC and isinstance(expression.type, DoubleType):
        return _strict(_ARITHMETIC[name], *args)
    if name in _ARITHMETIC and type(expression.type) in _BITS:
        return _wrapping(_ARITHMETIC[name], _BITS[type(expression.type)], *args)
    if name == "CAST":
        return _cast(args[0], kinds[0], expression.type)
    return _logical(name, args)


def _logical(name: str, args: list[RowFunction]) -> RowFunction | None:
    if name == "AND":
        return lambda row: _all_of(each(row) for each in args)
    if name == "OR":
        return lambda row: _any_of(each(row) for each in args)
    if name == "NOT":
        return lambda row: None if (value := args[0](row)) is None else not value
    if name == "IS NULL":
        return lambda row: args[0](row) is None
    if name == "IS NOT NULL":
        return lambda row: args[0](row) is not None
    return None


def _all_of(values: Any) -> bool | None:
    unknown = False
    for value in values:
        if value is None:
            unknown = True
        elif not value:
            return False
    return None if unknown else True


def _any_of(values: Any) -> bool | None:
    unknown = False
    for value in values:
        if value is None:
            unknown = True
        elif value:
            return True
    return None if unknown else False


def _strict(function: Callable[[Any, Any], Any], left: RowFunction, right: RowFunction) -> RowFunction:
    def computed(row: Sequence[Any]) -> Any:
        one, other = left(row), right(row)
        return None if one is None or other is None else function(one, other)

    return computed


def _wrapping(function: Callable[[Any, Any], Any], bits: int, left: RowFunction, right: RowFunction) -> RowFunction:
    plain, span = _strict(function, left, right), 1 << bits

    def computed(row: Sequence[Any]) -> Any:
        value = plain(row)
        return None if value is None else (value + span // 2) % span - span // 2

    return computed


def _cast(inner: RowFunction, source: DataType, target: DataType) -> RowFunction | None:
    if type(source) in _BITS and type(target) in _BITS and _BITS[type(source)] <= _BITS[type(target)]:
        return inner
    if isinstance(source, IntegralType) and isinstance(target, DoubleType):
        return lambda row: None if (value := inner(row)) is None else float(value)
    return None


def aggregated(function: str, values: Sequence[Any], kind: DataType) -> Any:
    """An aggregate of the values of some rows; NULLs do not count.

    >>> from firesteel.table.types import DataTypes
    >>> aggregated("AVG", [1, None, -4], DataTypes.INT())
    -1
    """
    known = [value for value in values if value is not None]
    if function == "COUNT":
        return len(known)
    if not known:
        return None
    if function in ("MIN", "MAX"):
        return min(known) if function == "MIN" else max(known)
    total = sum(known[1:], known[0])
    if function == "AVG":
        if isinstance(kind, DecimalType):
            return (Decimal(total) / len(known)).quantize(Decimal(1).scaleb(-kind.scale))
        if isinstance(kind, IntegralType):
            total = abs(total) // len(known) * (1 if total >= 0 else -1)
        else:
            total = total / len(known)
    if type(kind) in _BITS:
        span = 1 << _BITS[type(kind)]
        total = (total + span // 2) % span - span // 2
    return total
