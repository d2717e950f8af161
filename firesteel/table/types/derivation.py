"""The types that expressions have: Flink's rules for numbers, decimals and common types."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.types.data_types import (
    MAX_PRECISION,
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FractionalType,
    IntegralType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    NumericType,
    RowField,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

__all__ = [
    "any_nullable",
    "arithmetic_type",
    "average_type",
    "common_type",
    "decimal_of",
    "fitted_decimal",
    "is_binary",
    "is_text",
    "printable",
    "round_type",
    "sum_type",
]

Text = CharType | VarCharType
Binary = BinaryType | VarBinaryType
_LEAST_SCALE = 6


def is_text(kind: DataType) -> bool:
    """CHAR, VARCHAR or STRING."""
    return isinstance(kind, CharType | VarCharType)


def printable(kind: DataType) -> bool:
    """What the Table API's + puts behind a text: all but bytes and what has elements or fields."""
    return not (is_binary(kind) or isinstance(kind, ArrayType | MapType | MultisetType | RowType))


def is_binary(kind: DataType) -> bool:
    """BINARY, VARBINARY or BYTES."""
    return isinstance(kind, BinaryType | VarBinaryType)


def any_nullable(kinds: Sequence[DataType]) -> bool:
    """Whether one of them may be NULL."""
    return any(kind.is_nullable for kind in kinds)


def decimal_of(kind: DataType) -> DecimalType | None:
    """The decimal that holds every value of an exact number."""
    if isinstance(kind, DecimalType):
        return kind
    if isinstance(kind, IntegralType):
        return DecimalType(kind.digits, 0, is_nullable=kind.is_nullable)
    return None


def fitted_decimal(precision: int, scale: int) -> DecimalType:
    """A decimal with that many digits, or with 38: then digits behind the point go, down to six of them.

    >>> str(fitted_decimal(59, 23))
    'DECIMAL(38, 6)'
    """
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    whole = precision - scale
    return DecimalType(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _LEAST_SCALE)))


def arithmetic_type(operator: str, left: DataType, right: DataType) -> DataType | None:
    """The type of ``left operator right`` for two numbers; None if they are not.

    >>> from firesteel.table.types import DataTypes
    >>> str(arithmetic_type("/", DataTypes.DECIMAL(10, 2), DataTypes.INT()))
    'DECIMAL(21, 13)'
    """
    if not isinstance(left, NumericType) or not isinstance(right, NumericType):
        return None
    nullable = left.is_nullable or right.is_nullable
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        first, second = decimal_of(left), decimal_of(right)
        if first is None or second is None:
            return DoubleType(is_nullable=nullable)
        return _decimal_arithmetic(operator, first, second).with_nullability(nullable)
    if operator == "%" and isinstance(right, IntegralType) and isinstance(left, IntegralType):
        # The remainder is no larger than the divisor.
        return right.with_nullability(nullable)
    return _wider(left, right).with_nullability(nullable)


def _decimal_arithmetic(operator: str, left: DecimalType, right: DecimalType) -> DecimalType:
    whole_left, whole_right = left.precision - left.scale, right.precision - right.scale
    scale = max(left.scale, right.scale)
    if operator in "+-":
        return fitted_decimal(max(whole_left, whole_right) + scale + 1, scale)
    if operator == "*":
        return fitted_decimal(left.precision + right.precision + 1, left.scale + right.scale)
    if operator == "/":
        scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
        return fitted_decimal(whole_left + right.scale + scale, scale)
    return fitted_decimal(min(whole_left, whole_right) + scale, scale)


def _wider(left: NumericType, right: NumericType) -> NumericType:
    if isinstance(left, FractionalType):
        # Of two approximate numbers the first decides, as in Flink.
        return left
    if isinstance(right, FractionalType):
        return right
    assert isinstance(left, IntegralType)
    assert isinstance(right, IntegralType)
    return left if left.bits >= right.bits else right


def sum_type(kind: DataType) -> DataType:
    """Of SUM: a number of the same type, a decimal with all digits. NULL without any row."""
    if isinstance(kind, DecimalType):
        return DecimalType(MAX_PRECISION, kind.scale)
    return kind.nullable()


def average_type(kind: DataType) -> DataType:
    """Of AVG: a number of the same type; a decimal gets digits behind the point."""
    if isinstance(kind, DecimalType):
        return _decimal_arithmetic("/", DecimalType(MAX_PRECISION, kind.scale), DecimalType(20, 0))
    return kind.nullable()


def round_type(kind: DecimalType, digits: int) -> DecimalType:
    """Of ROUND to a number of digits behind the point."""
    if digits >= kind.scale:
        return kind
    whole = kind.precision - kind.scale
    if digits < 0:
        return DecimalType(min(MAX_PRECISION, whole + 1), 0, is_nullable=kind.is_nullable)
    return DecimalType(whole + digits + 1, digits, is_nullable=kind.is_nullable)


