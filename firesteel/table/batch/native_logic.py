"""Comparisons, three-valued logic, and choices."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from firesteel.table.batch.native import native
from firesteel.table.batch.spark_types import spark_type
from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.types.data_types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    MultisetType,
    NullType,
    RowType,
)
from firesteel.table.types.derivation import is_text

__all__ = ["is_plain"]

_NESTED = (ArrayType, MapType, MultisetType, RowType)
_FLOATS = (FloatType, DoubleType)


def is_plain(kind: DataType) -> bool:
    """Whether Spark compares values as Flink does."""
    return not isinstance(kind, (*_NESTED, NullType))


def _comparable(call: Call) -> bool:
    first, second = call.args[0].type, call.args[1].type
    same = first.not_null() == second.not_null() or (is_text(first) and is_text(second))
    return same and is_plain(first)


def _comparison(operator: str, compute: Callable[[Column, Column], Column], for_nan: bool) -> None:
    @native(operator)
    def translate(call: Call, args: list[Column]) -> Column | None:
        if not _comparable(call):
            return None
        found = compute(args[0], args[1])
        if isinstance(call.args[0].type, _FLOATS):
            # In Spark NaN equals itself and is larger than all others.
            return F.when(F.isnan(args[0]) | F.isnan(args[1]), _known(args, for_nan)).otherwise(found)
        return found


def _known(args: list[Column], value: bool) -> Column:
    """The value, or NULL if an argument is NULL."""
    return F.when(args[0].isNotNull() & args[1].isNotNull(), F.lit(value))


_comparison("=", lambda left, right: left == right, False)
_comparison("<>", lambda left, right: left != right, True)
_comparison("<", lambda left, right: left < right, False)
_comparison("<=", lambda left, right: left <= right, False)
_comparison(">", lambda left, right: left > right, False)
_comparison(">=", lambda left, right: left >= right, False)


@native("IS NOT DISTINCT FROM")
def _same(call: Call, args: list[Column]) -> Column | None:
    exact = _comparable(call) and not isinstance(call.args[0].type, _FLOATS)
    return args[0].eqNullSafe(args[1]) if exact else None


@native("IS DISTINCT FROM")
def _different(call: Call, args: list[Column]) -> Column | None:
    found = _same(call, args)
    return None if found is None else ~found


def _truth(argument: Expression, column: Column) -> Column:
    return column.cast("boolean") if isinstance(argument.type, NullType) else column


@native("AND")
def _and(call: Call, args: list[Column]) -> Column:
    first, *others = (_truth(each, column) for each, column in zip(call.args, args, strict=True))
    for other in others:
        first = first & other
    return first


@native("OR")
def _or(call: Call, args: list[Column]) -> Column:
    first, *others = (_truth(each, column) for each, column in zip(call.args, args, strict=True))
    for other in others:
        first = first | other
    return first


@native("NOT")
def _not(call: Call, args: list[Column]) -> Column:
    return ~_truth(call.args[0], args[0])


@native("IS NULL", "IS UNKNOWN")
def _is_null(call: Call, args: list[Column]) -> Column:
    return args[0].isNull()


@native("IS NOT NULL", "IS NOT UNKNOWN")
def _is_not_null(call: Call, args: list[Column]) -> Column:
    return args[0].isNotNull()


def _test(name: str, wanted: bool, negated: bool) -> None:
    @native(name)
    def translate(call: Call, args: list[Column]) -> Column:
        found = _truth(call.args[0], args[0]).eqNullSafe(F.lit(wanted))
        return ~found if negated else found


_test("IS TRUE", True, False)
_test("IS FALSE", False, False)
_test("IS NOT TRUE", True, True)
_test("IS NOT FALSE", False, True)


def _as(call: Call, argument: Expression, column: Column) -> Column:
    """A result of the call's type: branches may differ in nullability only, or be NULL."""
    return column if argument.type.not_null() == call.type.not_null() else column.cast(spark_type(call.type))


def _fits(call: Call, results: list[Expression]) -> bool:
    """Texts of different lengths need no cast here, the resolver has added one where it cuts or pads."""
    return all(
        each.type.not_null() == call.type.not_null()
        or isinstance(each.type, NullType)
        or (is_text(each.type) and is_text(call.type))
        for each in results
    )


@native("CASE")
def _case(call: Call, args: list[Column]) -> Column | None:
    results = [*call.args[1:-1:2], call.args[-1]]
    if isinstance(call.type, NullType) or not _fits(call, results):
        return None
    chosen: Column | None = None
    for index in range(0, len(args) - 1, 2):
        condition = _truth(call.args[index], args[index])
        value = _as(call, call.args[index + 1], args[index + 1])
        chosen = F.when(condition, value) if chosen is None else chosen.when(condition, value)
    last = _as(call, call.args[-1], args[-1])
    return last if chosen is None else chosen.otherwise(last)


@native("COALESCE", "IFNULL")
def _coalesce(call: Call, args: list[Column]) -> Column | None:
    if isinstance(call.type, NullType) or not _fits(call, list(call.args)):
        return None
    return F.coalesce(*(_as(call, each, column) for each, column in zip(call.args, args, strict=True)))


@native("NULLIF")
def _null_if(call: Call, args: list[Column]) -> Column | None:
    if not _comparable(call) or isinstance(call.args[0].type, _FLOATS):
        return None
    return F.when(F.coalesce(args[0] == args[1], F.lit(False)), F.lit(None)).otherwise(args[0])


@native("IN")
def _in(call: Call, args: list[Column]) -> Column | None:
    kind = call.args[0].type
    if not is_plain(kind) or isinstance(kind, (*_FLOATS, BooleanType)):
        return None
    return args[0].isin(*args[1:])
