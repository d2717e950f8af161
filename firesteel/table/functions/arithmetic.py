"""The four operations and the remainder, of numbers; sums of times and intervals are in :mod:`temporal`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.errors import FailureKind, ProgramError
from firesteel.table.functions.binding import FunctionError
from firesteel.table.functions.decimals import CONTEXT, WIDE, fitted, quantized, to_decimal
from firesteel.table.functions.evaluation import EvaluationContext
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.values import row_by_row
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import DataType, DecimalType, IntegralType
from firesteel.table.types.derivation import arithmetic_type, decimal_of

__all__ = ["DivisionByZeroError"]


class DivisionByZeroError(ProgramError):
    """A whole number or a decimal was divided by zero."""

    kind = FailureKind.PERMANENT


def _result(operator: str) -> Callable[[Sequence[Expression]], DataType]:
    def rule(arguments: Sequence[Expression]) -> DataType:
        found = arithmetic_type(operator, arguments[0].type, arguments[1].type)
        assert found is not None, "Signatures admit numbers only."
        if operator == "%" and not all(isinstance(each.type, IntegralType | DecimalType) for each in arguments):
            raise FunctionError(f"a % b takes exact numbers, got {arguments[0].type} and {arguments[1].type}.")
        return found

    return rule


def _kernel(operator: str, compute: Callable[..., Any]) -> Callable[..., Datum]:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        left, right = arguments
        if isinstance(call.type, DecimalType):
            return _decimal(operator, compute, call, left, right, context)
        kind = arrow_type(call.type)
        if operator == "%" and isinstance(call.type, IntegralType):
            # The type is the divisor's; the dividend may be wider.
            kind = arrow_type(max((each.type for each in call.args), key=_bits))
        left, right = _cast(left, kind), _cast(right, kind)
        if operator in "/%" and isinstance(call.type, IntegralType):
            return _whole(compute, left, right).cast(arrow_type(call.type), safe=False)
        return compute(left, right)

    return kernel


def _bits(kind: DataType) -> int:
    return getattr(kind, "bits", 0)


def _cast(values: Datum, kind: pa.DataType) -> Datum:
    return values if values.type == kind else values.cast(kind, safe=False)


def _whole(compute: Callable[..., Any], left: Datum, right: Datum) -> Datum:
    try:
        return compute(left, right)
    except pa.ArrowInvalid as error:
        if "divide by zero" in str(error):
            raise DivisionByZeroError("/ by zero") from None
        raise


def _decimal(
    operator: str, compute: Callable[..., Any], call: Call, left: Datum, right: Datum, context: EvaluationContext
) -> Datum:
    assert isinstance(call.type, DecimalType)
    first, second = (decimal_of(argument.type) for argument in call.args)
    assert first is not None
    assert second is not None
    if operator in "/%":
        precision, scale = call.type.precision, call.type.scale
        divide = _divided if operator == "/" else _remainder

        def one(a: Decimal | int | None, b: Decimal | int | None) -> Decimal | None:
            if a is None or b is None:
                return None
            if not b:
                raise DivisionByZeroError("Division by zero")
            return quantized(divide(Decimal(a), Decimal(b)), precision, scale)

        return row_by_row(one)(call, [left, right], context)
    if operator == "*" and first.precision + second.precision + 1 > 76:
        # More digits than Arrow has room for.
        precision, scale = call.type.precision, call.type.scale

        def product(a: Decimal | int | None, b: Decimal | int | None) -> Decimal | None:
            if a is None or b is None:
                return None
            return quantized(WIDE.multiply(Decimal(a), Decimal(b)), precision, scale)

        return row_by_row(product)(call, [left, right], context)
    left, right = to_decimal(left, first), to_decimal(right, second)
    digits = first.precision + second.precision + 1 if operator == "*" else max(first.precision, second.precision) + 40
    if (operator == "*" and digits > 38) or (operator != "*" and call.type.precision == 38):
        # Arrow wants room for the largest product or sum.
        left, right = (each.cast(pa.decimal256(each.type.precision, each.type.scale)) for each in (left, right))
    return fitted(compute(left, right), call.type)


def _divided(left: Decimal, right: Decimal) -> Decimal:
    return CONTEXT.divide(left, right)


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    return WIDE.remainder(left, right)


def _negated(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    return pc.negate(arguments[0])


_TWO = Signature(("numeric", "numeric"))
register(Function("+", _TWO, _result("+"), _kernel("+", pc.add), syntax="a + b"))
register(Function("-", _TWO, _result("-"), _kernel("-", pc.subtract), syntax="a - b"))
register(Function("*", _TWO, _result("*"), _kernel("*", pc.multiply), syntax="a * b"))


def _by_constant(call: Call) -> bool:
    """Whether whole numbers are divided by one that is not zero."""
    divisor = call.args[1]
    return isinstance(call.type, IntegralType) and isinstance(divisor, Literal) and divisor.value not in (None, 0)


register(Function("/", _TWO, _result("/"), _kernel("/", pc.divide), can_fail=True, safe=_by_constant, syntax="a / b"))


def _modulo(left: Datum, right: Datum) -> Datum:
    """The sign is the dividend's, as in Java."""
    if pa.types.is_floating(left.type):
        quotient = pc.trunc(pc.divide(left, right))
        return pc.subtract(left, pc.multiply(quotient, right))
    return pc.subtract(left, pc.multiply(pc.divide(left, right), right))


register(
    Function("%", _TWO, _result("%"), _kernel("%", _modulo), can_fail=True, safe=_by_constant, syntax="a % b"), "MOD"
)
register(Function("NEGATE", Signature(("numeric",)), lambda arguments: arguments[0].type, _negated, syntax="-a"))
