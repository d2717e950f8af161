"""PRINTF, with the formats of Java: ``%d``, ``%-10s``, ``%,.2f``, ``%2$s``."""

from __future__ import annotations

import datetime
import functools
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from firesteel.common.type_system.javatext import java_double, java_float
from firesteel.table.functions.evaluation import EvaluationContext, as_array
from firesteel.table.functions.java_printing import java_printer
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.text import maybe_string
from firesteel.table.logical.expressions import Call
from firesteel.table.types.data_types import (
    BigIntType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    LocalZonedTimestampType,
    TimestampType,
    TimeType,
)

__all__ = ["formatted"]

_FORMAT = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(]*)(\d+)?(?:\.(\d+))?(.)", re.DOTALL)
_EPOCH = datetime.date(1970, 1, 1)
_DIGITS = Context(prec=400, rounding=ROUND_HALF_UP)


class _MisfitError(Exception):
    """A format that does not fit its value: the result is NULL, as in Flink."""


def formatted(format_text: str, *values: Any) -> str | None:
    """A text with values in it; None if a format does not fit its value. A whole number comes with its number of bits.

    >>> formatted("%s: %05d|%,.2f", "a", (42, 32), 1234.5), formatted("%d", "x")
    ('a: 00042|1,234.50', None)
    """
    try:
        return _written(format_text, values)
    except _MisfitError:
        return None


def _written(text: str, values: tuple[Any, ...]) -> str:
    parts, at, following = [], 0, 0
    while at < len(text):
        sign = text.find("%", at)
        if sign < 0:
            break
        parts.append(text[at:sign])
        match = _FORMAT.match(text, sign)
        if match is None:
            raise _MisfitError
        index, flags, width, precision, conversion = match.groups()
        digits = int(precision) if precision is not None else None
        if conversion == "n":
            parts.append("\n")
        elif conversion == "%":
            parts.append(_padded("%", flags, width))
        else:
            place = int(index) - 1 if index is not None else following
            following += index is None
            if not 0 <= place < len(values):
                raise _MisfitError
            parts.append(_one(values[place], flags, width, digits, conversion))
        at = match.end()
    return "".join(parts) + text[at:]


def _one(value: Any, flags: str, width: str | None, digits: int | None, conversion: str) -> str:
    lower = conversion.lower()
    write = _CONVERSIONS.get(lower)
    if write is None or (conversion != lower and lower in "do"):
        raise _MisfitError
    if value is None and lower != "b":
        shown = "null"[:digits]
    else:
        shown = write(value, flags, digits)
    if "0" in flags and width is not None and lower in "doxfeg" and value is not None:
        head = re.match(r"[-+( ]?(?:0x)?", shown)
        start = head.end() if head is not None else 0
        shown = shown[:start] + "0" * (int(width) - len(shown)) + shown[start:]
    return _padded(shown.upper() if conversion != lower else shown, flags, width)


def _padded(text: str, flags: str, width: str | None) -> str:
    if width is None:
        return text
    return text.ljust(int(width)) if "-" in flags else text.rjust(int(width))


def _signed(negative: bool, digits: str, flags: str) -> str:
    if negative:
        return f"({digits})" if "(" in flags else f"-{digits}"
    return f"{'+' if '+' in flags else ' ' if ' ' in flags else ''}{digits}"


def _text(value: Any, flags: str, digits: int | None) -> str:
    if isinstance(value, tuple):
        value = value[0]
    shown = {True: "true", False: "false"}[value] if isinstance(value, bool) else value
    return (java_double(shown) if isinstance(shown, float) else str(shown))[:digits]


def _boolean(value: Any, flags: str, digits: int | None) -> str:
    return ("true" if value is not None and value is not False else "false")[:digits]


def _whole(value: Any, flags: str, digits: int | None) -> str:
    if not isinstance(value, tuple) or digits is not None:
        raise _MisfitError
    number = value[0]
    return _signed(number < 0, f"{abs(number):,d}" if "," in flags else str(abs(number)), flags)


