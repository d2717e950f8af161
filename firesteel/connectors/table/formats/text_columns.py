"""Columns of text as columns of their types, and back, for all rows at once.

Arrow's own conversions do the work. What they refuse, or read otherwise than Java does, is read value by value.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.type_system.javatext import java_float as float_text
from firesteel.connectors.formats import texts
from firesteel.connectors.formats.json_writing import double_text
from firesteel.errors import ConfigurationError

__all__ = ["UnreadableText", "column_of_texts", "decimal_text", "parser_of", "texts_of_column", "timestamp_ticks"]

_EXACT = decimal.Context(prec=80)
_TICKS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_EPOCH = datetime.datetime(1970, 1, 1)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?", re.ASCII)
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)([ T])(\d\d:\d\d:\d\d)(?:\.(\d{0,9}))?(Z)?", re.ASCII)


class UnreadableText(ValueError):
    """The place of a text that is no value of the column's type."""

    def __init__(self, index: int, text: str) -> None:
        self.index, self.text = index, text
        super().__init__(index, text)


def column_of_texts(column: pa.Array, kind: pa.DataType, iso: bool = False, ignoring: bool = False) -> pa.Array:
    """Texts as values of a type; NULL stays. ``ignoring`` makes NULL of those that cannot be read.

    >>> column_of_texts(pa.array(["1", " 2 ", None]), pa.int32()).to_pylist()
    [1, 2, None]
    """
    if pa.types.is_string(kind):
        return column
    fast = _fast(column, kind, iso)
    if fast is not None:
        return fast
    parse = parser_of(kind, iso)
    values: list[Any] = []
    for index, text in enumerate(column.to_pylist()):
        try:
            values.append(None if text is None else parse(text))
        except (ValueError, ArithmeticError, binascii.Error):
            if not ignoring:
                raise UnreadableText(index, text) from None
            values.append(None)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(pa.timestamp(kind.unit)).cast(kind)
    return pa.array(values, kind)


def _fast(column: pa.Array, kind: pa.DataType, iso: bool) -> pa.Array | None:
    """All at once; None where only Java's rules tell."""
    kinds = pa.types
    try:
        if kinds.is_boolean(kind):
            return pc.equal(pc.ascii_lower(pc.utf8_trim_whitespace(column)), "true")
        if kinds.is_integer(kind):
            # Arrow reads 0x1F, Java does not.
            return None if pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py() else column.cast(kind)
        if kinds.is_floating(kind):
            return column.cast(kind) if _all_match(column, r"^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$") else None
        if kinds.is_decimal(kind):
            return column.cast(kind) if _all_match(column, r"^-?[0-9]+(\.[0-9]+)?$") else None
        if kinds.is_date(kind):
            return column.cast(kind) if _all_match(column, r"^\d{4}-\d\d-\d\d$") else None
        if kinds.is_time(kind):
            return column.cast(kind) if _all_match(column, r"^\d\d:\d\d:\d\d(\.\d{3})?$") else None
        if kinds.is_timestamp(kind):
            between, end = "T" if iso else " ", "" if kind.tz is None else "Z"
            if not _all_match(column, rf"^\d{{4}}-\d\d-\d\d{between}\d\d:\d\d:\d\d(\.\d+)?{end}$"):
                return None
            moments = pc.utf8_rtrim(column, "Z") if end else column
            return moments.cast(pa.timestamp(kind.unit)).cast(kind)
    except pa.ArrowInvalid:
        return None
    return None


def _all_match(column: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern)).as_py() is not False


# One value


