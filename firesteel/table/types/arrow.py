"""The Arrow form of types: how columns are laid out in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from firesteel.errors import ProgramError
from firesteel.table.types.data_types import (
    MAX_LENGTH,
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
    FloatType,
    IntType,
    ListViewType,
    LocalZonedTimestampType,
    MapType,
    MapViewType,
    MultisetType,
    NullType,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

__all__ = ["arrow_schema", "arrow_type", "logical_type", "strict_schema"]

_SIMPLE: dict[type[DataType], pa.DataType] = {
    NullType: pa.null(),
    BooleanType: pa.bool_(),
    TinyIntType: pa.int8(),
    SmallIntType: pa.int16(),
    IntType: pa.int32(),
    BigIntType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    CharType: pa.string(),
    VarCharType: pa.string(),
    BinaryType: pa.binary(),
    VarBinaryType: pa.binary(),
    DateType: pa.date32(),
    # Flink counts a time of day in milliseconds, whatever its precision.
    TimeType: pa.time32("ms"),
    YearMonthIntervalType: pa.int32(),
    DayTimeIntervalType: pa.duration("ms"),
}
_BUILT: dict[type[DataType], Callable[..., pa.DataType]] = {
    DecimalType: lambda kind: pa.decimal128(kind.precision, kind.scale),
    TimestampType: lambda kind: pa.timestamp(_unit(kind.precision)),
    LocalZonedTimestampType: lambda kind: pa.timestamp(_unit(kind.precision), "UTC"),
    ArrayType: lambda kind: pa.list_(arrow_type(kind.element_type)),
    MultisetType: lambda kind: pa.map_(arrow_type(kind.element_type), pa.int32()),
    MapType: lambda kind: pa.map_(arrow_type(kind.key_type), arrow_type(kind.value_type)),
    ListViewType: lambda kind: pa.list_(arrow_type(kind.element_type)),
    MapViewType: lambda kind: pa.map_(arrow_type(kind.key_type), arrow_type(kind.value_type)),
    RowType: lambda kind: pa.struct([pa.field(each.name, arrow_type(each.data_type)) for each in kind.fields]),
}


def _unit(precision: int) -> str:
    return "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a column.

    >>> arrow_type(DecimalType(10, 2)), arrow_type(TimestampType(3))
    (Decimal128Type(decimal128(10, 2)), TimestampType(timestamp[ms]))
    """
    simple = _SIMPLE.get(type(kind))
    return simple if simple is not None else _BUILT[type(kind)](kind)


def arrow_schema(names: Iterable[str], types: Iterable[DataType]) -> pa.Schema:
    """The schema of a batch. Arrow's fields are nullable all of them: nullability is checked where rows come in."""
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in zip(names, types, strict=True)])


def strict_schema(names: Iterable[str], types: Iterable[DataType]) -> pa.Schema:
    """The same with fields that are not nullable where columns are not, for formats that store the difference."""
    return pa.schema([_strict_field(name, kind) for name, kind in zip(names, types, strict=True)])


def _strict_field(name: str, kind: DataType) -> pa.Field:
    stored = arrow_type(kind)
    if isinstance(kind, RowType):
        stored = pa.struct([_strict_field(each.name, each.data_type) for each in kind.fields])
    elif isinstance(kind, ArrayType):
        stored = pa.list_(_strict_field("item", kind.element_type))
    elif isinstance(kind, MapType):
        key = _strict_field("key", kind.key_type).with_nullable(False)
        stored = pa.map_(key, _strict_field("value", kind.value_type))
    return pa.field(name, stored, nullable=kind.is_nullable)


_BACK: dict[pa.DataType, DataType] = {
    pa.null(): NullType(),
    pa.bool_(): BooleanType(),
    pa.int8(): TinyIntType(),
    pa.int16(): SmallIntType(),
    pa.int32(): IntType(),
    pa.int64(): BigIntType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): VarCharType(MAX_LENGTH),
    pa.large_string(): VarCharType(MAX_LENGTH),
    pa.binary(): VarBinaryType(MAX_LENGTH),
    pa.large_binary(): VarBinaryType(MAX_LENGTH),
    pa.date32(): DateType(),
}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def logical_type(kind: pa.DataType) -> DataType:
    """The type of a column that came as Arrow data, from pandas or a file.

    >>> str(logical_type(pa.list_(pa.int64())))
    'ARRAY<BIGINT>'
    """
    known = _BACK.get(kind)
    if known is not None:
        return known
    if pa.types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        digits = _DIGITS[kind.unit]
        return TimestampType(digits) if kind.tz is None else LocalZonedTimestampType(digits)
    if pa.types.is_time(kind):
        return TimeType(0)
    if pa.types.is_duration(kind):
        return DayTimeIntervalType()
    if pa.types.is_map(kind):
        return MapType(logical_type(kind.key_type).not_null(), logical_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return ArrayType(logical_type(kind.value_type))
    if pa.types.is_struct(kind):
        return RowType(tuple(RowField(each.name, logical_type(each.type)) for each in kind))
    if pa.types.is_dictionary(kind):
        return logical_type(kind.value_type)
    raise ProgramError(f"No type of tables corresponds to Arrow's {kind}.")