def _radix(code: str, value: Any, flags: str, digits: int | None) -> str:
    if not isinstance(value, tuple) or digits is not None:
        raise _MisfitError
    number, bits = value
    mark = {"x": "0x", "o": "0"}[code] if "#" in flags else ""
    return mark + format(number % (1 << bits), code)


def _fraction(write: Callable[[Decimal, int, bool], str]) -> Callable[[Any, str, int | None], str]:
    def written(value: Any, flags: str, digits: int | None) -> str:
        if not isinstance(value, float):
            raise _MisfitError
        if not math.isfinite(value):
            return _signed(value < 0, java_double(abs(value)), flags)
        number = abs(Decimal(java_double(value)))
        return _signed(math.copysign(1, value) < 0, write(number, 6 if digits is None else digits, "," in flags), flags)

    return written


def _fixed(number: Decimal, digits: int, grouped: bool) -> str:
    rounded = number.quantize(Decimal(1).scaleb(-digits), context=_DIGITS)
    return format(rounded, ",f" if grouped else "f")


def _scientific(number: Decimal, digits: int, grouped: bool) -> str:
    exponent = number.adjusted() if number else 0
    rounded = number.scaleb(-exponent).quantize(Decimal(1).scaleb(-digits), context=_DIGITS)
    if rounded >= 10:
        rounded, exponent = rounded.scaleb(-1).quantize(Decimal(1).scaleb(-digits), context=_DIGITS), exponent + 1
    return f"{rounded:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _general(number: Decimal, digits: int, grouped: bool) -> str:
    digits = digits or 1
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).plus(number)
    if not rounded:
        return _fixed(rounded, digits - 1, grouped)
    if Decimal("0.0001") <= rounded < Decimal(10) ** digits:
        return _fixed(rounded, digits - 1 - rounded.adjusted(), grouped)
    return _scientific(number, digits - 1, grouped)


_CONVERSIONS: dict[str, Callable[[Any, str, int | None], str]] = {
    "s": _text,
    "b": _boolean,
    "d": _whole,
    "x": functools.partial(_radix, "x"),
    "o": functools.partial(_radix, "o"),
    "f": _fraction(_fixed),
    "e": _fraction(_scientific),
    "g": _fraction(_general),
}


def _argument_of(kind: DataType) -> Callable[[Any], Any]:
    """Values as the formats see them: dates are days since 1970, and times milliseconds, as in Flink."""
    if isinstance(kind, BooleanType | DoubleType):
        return lambda value: value
    if isinstance(kind, FloatType):
        return lambda value: None if value is None else float(java_float(value))
    if isinstance(kind, DateType):
        return lambda value: None if value is None else ((value - _EPOCH).days, 32)
    if isinstance(kind, TimeType):
        return lambda value: None if value is None else (_millis(value), 32)
    if isinstance(kind, TimestampType | LocalZonedTimestampType):
        # Flink has the moment's clock in UTC.
        write = java_printer(TimestampType(kind.precision))
        return lambda value: None if value is None else write(value)
    if isinstance(kind, DayTimeIntervalType):
        return lambda value: None if value is None else (value // datetime.timedelta(milliseconds=1), 64)
    bits = 64 if isinstance(kind, BigIntType) else 32
    return lambda value: (value, bits) if isinstance(value, int) else value


def _millis(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def _printf(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    texts = as_array(arguments[0], context.rows).to_pylist()
    columns = []
    for expression, argument in zip(call.args[1:], arguments[1:], strict=True):
        convert = _argument_of(expression.type)
        columns.append([convert(value) for value in as_array(argument, context.rows).to_pylist()])
    rows = zip(*columns, strict=True) if columns else [()] * context.rows
    made = [None if text is None else formatted(text, *values) for text, values in zip(texts, rows, strict=True)]
    return pa.array(made, pa.string())


register(Function("PRINTF", Signature(("string", "any"), optional=1, repeated=True), maybe_string, _printf))