def parser_of(kind: pa.DataType, iso: bool) -> Callable[[str], Any]:
    """A function from a text to a value that Arrow takes for this type: of a timestamp, the number of its ticks."""
    kinds = pa.types
    if kinds.is_integer(kind):
        return partial(_integer, kind.bit_width)
    simple: list[tuple[Callable[[Any], bool], Callable[[str], Any]]] = [
        (kinds.is_string, str),
        (kinds.is_boolean, lambda text: texts.java_trimmed(text).lower() == "true"),
        (kinds.is_floating, texts.java_float),
        (kinds.is_date, texts.iso_date),
        (kinds.is_time, _time),
        (kinds.is_binary, _decoded),
    ]
    for matches, parse in simple:
        if matches(kind):
            return parse
    if kinds.is_decimal(kind):
        return lambda text: rounded(texts.java_decimal(text), kind)
    if kinds.is_timestamp(kind):
        return lambda text: timestamp_ticks(text, kind, iso)
    raise ConfigurationError(f"Text has nothing for values of the type {kind}.")


def _integer(bits: int, text: str) -> int:
    number = texts.java_integer(text)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError
    return number


def rounded(number: decimal.Decimal, kind: pa.DataType) -> decimal.Decimal | None:
    """A decimal with the digits of its type; NULL if there are too many before the point."""
    fitted = number.quantize(decimal.Decimal(1).scaleb(-kind.scale), decimal.ROUND_HALF_UP, _EXACT)
    return fitted if abs(fitted) < decimal.Decimal(10) ** (kind.precision - kind.scale) else None


def _time(text: str) -> datetime.time:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError
    millis = int((found[4] or "").ljust(3, "0")[:3])
    return datetime.time(int(found[1]), int(found[2]), int(found[3]), millis * 1000)


def timestamp_ticks(text: str, kind: pa.DataType, iso: bool) -> int:
    """How many units after 1970 a text is. More digits than the type has are cut off."""
    found = _STAMP.fullmatch(text)
    if found is None or (found[2] == "T") != iso or (found[5] is None) != (kind.tz is None):
        raise ValueError
    seconds = round((datetime.datetime.fromisoformat(f"{found[1]} {found[3]}") - _EPOCH).total_seconds())
    nanos = seconds * 1_000_000_000 + int((found[4] or "").ljust(9, "0"))
    return nanos // _TICKS[kind.unit]


def _decoded(text: str) -> bytes:
    return texts.java_base64(text)


# And back


def texts_of_column(column: pa.Array, iso: bool = False) -> pa.Array:
    """Values as texts; NULL stays.

    >>> texts_of_column(pa.array([1500], pa.timestamp("ms"))).to_pylist()
    ['1970-01-01 00:00:01.5']
    """
    kind, kinds = column.type, pa.types
    if kinds.is_string(kind):
        return column
    if kinds.is_boolean(kind) or kinds.is_integer(kind) or kinds.is_date(kind):
        return column.cast(pa.string())
    if kinds.is_floating(kind):
        shown = double_text if kind == pa.float64() else float_text
        return _each(column, shown)
    if kinds.is_decimal(kind):
        return _each(column, decimal_text)
    if kinds.is_time(kind):
        return _without_zeros(column.cast(pa.string()))
    if kinds.is_timestamp(kind):
        if kind.tz is not None:
            column = column.cast(pa.int64()).cast(pa.timestamp(kind.unit))
        shown_at = _without_zeros(column.cast(pa.string()))
        if iso:
            shown_at = pc.replace_substring(shown_at, " ", "T", max_replacements=1)
        return shown_at if kind.tz is None else pc.binary_join_element_wise(shown_at, "Z", "")
    if kinds.is_binary(kind):
        return _each(column, lambda value: base64.b64encode(value).decode())
    raise ConfigurationError(f"Text has nothing for values of the type {kind}.")


def _each(column: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if value is None else text(value) for value in column.to_pylist()], pa.string())


def _without_zeros(shown: pa.Array) -> pa.Array:
    """Fractions of seconds without zeros at their end."""
    return pc.replace_substring_regex(pc.replace_substring_regex(shown, r"(\.\d*?)0+$", r"\1"), r"\.$", "")


def decimal_text(value: decimal.Decimal) -> str:
    """As Java shows a decimal without zeros at its end.

    >>> [decimal_text(decimal.Decimal(text)) for text in ("1.50", "100.00", "0.00")]
    ['1.5', '1E+2', '0']
    """
    return str(_EXACT.normalize(value)) if value else "0"
