"""Exact numbers: results are rounded half up, and NULL where they have more digits than their type."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.registry import Datum
from firesteel.table.functions.values import mapped
from firesteel.table.types.data_types import MAX_PRECISION, DecimalType

__all__ = ["CONTEXT", "WIDE", "fitted", "quantized", "to_decimal"]

CONTEXT = decimal.Context(prec=38, rounding=decimal.ROUND_HALF_UP)
"""As Java's MathContext(38, HALF_UP)."""
WIDE = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP)


def quantized(value: Decimal, precision: int, scale: int) -> Decimal | None:
    """A value with that scale, None if it has too many digits.

    >>> quantized(Decimal("1.995"), 3, 2), quantized(Decimal("123.4"), 3, 1)
    (Decimal('2.00'), None)
    """
    if not value.is_finite():
        return None
    if value.adjusted() >= precision - scale:
        # Also what has more digits than can be counted.
        return None
    rounded = value.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    return rounded if rounded.copy_abs() < Decimal(10) ** (precision - scale) else None


def fitted(values: Datum, target: DecimalType) -> Datum:
    """Decimals of any kind as decimals of the type."""
    kind = pa.decimal128(target.precision, target.scale)
    if values.type == kind:
        return values
    if values.type.scale > target.scale:
        values = pc.round(_roomier(values), ndigits=target.scale, round_mode="half_towards_infinity")
    whole = target.precision - target.scale
    if values.type.precision - values.type.scale > whole:
        fits = pc.less(pc.abs(values), pa.scalar(Decimal(10) ** whole, values.type))
        values = pc.if_else(fits, values, pa.scalar(None, values.type))
    return values.cast(kind, safe=False)


def _roomier(values: Datum) -> Datum:
    """One more digit in front, because rounding may bring one."""
    precision, scale = values.type.precision + 1, values.type.scale
    wide = pa.decimal128 if precision <= MAX_PRECISION else pa.decimal256
    return values.cast(wide(min(precision, 76), scale))


def to_decimal(values: Datum, target: DecimalType) -> Datum:
    """Numbers as decimals of the type."""
    if pa.types.is_decimal(values.type):
        return fitted(values, target)
    if pa.types.is_integer(values.type):
        return fitted(values.cast(pa.decimal128(19, 0)), target)
    kind = pa.decimal128(target.precision, target.scale)
    single = pa.types.is_float32(values.type)
    return mapped(values, lambda value: _of_float(value, target, single), kind)


def _of_float(value: float, target: DecimalType, single: bool) -> Decimal | None:
    if value != value or value in (float("inf"), float("-inf")):
        return None
    return quantized(Decimal(repr(value)), target.precision, target.scale)
