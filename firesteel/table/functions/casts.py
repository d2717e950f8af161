"""CAST and TRY_CAST, with what Flink makes of each pair of types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.errors import FailureKind, ProgramError
from firesteel.table.functions.decimals import quantized, to_decimal
from firesteel.table.functions.evaluation import EvaluationContext, as_array
from firesteel.table.functions.printing import printer
from firesteel.table.functions.reading import read_date, read_time, read_timestamp
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.values import mapped
from firesteel.table.functions.zones import local_to_utc, utc_to_local
from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    FloatType,
    FractionalType,
    IntegralType,
    LocalZonedTimestampType,
    MapType,
    NullType,
    NumericType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)
from firesteel.table.types.derivation import is_binary, is_text

__all__ = ["CastError", "can_cast"]

Moment = TimestampType | LocalZonedTimestampType


class CastError(ProgramError):
    """A value that the type has no place for."""

    kind = FailureKind.PERMANENT


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether there is a cast between the types at all."""
    if isinstance(source, NullType) or source.not_null() == target.not_null() or is_text(target):
        return True
    if isinstance(source, NumericType):
        return isinstance(target, NumericType | BooleanType)
    if isinstance(source, BooleanType):
        return isinstance(target, NumericType)
    if is_text(source):
        return isinstance(target, NumericType | BooleanType | DateType | TimeType | Moment) or is_binary(target)
    if is_binary(source):
        return is_binary(target)
    if isinstance(source, DateType | TimeType | Moment):
        if isinstance(source, TimeType) or isinstance(target, TimeType):
            return isinstance(target, TimeType | Moment) and not isinstance(source, DateType)
        return isinstance(target, DateType | Moment)
    if isinstance(source, DayTimeIntervalType | YearMonthIntervalType):
        return isinstance(target, type(source))
    if isinstance(source, RowType) and isinstance(target, RowType):
        return len(source) == len(target) and all(
            can_cast(a.data_type, b.data_type) for a, b in zip(source, target, strict=True)
        )
    return type(source) is type(target)


def _cast(safe: bool) -> Callable[..., Datum]:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        values, source, target = arguments[0], call.args[0].type, call.type
        try:
            return _converted(values, source, target, context)
        except (CastError, pa.ArrowInvalid, ValueError):
            if not safe:
                raise
        # Some value has no place in the type: one by one then.
        column = as_array(values, context.rows)
        kind = arrow_type(target)
        single = EvaluationContext(1, context.time_zone, context.now)
        results = [_or_null(column[index : index + 1], source, target, kind, single) for index in range(len(column))]
        return pa.concat_arrays(results) if results else pa.nulls(0, kind)

    return kernel


def _or_null(
    value: pa.Array, source: DataType, target: DataType, kind: pa.DataType, context: EvaluationContext
) -> pa.Array:
    try:
        return as_array(_converted(value, source, target, context), 1)
    except (CastError, pa.ArrowInvalid, ValueError):
        return pa.nulls(1, kind)


def _converted(values: Datum, source: DataType, target: DataType, context: EvaluationContext) -> Datum:
    kind = arrow_type(target)
    if isinstance(source, NullType) or (isinstance(values, pa.Scalar) and not values.is_valid):
        return pa.scalar(None, kind)
    if isinstance(target, CharType | VarCharType):
        text = values if is_text(source) else mapped(values, printer(source, context.time_zone), kind)
        return _sized(text, target)
    if is_text(source):
        return _read(values, target, context)
    if isinstance(source, BooleanType):
        numbers = values.cast(pa.int8())
        return to_decimal(numbers, target) if isinstance(target, DecimalType) else numbers.cast(kind)
    if isinstance(source, NumericType):
        return _number(values, source, target, kind)
    if isinstance(target, BinaryType | VarBinaryType):
        return _sized_bytes(values, target)
    if isinstance(source, DateType | TimeType | Moment):
        return _moment(values, source, target, context)
    if isinstance(source, RowType) and isinstance(target, RowType) and values.type != kind:
        return _row(values, source, target, context)
    if isinstance(source, ArrayType | MapType) and type(source) is type(target) and values.type != kind:
        return _collection(values, source, target, context)
    return values if values.type == kind else values.cast(kind, safe=False)


def _collection(values: Datum, source: DataType, target: DataType, context: EvaluationContext) -> Datum:
    """Element by element, by the rules of their types. Arrow's own cast would look for rows' fields by name."""
    if isinstance(values, pa.Scalar):
        return _collection(pa.repeat(values, 1), source, target, context)[0]
    # Without an offset into larger buffers.
    column = values if values.offset == 0 else values.take(pa.array(range(len(values)), pa.int64()))
    kind, mask = arrow_type(target), pc.is_null(column) if column.null_count else None

    def part(elements: pa.Array, given: DataType, wanted: DataType) -> pa.Array:
        return as_array(_converted(elements, given, wanted, context), len(elements))

    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        elements = part(column.values, source.element_type, target.element_type)
        return pa.ListArray.from_arrays(column.offsets, elements, kind, mask=mask)
    assert isinstance(source, MapType)
    assert isinstance(target, MapType)
    keys = part(column.keys, source.key_type, target.key_type)
    items = part(column.items, source.value_type, target.value_type)
    return pa.MapArray.from_arrays(column.offsets, keys, items, kind, mask=mask)