def common_type(kinds: Sequence[DataType]) -> DataType | None:
    """The type that the values of all these types can be brought to, if there is one: of CASE, UNION, IN.

    >>> from firesteel.table.types import DataTypes
    >>> str(common_type([DataTypes.INT(False), DataTypes.DECIMAL(5, 2), DataTypes.NULL()]))
    'DECIMAL(12, 2)'
    """
    nullable = any_nullable(kinds)
    known = [kind for kind in kinds if not isinstance(kind, NullType)]
    if not known:
        return NullType()
    found: DataType | None = known[0]
    for kind in known[1:]:
        found = _common(found, kind) if found is not None else None
    return found.with_nullability(nullable) if found is not None else None


def _common(left: DataType, right: DataType) -> DataType | None:
    if left.not_null() == right.not_null():
        return left.with_nullability(left.is_nullable or right.is_nullable)
    if isinstance(left, NumericType) and isinstance(right, NumericType):
        return _common_number(left, right)
    if is_text(left) and is_text(right):
        return _common_text(left, right)
    if is_binary(left) and is_binary(right):
        length = max(left.length, right.length)  # type: ignore[attr-defined]
        both_fixed = isinstance(left, BinaryType) and isinstance(right, BinaryType) and left.length == right.length
        return BinaryType(length) if both_fixed else VarBinaryType(length)
    moment = (TimestampType, LocalZonedTimestampType, DateType)
    if isinstance(left, moment) and isinstance(right, moment):
        return _common_moment(left, right)
    if isinstance(left, TimeType) and isinstance(right, TimeType):
        return TimeType(max(left.precision, right.precision))
    if isinstance(left, DayTimeIntervalType) and isinstance(right, DayTimeIntervalType):
        return DayTimeIntervalType()
    if isinstance(left, YearMonthIntervalType) and isinstance(right, YearMonthIntervalType):
        return YearMonthIntervalType()
    return _common_nested(left, right)


def _common_number(left: NumericType, right: NumericType) -> DataType:
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        first, second = decimal_of(left), decimal_of(right)
        if first is None or second is None:
            return DoubleType()
        scale = max(first.scale, second.scale)
        whole = max(first.precision - first.scale, second.precision - second.scale)
        return DecimalType(min(MAX_PRECISION, whole + scale), min(scale, MAX_PRECISION - whole))
    return _wider(left, right)


def _common_text(left: DataType, right: DataType) -> DataType:
    assert isinstance(left, CharType | VarCharType)
    assert isinstance(right, CharType | VarCharType)
    length = max(left.length, right.length)
    if isinstance(left, CharType) and isinstance(right, CharType) and left.length == right.length:
        return CharType(length)
    return VarCharType(length)


def _common_moment(left: DataType, right: DataType) -> DataType:
    precision = max(getattr(left, "precision", 0), getattr(right, "precision", 0))
    if isinstance(left, LocalZonedTimestampType) or isinstance(right, LocalZonedTimestampType):
        return LocalZonedTimestampType(precision)
    return TimestampType(precision)


def _common_nested(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        element = common_type([left.element_type, right.element_type])
        return ArrayType(element) if element is not None else None
    if isinstance(left, MultisetType) and isinstance(right, MultisetType):
        element = common_type([left.element_type, right.element_type])
        return MultisetType(element) if element is not None else None
    if isinstance(left, MapType) and isinstance(right, MapType):
        key = common_type([left.key_type, right.key_type])
        value = common_type([left.value_type, right.value_type])
        return MapType(key, value) if key is not None and value is not None else None
    if isinstance(left, RowType) and isinstance(right, RowType) and len(left) == len(right):
        members = [common_type([a.data_type, b.data_type]) for a, b in zip(left, right, strict=True)]
        if all(member is not None for member in members):
            return RowType(
                tuple(RowField(each.name, kind) for each, kind in zip(left, members, strict=True) if kind is not None)
            )
    return None


def comparable(left: DataType, right: DataType) -> bool:
    """Whether values of the two can be compared."""
    if isinstance(left, NullType) or isinstance(right, NullType):
        return True
    if isinstance(left, BooleanType) != isinstance(right, BooleanType):
        return False
    return common_type([left, right]) is not None or _is_number_and_text(left, right)


def _is_number_and_text(left: DataType, right: DataType) -> bool:
    return any(
        is_text(a) and isinstance(b, NumericType | DateType | TimestampType | TimeType | BigIntType)
        for a, b in ((left, right), (right, left))
    )
