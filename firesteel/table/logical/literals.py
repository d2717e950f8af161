"""Constants of SQL and of Python programs, with Flink's types."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from firesteel.table.functions.reading import read_date, read_time, read_timestamp
from firesteel.table.logical.expressions import Literal
from firesteel.table.sql.syntax import Constant, Interval
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    MAX_PRECISION,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    NullType,
    NumericType,
    TimestampType,
    TimeType,
    VarCharType,
    YearMonthIntervalType,
)
from firesteel.table.types.derivation import is_binary

__all__ = ["LEAST", "constant", "interval", "python_literal"]

_MILLIS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000}
_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")
LEAST = {
    -(2**31): Literal(-(2**31), IntType(is_nullable=False)),
    -(2**63): Literal(-(2**63), BigIntType(is_nullable=False)),
}
"""The least INT and BIGINT are written with a minus in front of a number that is one too large for the type."""


def constant(node: Constant) -> Literal:
    """A constant of SQL. ValueError says what is wrong with it."""
    kind, value = node.kind, node.value
    if kind == "null":
        return Literal(None, NullType())
    if kind == "boolean":
        return Literal(value, BooleanType(is_nullable=False))
    if kind == "string":
        return Literal(value, CharType(len(value), is_nullable=False))
    if kind == "bytes":
        return Literal(value, BinaryType(len(value), is_nullable=False))
    if kind == "python":
        return value if isinstance(value, Literal) else python_literal(value)
    if kind == "number":
        if isinstance(value, int) and value >= 2**63:
            raise ValueError(f"{value} is too large for a BIGINT. With a point it is a DECIMAL: {value}.0.")
        return _number(value)
    return _temporal(kind, value)


def _number(value: int | Decimal | float) -> Literal:
    if isinstance(value, float):
        return Literal(value, DoubleType(is_nullable=False))
    if isinstance(value, int):
        if value < 2**31:
            return Literal(value, IntType(is_nullable=False))
        if value < 2**63:
            return Literal(value, BigIntType(is_nullable=False))
        value = Decimal(value)
    scale = max(0, -int(value.as_tuple().exponent))
    digits = len(value.as_tuple().digits)
    # A zero in front of the point counts.
    precision = max(digits, scale + 1)
    if precision > MAX_PRECISION:
        raise ValueError(f"The number has {precision} digits; {MAX_PRECISION} are the most.")
    return Literal(value, DecimalType(precision, scale, is_nullable=False))


def _temporal(kind: str, text: str) -> Literal:
    if kind == "date":
        day = read_date(text) if text.count("-") == 2 else None
        if day is None:
            raise ValueError(f"DATE '{text}' is not a date: it is written DATE '2024-12-31'.")
        return Literal(day, DateType(is_nullable=False))
    digits = len(text.partition(".")[2])
    if kind == "time":
        clock = read_time(text)
        if clock is None:
            raise ValueError(f"TIME '{text}' is not a time: it is written TIME '23:59:59'.")
        return Literal(clock, TimeType(min(digits, 3), is_nullable=False))
    nanos = read_timestamp(text, 9) if " " in text.strip() else None
    if nanos is None:
        raise ValueError(f"TIMESTAMP '{text}' is not a timestamp: it is written TIMESTAMP '2024-12-31 23:59:59.999'.")
    return Literal(_moment(nanos), TimestampType(min(digits, 9), is_nullable=False))


def _moment(nanos: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=nanos // 1000)


def interval(node: Interval) -> Literal:
    """A span of time: months, or milliseconds. ValueError says what is wrong with it.

    >>> from firesteel.table.sql import parse_expression
    >>> print(interval(parse_expression("INTERVAL '1 02:03' DAY TO MINUTE")).value)
    1 day, 2:03:00
    """
    text = node.text.strip()
    negative = node.negative
    if text[:1] in ("+", "-"):
        negative ^= text[0] == "-"
        text = text[1:]
    resolution = node.unit if node.to is None else f"{node.unit} TO {node.to}"
    try:
        if node.unit in ("YEAR", "MONTH"):
            months = _months(text, node.unit, node.to)
            return Literal(-months if negative else months, YearMonthIntervalType("MONTH", is_nullable=False))
        millis = _millis(text, node.unit, node.to or node.unit)
    except (ValueError, IndexError):
        raise ValueError(f"'{node.text}' is not an interval {resolution}.") from None
    span = datetime.timedelta(milliseconds=-millis if negative else millis)
    return Literal(span, DayTimeIntervalType("SECOND", is_nullable=False))


def _months(text: str, unit: str, to: str | None) -> int:
    if unit == "YEAR" and to == "MONTH":
        years, months = text.split("-")
        return int(years) * 12 + int(months)
    return int(text) * (12 if unit == "YEAR" else 1)


def _millis(text: str, unit: str, to: str) -> int:
    units = _UNITS[_UNITS.index(unit) : _UNITS.index(to) + 1]
    parts = text.replace(" ", ":").split(":")
    if len(parts) != len(units):
        raise ValueError(text)
    total = 0
    for part, each in zip(parts, units, strict=True):
        whole, _, fraction = part.partition(".")
        if fraction and each != "SECOND":
            raise ValueError(text)
        total += int(whole) * _MILLIS[each] + int(fraction.ljust(3, "0")[:3] or 0)
    return total


def python_literal(value: Any, kind: DataType | None = None) -> Literal:
    """A value of a Python program.

    >>> print(python_literal("ab").type, python_literal(1.5).type)
    CHAR(2) NOT NULL DOUBLE NOT NULL
    """
    if kind is not None:
        return Literal(_fitted(value, kind), kind)
    if value is None:
        return Literal(None, NullType())
    if isinstance(value, bool):
        return Literal(value, BooleanType(is_nullable=False))
    if isinstance(value, int | Decimal | float):
        return _number(value)
    if isinstance(value, str):
        return Literal(value, CharType(min(len(value), MAX_LENGTH), is_nullable=False))
    if isinstance(value, bytes):
        return Literal(value, BinaryType(len(value), is_nullable=False))
    if isinstance(value, datetime.datetime):
        zoned = value.tzinfo is not None
        return Literal(value, (LocalZonedTimestampType if zoned else TimestampType)(6, is_nullable=False))
    if isinstance(value, datetime.date):
        return Literal(value, DateType(is_nullable=False))
    if isinstance(value, datetime.time):
        return Literal(value, TimeType(3 if value.microsecond else 0, is_nullable=False))
    if isinstance(value, datetime.timedelta):
        return Literal(value, DayTimeIntervalType(is_nullable=False))
    raise ValueError(f"lit() takes numbers, text, bytes, dates and times, got {type(value).__name__}.")


def _fitted(value: Any, kind: DataType) -> Any:
    """A value for a type, which is refused here, not when the job runs, if it is none of it."""
    if value is None:
        if not kind.is_nullable:
            raise ValueError(f"None is no value of {kind}: use null_of() of a type that may be NULL.")
        return None
    if isinstance(value, str) and isinstance(kind, CharType | VarCharType):
        # Flink cuts what is too long.
        return value[: kind.length]
    misfit = isinstance(value, bool) != isinstance(kind, BooleanType)
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Arrow would cut fractions, and count days and microseconds.
        misfit = not isinstance(kind, NumericType | YearMonthIntervalType) or (
            isinstance(value, float) and isinstance(kind, IntegralType)
        )
    if isinstance(value, str | bytes):
        misfit = isinstance(value, str) or not is_binary(kind)
    if isinstance(value, datetime.datetime):
        misfit = isinstance(kind, DateType)
    try:
        pa.array([value], arrow_type(kind))
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        misfit = True
    if isinstance(value, list | tuple | dict):
        raise ValueError(f"lit() takes no {type(value).__name__}: use array(), map_() or row().")
    if misfit:
        raise ValueError(f"lit() of {kind} takes a value of this type, got {type(value).__name__} {value!r}. Cast it.")
    return value