def _row(values: Datum, source: RowType, target: RowType, context: EvaluationContext) -> Datum:
    """Field by field: it is their places that count, not their names."""
    if isinstance(values, pa.Scalar):
        return _row(pa.repeat(values, 1) if values.is_valid else pa.nulls(1, values.type), source, target, context)[0]
    pairs = zip(values.flatten(), source.fields, target.fields, strict=True)
    fields = [
        as_array(_converted(part, given.data_type, wanted.data_type, context), len(values))
        for part, given, wanted in pairs
    ]
    mask = pc.is_null(values) if values.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(arrow_type(target)), mask=mask)


def _number(values: Datum, source: DataType, target: DataType, kind: pa.DataType) -> Datum:
    if isinstance(target, BooleanType):
        if isinstance(source, DecimalType):
            return mapped(values, bool, pa.bool_())
        return pc.not_equal(values, pa.scalar(0, values.type))
    if isinstance(target, DecimalType):
        return to_decimal(values, target)
    if isinstance(source, DecimalType) and isinstance(target, IntegralType):
        return _whole(mapped(values, _wrapped, pa.int64()), kind)
    if isinstance(source, FractionalType) and isinstance(target, IntegralType):
        return _saturated(values, target, kind)
    if isinstance(target, FloatType) and isinstance(source, DecimalType):
        return values.cast(pa.float64()).cast(kind, safe=False)
    return values.cast(kind, safe=False)


def _whole(values: Datum, kind: pa.DataType) -> Datum:
    return values.cast(kind, safe=False)


def _wrapped(value: Decimal) -> int:
    """As BigDecimal.longValue: the fraction goes, and all but the last 64 bits."""
    low = int(value) & (2**64 - 1)
    return low - 2**64 if low >= 2**63 else low


def _saturated(values: Datum, target: IntegralType, kind: pa.DataType) -> Datum:
    """As Java: NaN is zero, what is too large is the largest. Shorter types take the last bits of an INT."""
    bits = max(32, target.bits)
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    wide = pa.int64() if bits == 64 else pa.int32()
    values = values.cast(pa.float64())
    clean = pc.if_else(pc.is_nan(values), pa.scalar(0.0), values)
    inside = pc.and_(pc.greater(clean, pa.scalar(float(least))), pc.less(clean, pa.scalar(float(most))))
    whole = pc.if_else(inside, pc.trunc(clean), pa.scalar(0.0)).cast(wide, safe=False)
    edge = pc.if_else(pc.less(clean, pa.scalar(0.0)), pa.scalar(least, wide), pa.scalar(most, wide))
    return pc.if_else(inside, whole, edge).cast(kind, safe=False)


def _sized(text: Datum, target: CharType | VarCharType) -> Datum:
    if target.length >= 2**31 - 1:
        return text
    cut = pc.utf8_slice_codeunits(text, 0, target.length)
    if isinstance(target, CharType):
        return pc.utf8_rpad(cut, width=target.length, padding=" ")
    return cut


def _sized_bytes(values: Datum, target: BinaryType | VarBinaryType) -> Datum:
    values = values.cast(pa.binary())
    if target.length >= 2**31 - 1:
        return values
    if isinstance(target, BinaryType):
        return mapped(values, lambda value: value[: target.length].ljust(target.length, b"\0"), pa.binary())
    return mapped(values, lambda value: value[: target.length], pa.binary())


# Text.


def _read(values: Datum, target: DataType, context: EvaluationContext) -> Datum:
    kind = arrow_type(target)
    if isinstance(target, BinaryType | VarBinaryType):
        return _sized_bytes(values, target)
    if isinstance(target, IntegralType):
        return mapped(values, lambda text: _integer(text, target), kind)
    if isinstance(target, DecimalType):
        return mapped(values, lambda text: _decimal(text, target), kind)
    if isinstance(target, FractionalType):
        return mapped(values, lambda text: _float(text, target), kind)
    if isinstance(target, BooleanType):
        return mapped(values, _boolean, kind)
    if isinstance(target, DateType):
        return mapped(values, lambda text: _known(read_date(text), text, target), kind)
    if isinstance(target, TimeType):
        return _clock(mapped(values, lambda text: _known(read_time(text), text, target), kind), target)
    assert isinstance(target, TimestampType | LocalZonedTimestampType)
    unit = {"ms": 1_000_000, "us": 1_000, "ns": 1}[kind.unit]
    counts = mapped(
        values, lambda text: _known(read_timestamp(text, target.precision), text, target) // unit, pa.int64()
    )
    local = counts.cast(pa.timestamp(kind.unit))
    return local_to_utc(local, context.time_zone) if isinstance(target, LocalZonedTimestampType) else local


