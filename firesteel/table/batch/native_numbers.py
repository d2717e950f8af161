"""Numbers: whole ones wrap around, dividing by zero is an error, decimals are rounded half up."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from firesteel.table.batch.native import native
from firesteel.table.batch.spark_types import spark_type
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.data_types import (
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NumericType,
)
from firesteel.table.types.derivation import decimal_of

__all__: list[str] = []

_FLOATS = (FloatType, DoubleType)
_ZERO = "/ by zero"


def _cast(column: Column, source: DataType, target: DataType) -> Column:
    return column if source.not_null() == target.not_null() else column.cast(spark_type(target))


def _decimals(call: Call, args: list[Column]) -> tuple[Column, Column, DecimalType, DecimalType] | None:
    first, second = (decimal_of(argument.type) for argument in call.args)
    if first is None or second is None:
        return None
    left = _cast(args[0], call.args[0].type, first)
    return left, _cast(args[1], call.args[1].type, second), first, second


def _arithmetic(operator: str, compute: Callable[[Column, Column], Column]) -> None:
    @native(operator)
    def translate(call: Call, args: list[Column]) -> Column | None:
        if isinstance(call.type, DecimalType):
            both = _decimals(call, args)
            if both is None or _digits(operator, both[2], both[3]) > 38:
                return None
            return compute(both[0], both[1]).cast(spark_type(call.type))
        if not isinstance(call.type, NumericType):
            return None
        left, right = (_cast(column, each.type, call.type) for column, each in zip(args, call.args, strict=True))
        return compute(left, right)


def _digits(operator: str, left: DecimalType, right: DecimalType) -> int:
    """Of an exact result."""
    if operator == "*":
        return left.precision + right.precision + 1
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale + 1


_arithmetic("+", lambda left, right: left + right)
_arithmetic("-", lambda left, right: left - right)
_arithmetic("*", lambda left, right: left * right)


def _is_never_zero(divisor: Expression) -> bool:
    """A constant that is not zero in any type of number."""
    if not isinstance(divisor, Literal) or not isinstance(divisor.value, int | Decimal):
        return False
    return divisor.value >= 1 or divisor.value <= -1


def _guarded(call: Call, divisor: Column, result: Column, message: str) -> Column:
    if _is_never_zero(call.args[1]):
        return result
    return F.when(divisor == F.lit(0), F.raise_error(F.lit(message))).otherwise(result)


@native("/")
def _divide(call: Call, args: list[Column]) -> Column | None:
    if isinstance(call.type, DecimalType):
        both = _decimals(call, args)
        if both is None:
            return None
        left, right, _, _ = both
        return _guarded(call, right, (left / right).cast(spark_type(call.type)), "Division by zero")
    if isinstance(call.type, _FLOATS):
        left, right = (_cast(column, each.type, call.type) for column, each in zip(args, call.args, strict=True))
        if _is_never_zero(call.args[1]):
            return (left / right).cast(spark_type(call.type))
        # Spark has NULL where the divisor is zero. As infinity times the dividend it is NaN for zero by zero.
        infinite = F.when(right.cast("string") == "-0.0", F.lit(float("-inf"))).otherwise(F.lit(float("inf")))
        by_zero = (left * infinite).cast(spark_type(call.type))
        return F.when(right == F.lit(0.0), by_zero).otherwise((left / right).cast(spark_type(call.type)))
    if not isinstance(call.type, IntegralType):
        return None
    left, right = (_cast(column, each.type, call.type) for column, each in zip(args, call.args, strict=True))
    quotient = F.call_function("div", left, right).cast(spark_type(call.type))
    return _guarded(call, right, quotient, _ZERO)


@native("%")
def _remainder(call: Call, args: list[Column]) -> Column | None:
    if not isinstance(call.type, IntegralType):
        return None
    kinds = [each.type for each in call.args]
    if not all(isinstance(kind, IntegralType) for kind in kinds):
        return None
    wide = max(kinds, key=lambda kind: getattr(kind, "bits", 0))
    left, right = (_cast(column, kind, wide) for column, kind in zip(args, kinds, strict=True))
    return _guarded(call, right, (left % right).cast(spark_type(call.type)), _ZERO)


@native("NEGATE")
def _negate(call: Call, args: list[Column]) -> Column | None:
    return F.negate(args[0]) if isinstance(call.type, NumericType) else None


@native("ABS")
def _abs(call: Call, args: list[Column]) -> Column | None:
    return F.abs(args[0]) if isinstance(call.type, NumericType) else None


def _double(name: str, compute: Callable[[Column], Column]) -> None:
    @native(name)
    def translate(call: Call, args: list[Column]) -> Column | None:
        if not isinstance(call.type, DoubleType) or len(args) != 1 or not isinstance(call.args[0].type, DoubleType):
            return None
        return compute(args[0])


for _name, _function in {
    "SQRT": F.sqrt,
    "EXP": F.exp,
    "SIN": F.sin,
    "COS": F.cos,
    "TAN": F.tan,
    "ASIN": F.asin,
    "ACOS": F.acos,
    "ATAN": F.atan,
    "SINH": F.sinh,
    "COSH": F.cosh,
    "TANH": F.tanh,
}.items():
    _double(_name, _function)


def _whole(name: str, compute: Callable[[Column], Column]) -> None:
    @native(name)
    def translate(call: Call, args: list[Column]) -> Column | None:
        kind = call.type
        if len(args) != 1 or not isinstance(kind, NumericType) or not isinstance(call.args[0].type, NumericType):
            return None
        if isinstance(kind, IntegralType):
            return args[0] if kind.not_null() == call.args[0].type.not_null() else None
        # Of approximate numbers Spark makes whole numbers of 64 bits.
        return compute(args[0]).cast(spark_type(kind)) if isinstance(kind, DecimalType) else None


_whole("FLOOR", F.floor)
_whole("CEIL", F.ceil)
