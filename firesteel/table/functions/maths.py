"""Functions of numbers."""

from __future__ import annotations

import itertools
import math
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.decimals import WIDE
from firesteel.table.functions.evaluation import EvaluationContext, as_array
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.seeded_random import SeededRandom
from firesteel.table.functions.text import string_result
from firesteel.table.functions.values import by_value, mapped
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    CharType,
    DataType,
    DecimalType,
    DoubleType,
    IntegralType,
    IntType,
    NullType,
)
from firesteel.table.types.derivation import any_nullable, common_type, round_type

__all__: list[str] = []


def same(arguments: Sequence[Expression]) -> DataType:
    """The type of the first argument."""
    return arguments[0].type


def double(arguments: Sequence[Expression]) -> DataType:
    """DOUBLE, NULL if an argument is."""
    return DoubleType(is_nullable=any_nullable([argument.type for argument in arguments]))


# Signs and rounding.


def _abs(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    return pc.abs(arguments[0])


def _sign(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    values, kind = arguments[0], arrow_type(call.type)
    if pa.types.is_decimal(values.type):
        return mapped(values, lambda value: Decimal((value > 0) - (value < 0)), kind)
    return pc.sign(values).cast(kind, safe=False)


register(Function("ABS", Signature(("numeric",)), same, _abs))
register(Function("SIGN", Signature(("numeric",)), same, _sign))


def _whole_type(arguments: Sequence[Expression]) -> DataType:
    """FLOOR and CEIL of a decimal have no fraction."""
    kind = arguments[0].type
    return DecimalType(kind.precision, 0, is_nullable=kind.is_nullable) if isinstance(kind, DecimalType) else kind


def _whole(compute: Callable[..., Any], rounding: str) -> Callable[..., Datum]:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        values, kind = arguments[0], arrow_type(call.type)
        if isinstance(call.type, IntegralType):
            return values
        if isinstance(call.type, DecimalType):
            return mapped(values, lambda value: value.to_integral_value(rounding), kind)
        return compute(values)

    return kernel


register(Function("FLOOR", Signature(("numeric",)), _whole_type, _whole(pc.floor, ROUND_FLOOR)))
register(Function("CEIL", Signature(("numeric",)), _whole_type, _whole(pc.ceil, ROUND_CEILING)))


def _rounded_type(arguments: Sequence[Expression]) -> DataType:
    kind = arguments[0].type
    if not isinstance(kind, DecimalType):
        return kind
    digits = arguments[1] if len(arguments) > 1 else Literal(0, IntType())
    if not isinstance(digits, Literal) or digits.value is None:
        return kind
    return round_type(kind, digits.value)


def _rounded(rounding: str) -> Callable[..., Datum]:
    def one(value: Any, digits: int = 0) -> Any:
        if isinstance(value, float):
            if not math.isfinite(value):
                return value
            # BigDecimal has no negative zero.
            return float(_quantized(Decimal(repr(value)), digits, rounding)) + 0.0
        return _quantized(value, digits, rounding)

    by_values = by_value(one)

    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        if isinstance(call.type, IntegralType):
            return _whole_digits(call.type, arguments, rounding, call, context)
        return by_values(call, arguments, context)

    return kernel


def _whole_digits(
    kind: IntegralType, arguments: list[Datum], rounding: str, call: Call, context: EvaluationContext
) -> Datum:
    if len(arguments) == 1:
        return arguments[0]
    half = 2 ** (kind.bits - 1)

    def one(value: int, digits: int) -> int:
        # What is too large begins again at the other end, as in all arithmetic of whole numbers.
        rounded = int(_quantized(Decimal(value), digits, rounding))
        wrapped: int = (rounded + half) % (2 * half) - half
        return wrapped

    return by_value(one)(call, arguments, context)


def _quantized(value: Decimal, digits: int, rounding: str) -> Decimal:
    if digits >= -int(value.as_tuple().exponent) or digits > 60:
        return value
    if digits < 0:
        step = Decimal(1).scaleb(-digits)
        return WIDE.multiply(WIDE.divide(value, step).quantize(Decimal(1), rounding, WIDE), step)
    return value.quantize(Decimal(1).scaleb(-digits), rounding, WIDE)


_DIGITS = Signature(("numeric", "integer"), optional=1)
register(Function("ROUND", _DIGITS, _rounded_type, _rounded(ROUND_HALF_UP)))


def _truncated_type(arguments: Sequence[Expression]) -> DataType:
    return _rounded_type(arguments)


register(Function("TRUNCATE", _DIGITS, _truncated_type, _rounded(ROUND_DOWN)))


# Analysis.


def _double(values: Datum) -> Datum:
    return values if values.type == pa.float64() else values.cast(pa.float64(), safe=False)


def _of_doubles(compute: Callable[..., Any]) -> Callable[..., Datum]:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        return compute(*[_double(argument) for argument in arguments])

    return kernel


def _guarded(function: Callable[..., float]) -> Callable[..., Datum]:
    """What Python refuses is NaN or infinite in Java."""

    def one(*values: float) -> float:
        try:
            return function(*values)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan

    return by_value(one)


_NUMERIC = Signature(("double",))
for _name, _compute in {
    "EXP": pc.exp,
    "SQRT": pc.sqrt,
    "LN": pc.ln,
    "LOG10": pc.log10,
    "LOG2": pc.log2,
    "SIN": pc.sin,
    "COS": pc.cos,
    "TAN": pc.tan,
    "ASIN": pc.asin,
    "ACOS": pc.acos,
    "ATAN": pc.atan,
}.items():
    register(Function(_name, _NUMERIC, double, _of_doubles(_compute)))
register(Function("POWER", Signature(("double", "double")), double, _of_doubles(pc.power)))
register(Function("ATAN2", Signature(("double", "double")), double, _of_doubles(pc.atan2)))
for _name, _function in {
    "SINH": math.sinh,
    "COSH": math.cosh,
    "TANH": math.tanh,
    "COT": lambda value: 1 / math.tan(value) if value else math.copysign(math.inf, value),
    "DEGREES": math.degrees,
    "RADIANS": math.radians,
}.items():
    register(Function(_name, _NUMERIC, double, _guarded(_function)))


def _log(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    if len(arguments) == 1:
        return pc.ln(_double(arguments[0]))
    base, value = (_double(argument) for argument in arguments)
    return pc.divide(pc.ln(value), pc.ln(base))


register(Function("LOG", Signature(("double", "double"), optional=1), double, _log))


def _constant(value: float) -> Callable[..., Datum]:
    return lambda call, arguments, context: pa.scalar(value, pa.float64())


register(Function("PI", Signature(()), lambda arguments: DoubleType(is_nullable=False), _constant(math.pi)))
register(Function("E", Signature(()), lambda arguments: DoubleType(is_nullable=False), _constant(math.e)))


# Largest and least.


def _common(arguments: Sequence[Expression]) -> DataType:
    kinds = [argument.type for argument in arguments]
    return (common_type(kinds) or NullType()).with_nullability(any_nullable(kinds))


def _extreme(compute: Callable[..., Any]) -> Callable[..., Datum]:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        kind = arrow_type(call.type)
        return compute(*[each if each.type == kind else each.cast(kind) for each in arguments], skip_nulls=False)

    return kernel


register(Function("GREATEST", Signature(("any",), repeated=True), _common, _extreme(pc.max_element_wise)))
register(Function("LEAST", Signature(("any",), repeated=True), _common, _extreme(pc.min_element_wise)))


# Digits.


def _unsigned(value: int) -> int:
    return value if value >= 0 else value + 2**64


def _hex(value: Any) -> str:
    if isinstance(value, str):
        return value.encode().hex().upper()
    if isinstance(value, bytes):
        return value.hex().upper()
    return f"{_unsigned(value):X}"


register(Function("HEX", Signature(("any",)), string_result, by_value(_hex)))
register(Function("BIN", Signature(("integer",)), string_result, by_value(lambda value: f"{_unsigned(value):b}")))


# Random.


def _generators(arguments: list[Datum], rows: int) -> Iterator[Any]:
    """For each row what numbers come from: a constant seed begins one sequence for all of them."""
    if not arguments:
        return itertools.repeat(random, rows)
    if isinstance(arguments[0], pa.Scalar):
        return itertools.repeat(SeededRandom(arguments[0].as_py() or 0), rows)
    return (SeededRandom(seed or 0) for seed in as_array(arguments[0], rows).to_pylist())


def _rand(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    return pa.array([each.random() for each in _generators(arguments, context.rows)], pa.float64())


def _rand_integer(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    bounds = as_array(arguments[-1], context.rows).to_pylist()
    generators = _generators(arguments[:-1], context.rows)
    drawn = [None if bound is None else each.randrange(bound) for each, bound in zip(generators, bounds, strict=True)]
    return pa.array(drawn, pa.int32())


def _uuid(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    return pa.array([str(uuid.uuid4()) for _ in range(context.rows)], pa.string())


_ALWAYS = DoubleType(is_nullable=False)
register(Function("RAND", Signature(("integer",), optional=1), lambda a: _ALWAYS, _rand, deterministic=False))
register(
    Function(
        "RAND_INTEGER",
        Signature(("integer", "integer"), optional=1),
        lambda arguments: IntType(is_nullable=any_nullable([each.type for each in arguments])),
        _rand_integer,
        deterministic=False,
    )
)
register(Function("UUID", Signature(()), lambda a: CharType(36, is_nullable=False), _uuid, deterministic=False))