def _refused(text: str, target: DataType) -> CastError:
    return CastError(f"{text!r} cannot be cast to {target.sql}. TRY_CAST gives NULL instead of an error.")


def _known(value: Any, text: str, target: DataType) -> Any:
    if value is None:
        raise _refused(text, target)
    return value


def _integer(text: str, target: IntegralType) -> int:
    """Digits, with a sign and a fraction, which goes."""
    stripped = text.strip(" ")
    body = stripped[1:] if stripped[:1] in ("+", "-") else stripped
    whole, point, fraction = body.partition(".")
    digits = whole + fraction
    good = bool(digits or point) and all("0" <= digit <= "9" for digit in digits)
    if not good or not stripped:
        raise _refused(text, target)
    value = int(whole or "0") * (-1 if stripped[0] == "-" else 1)
    if not -(2 ** (target.bits - 1)) <= value < 2 ** (target.bits - 1):
        raise _refused(text, target)
    return value


def _decimal(text: str, target: DecimalType) -> Decimal | None:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise _refused(text, target) from None
    if not value.is_finite() or "_" in text:
        raise _refused(text, target)
    return quantized(value, target.precision, target.scale)


def _float(text: str, target: DataType) -> float:
    stripped = text.strip()
    if stripped[-1:] in "dDfF" and stripped[:-1][-1:].isdigit():
        stripped = stripped[:-1]
    named = stripped.lower().lstrip("+-") in ("inf", "infinity", "nan")
    if "_" in stripped or (named and stripped.lstrip("+-") not in ("Infinity", "NaN")):
        raise _refused(text, target)
    try:
        return float(stripped)
    except ValueError:
        raise _refused(text, target) from None


def _boolean(text: str) -> bool:
    word = text.strip(" ").lower()
    if word in ("t", "true", "y", "yes", "1"):
        return True
    if word in ("f", "false", "n", "no", "0"):
        return False
    raise _refused(text, BooleanType())


# Dates and times.


def _moment(values: Datum, source: DataType, target: DataType, context: EvaluationContext) -> Datum:
    kind = arrow_type(target)
    if isinstance(source, LocalZonedTimestampType) and not isinstance(target, LocalZonedTimestampType):
        values = utc_to_local(values, context.time_zone)
    if isinstance(target, DateType):
        return values.cast(pa.date32(), safe=False) if isinstance(source, Moment) else values
    if isinstance(target, TimeType):
        if isinstance(source, Moment):
            values = pc.floor_temporal(values.cast(pa.timestamp("ms"), safe=False), unit="millisecond")
        return _clock(values.cast(pa.time32("ms")), target)
    if isinstance(source, TimeType):
        return values.cast(pa.int32()).cast(pa.int64()).cast(pa.timestamp("ms")).cast(kind, safe=False)
    assert isinstance(target, TimestampType | LocalZonedTimestampType)
    plain = pa.timestamp(kind.unit)
    if isinstance(source, DateType):
        values = values.cast(pa.timestamp("ms"))
    if isinstance(source, LocalZonedTimestampType) and isinstance(target, LocalZonedTimestampType):
        return _truncated(values, target.precision).cast(kind, safe=False)
    local = _truncated(values, target.precision).cast(plain, safe=False)
    if isinstance(target, LocalZonedTimestampType):
        return local_to_utc(local, context.time_zone)
    return local


def _clock(values: Datum, target: TimeType) -> Datum:
    """Times of day with the digits that their type has, three at most."""
    if target.precision >= 3:
        return values
    step = pa.scalar(10 ** (3 - target.precision), pa.int32())
    return pc.multiply(pc.divide(values.cast(pa.int32()), step), step).cast(values.type)


def _truncated(values: Datum, precision: int) -> Datum:
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[values.type.unit]
    if digits <= precision:
        return values
    step = 10 ** (digits - precision)
    counts = values.cast(pa.int64())
    whole = pc.multiply(pc.divide(pc.subtract(counts, pc.if_else(pc.less(counts, 0), step - 1, 0)), step), step)
    return whole.cast(values.type)


def _never_fails(call: Call) -> bool:
    """Whole numbers wrap around, and all of them can be written as text."""
    (value,) = call.args
    return isinstance(value.type, IntegralType) and (isinstance(call.type, IntegralType) or is_text(call.type))


def _rule(arguments: Sequence[Expression]) -> DataType:
    raise AssertionError("CAST names its type.")


register(
    Function(
        "CAST", Signature(("any",)), _rule, _cast(False), can_fail=True, safe=_never_fails, syntax="CAST(a AS type)"
    ),
)
register(Function("TRY_CAST", Signature(("any",)), _rule, _cast(True), syntax="TRY_CAST(a AS type)"))
