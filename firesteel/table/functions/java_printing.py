"""Values as Java's ``toString`` writes them: the print connector does."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from firesteel.table.functions.printing import printer
from firesteel.table.types.data_types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
)

__all__ = ["java_printer"]


def java_printer(kind: DataType) -> Callable[[Any], str]:
    """Writes values of the type, which come as Arrow gives them to Python.

    >>> from firesteel.table.types import DataTypes
    >>> java_printer(DataTypes.TIMESTAMP(3))(datetime.datetime(2024, 3, 10, 6))
    '2024-03-10T06:00'
    >>> java_printer(DataTypes.ARRAY(DataTypes.BYTES()))([b"c1", None])
    '[[99, 49], null]'
    """
    if isinstance(kind, BooleanType):
        return lambda value: str(value).lower()
    if isinstance(kind, BinaryType | VarBinaryType):
        return _signed_bytes
    if isinstance(kind, TimeType):
        return _clock
    if isinstance(kind, TimestampType):
        return lambda value: f"{_day(value)}T{_clock(value)}"
    if isinstance(kind, LocalZonedTimestampType):
        return _instant
    return _nested(kind) or printer(kind)


def _nested(kind: DataType) -> Callable[[Any], str] | None:
    if isinstance(kind, ArrayType):
        element = _or_null(kind.element_type)
        return lambda value: f"[{', '.join(map(element, value))}]"
    if isinstance(kind, MapType | MultisetType):
        key = _or_null(kind.key_type if isinstance(kind, MapType) else kind.element_type)
        item = _or_null(kind.value_type) if isinstance(kind, MapType) else str
        return lambda value: "{" + ", ".join(f"{key(k)}={item(v)}" for k, v in _pairs(value)) + "}"
    if isinstance(kind, RowType):
        fields = [(each.name, _or_null(each.data_type)) for each in kind.fields]
        return lambda value: f"+I[{', '.join(write(value[name]) for name, write in fields)}]"
    return None


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else value


def _or_null(kind: DataType) -> Callable[[Any], str]:
    write = java_printer(kind)
    return lambda value: "null" if value is None else write(value)


def _signed_bytes(value: bytes) -> str:
    return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"


def _day(value: datetime.datetime) -> str:
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


def _clock(value: Any) -> str:
    """LocalTime: seconds only if there are some, and as many groups of three digits behind them as say something."""
    nanos = value.microsecond * 1000 + getattr(value, "nanosecond", 0)
    text = f"{value.hour:02d}:{value.minute:02d}"
    if not value.second and not nanos:
        return text
    return f"{text}:{value.second:02d}{_fraction(nanos)}"


def _instant(value: Any) -> str:
    """Instant: in UTC, always with seconds."""
    value = value.astimezone(datetime.UTC)
    nanos = value.microsecond * 1000 + getattr(value, "nanosecond", 0)
    return f"{_day(value)}T{value.hour:02d}:{value.minute:02d}:{value.second:02d}{_fraction(nanos)}Z"


def _fraction(nanos: int) -> str:
    if not nanos:
        return ""
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}"
