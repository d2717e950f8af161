"""Values as CAST to STRING writes them; ``print()`` of a result shows the same."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from firesteel.common.type_system.javatext import java_double, java_float
from firesteel.table.types.data_types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    YearMonthIntervalType,
)
from firesteel.table.types.time_zones import clock_of

__all__ = ["printer"]

_UTC = datetime.UTC


def printer(kind: DataType, zone: str = "UTC", hexadecimal: bool = False) -> Callable[[Any], str]:
    """Writes values of the type, which come as Arrow gives them to Python. CAST reads bytes as text; ``print()`` shows
    them in ``hexadecimal`` digits.

    >>> from firesteel.table.types import DataTypes
    >>> printer(DataTypes.DOUBLE())(1e10), printer(DataTypes.BOOLEAN())(True)
    ('1.0E10', 'TRUE')
    """
    if isinstance(kind, BooleanType):
        return lambda value: "TRUE" if value else "FALSE"
    if isinstance(kind, DoubleType):
        return java_double
    if isinstance(kind, FloatType):
        return java_float
    if isinstance(kind, DecimalType):
        return _decimal
    if isinstance(kind, DateType):
        return datetime.date.isoformat
    if isinstance(kind, TimeType):
        return lambda value: _time(value, min(kind.precision, 3))
    if isinstance(kind, TimestampType):
        return lambda value: _timestamp(value, kind.precision)
    if isinstance(kind, LocalZonedTimestampType):
        there = clock_of(zone)
        return lambda value: _timestamp(value, kind.precision, there)
    if isinstance(kind, BinaryType | VarBinaryType):
        if hexadecimal:
            return lambda value: f"x'{value.hex()}'"
        return lambda value: value.decode("utf-8", "replace")
    if isinstance(kind, YearMonthIntervalType):
        return _months
    if isinstance(kind, DayTimeIntervalType):
        return _span
    return _nested(kind, zone) or str


def _nested(kind: DataType, zone: str) -> Callable[[Any], str] | None:
    if isinstance(kind, ArrayType):
        element = _or_null(printer(kind.element_type, zone))
        return lambda value: f"[{', '.join(map(element, value))}]"
    if isinstance(kind, MapType | MultisetType):
        key = _or_null(printer(kind.key_type if isinstance(kind, MapType) else kind.element_type, zone))
        item = _or_null(printer(kind.value_type, zone)) if isinstance(kind, MapType) else str
        return lambda value: "{" + ", ".join(f"{key(k)}={item(v)}" for k, v in _pairs(value)) + "}"
    if isinstance(kind, RowType):
        fields = [(each.name, _or_null(printer(each.data_type, zone))) for each in kind.fields]
        return lambda value: f"({', '.join(write(value[name]) for name, write in fields)})"
    return None


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else value


def _or_null(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "NULL" if value is None else write(value)


def _decimal(value: Decimal) -> str:
    return f"{value:f}"


def _time(value: datetime.time, digits: int) -> str:
    """Zeros at the end of a fraction are left out, but for one."""
    text = value.strftime("%H:%M:%S")
    if not digits:
        return text
    fraction = f"{value.microsecond:06d}"[:digits]
    return f"{text}.{fraction[0]}{fraction[1:].rstrip('0')}"


def _timestamp(value: Any, digits: int, zone: datetime.tzinfo | None = None) -> str:
    nanos = getattr(value, "nanosecond", 0)
    if zone is not None:
        value = value.astimezone(zone)
    text = f"{value.year:04d}-{value.month:02d}-{value.day:02d} {value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    return f"{text}.{value.microsecond * 1000 + nanos:09d}"[: len(text) + 1 + digits] if digits else text


def _months(value: int) -> str:
    years, months = divmod(abs(value), 12)
    return f"{'-' if value < 0 else '+'}{years}-{months:02d}"


def _span(value: datetime.timedelta) -> str:
    micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    sign, millis = ("-" if micros < 0 else "+"), abs(micros) // 1000
    seconds, millis = divmod(millis, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{sign}{days} {hours:02d}:{minutes:02d}:{seconds:02d}.{millis:03d}"
