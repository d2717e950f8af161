"""Numbers, dates and times in texts, with the rules of the Java classes that Flink's formats use."""

from __future__ import annotations

import binascii
import calendar
import contextlib
import datetime
import decimal
import re

from firesteel.common.time import Instant

__all__ = [
    "iso_date",
    "java_base64",
    "java_decimal",
    "java_float",
    "java_integer",
    "java_trimmed",
    "sql_date",
    "sql_instant",
    "sql_time",
    "sql_timestamp",
    "utc_time",
    "utc_timestamp",
    "zoned_instant",
]

_CUT_OFF = "".join(map(chr, range(33)))
"""What ``String.trim`` cuts off."""

_INTEGER = re.compile(r"[+-]?\d+")
_DIGITS = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_DECIMAL = re.compile(rf"[+-]?{_DIGITS}", re.ASCII)
_FLOAT = re.compile(rf"([+-]?(?:NaN|Infinity|{_DIGITS}))[fFdD]?", re.ASCII)
_HEX_FLOAT = re.compile(r"([+-]?0[xX][\da-fA-F.]+[pP][+-]?\d+)[fFdD]?", re.ASCII)

_TIME = r"(\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?"
_DATE = r"(\d{4})-(\d\d)-(\d\d)"
_UTC_TIME = re.compile(rf"{_TIME}Z", re.ASCII)
_UTC_TIMESTAMP = re.compile(rf"{_DATE}T{_TIME}Z", re.ASCII)
_SQL_INSTANT = re.compile(rf"{_DATE} {_TIME}Z", re.ASCII)
_ZONED = re.compile(rf"{_DATE}T{_TIME}(Z|[+-]\d\d:?\d\d)", re.ASCII)
_ISO_DATE = re.compile(_DATE, re.ASCII)
_SQL_DATE = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)", re.ASCII)
_SQL_TIME = re.compile(r"(\d+):(\d+):(\d+)", re.ASCII)
_SQL_TIMESTAMP = re.compile(r"(\d{4})-(\d\d?)-(\d\d?) (\d+):(\d+):(\d+)(?:\.(\d{1,9}))?", re.ASCII)

_MIDNIGHT = datetime.datetime(1970, 1, 1)


def java_trimmed(text: str) -> str:
    """``String.trim``, which knows fewer kinds of space than Python."""
    return text.strip(_CUT_OFF)


def java_integer(text: str) -> int:
    """``Long.parseLong`` of a trimmed text, without its bounds.

    >>> java_integer(" +12 ")
    12
    """
    text = text.strip(_CUT_OFF)
    if _INTEGER.fullmatch(text) is None:
        raise ValueError
    return int(text)


def java_float(text: str) -> float:
    """``Double.parseDouble``.

    >>> java_float("1e3"), java_float("-Infinity"), java_float("0x1p3"), java_float(" 1.5f ")
    (1000.0, -inf, 8.0, 1.5)
    """
    if text[-1:].isdigit() and text.isascii() and "_" not in text:
        # Most numbers. Python's float takes no other text that ends with a digit but the underscore's.
        with contextlib.suppress(ValueError):
            return float(text)
    text = text.strip(_CUT_OFF)
    if (found := _FLOAT.fullmatch(text)) is not None:
        return float(found[1])
    if (found := _HEX_FLOAT.fullmatch(text)) is not None:
        return float.fromhex(found[1])
    raise ValueError


def java_decimal(text: str) -> decimal.Decimal:
    """``new BigDecimal(text)`` of a trimmed text: finite, and without a negative zero.

    >>> java_decimal(" 1.50"), java_decimal("-0.0")
    (Decimal('1.50'), Decimal('0.0'))
    """
    text = text.strip(_CUT_OFF)
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError
    number = decimal.Decimal(text)
    return number if number else number.copy_abs()


def java_base64(text: str) -> bytes:
    """Base64 with its padding, without spaces and line ends.

    >>> java_base64("AP8=")
    b'\\x00\\xff'
    """
    return binascii.a2b_base64(text, strict_mode=True) if text else b""


def iso_date(text: str) -> datetime.date:
    """``2020-02-29`` and nothing else."""
    if _ISO_DATE.fullmatch(text) is None:
        raise ValueError
    return datetime.date.fromisoformat(text)


def sql_date(text: str) -> datetime.date:
    """``java.sql.Date.valueOf``: digits may be single, and a day that the month has not is one of the next month.

    >>> sql_date("2020-2-9"), sql_date("2021-02-29")
    (datetime.date(2020, 2, 9), datetime.date(2021, 3, 1))
    """
    found = _SQL_DATE.fullmatch(text)
    if found is None:
        raise ValueError
    return _lenient_date(*map(int, found.groups()))


def _lenient_date(year: int, month: int, day: int) -> datetime.date:
    if not 1 <= day <= 31:
        raise ValueError
    return datetime.date(year, month, 1) + datetime.timedelta(days=day - 1)


def sql_time(text: str) -> datetime.time:
    """``java.sql.Time.valueOf``: what is beyond the day, the hour or the minute is carried over.

    >>> sql_time("1:2:3"), sql_time("25:60:00")
    (datetime.time(1, 2, 3), datetime.time(2, 0))
    """
    found = _SQL_TIME.fullmatch(text)
    if found is None:
        raise ValueError
    hours, minutes, seconds = map(int, found.groups())
    return (_MIDNIGHT + datetime.timedelta(seconds=(hours * 3600 + minutes * 60 + seconds) % 86400)).time()


def sql_timestamp(text: str) -> datetime.datetime:
    """``java.sql.Timestamp.valueOf``, to the microsecond.

    >>> sql_timestamp(" 2020-02-29 24:00:00.5")
    datetime.datetime(2020, 3, 1, 0, 0, 0, 500000)
    """
    found = _SQL_TIMESTAMP.fullmatch(text.strip(_CUT_OFF))
    if found is None:
        raise ValueError
    year, month, day, hours, minutes, seconds = map(int, found.groups()[:6])
    begin = datetime.datetime.combine(_lenient_date(year, month, day), datetime.time())
    return begin + datetime.timedelta(
        seconds=hours * 3600 + minutes * 60 + seconds, microseconds=_nanos(found[7]) // 1000
    )


def utc_time(text: str) -> datetime.time:
    """``12:30:15Z``. As in Flink there must be no fraction of a second."""
    found = _UTC_TIME.fullmatch(text)
    if found is None or _nanos(found[4]):
        raise ValueError
    if found.groups()[:3] == ("24", "00", "00"):
        return datetime.time()
    return datetime.time(int(found[1]), int(found[2]), int(found[3]))


def utc_timestamp(text: str) -> datetime.datetime:
    """``2020-02-29T12:30:15.123Z``, to the microsecond. A day that the month has not is its last one.

    >>> utc_timestamp("2021-02-30T24:00:00Z")
    datetime.datetime(2021, 3, 1, 0, 0)
    """
    found = _UTC_TIMESTAMP.fullmatch(text)
    if found is None:
        raise ValueError
    moment, nanos = _moment(found)
    return moment.replace(microsecond=nanos // 1000)


def _moment(found: re.Match[str]) -> tuple[datetime.datetime, int]:
    """The second and the nanoseconds of a text that has been taken to pieces, resolved as Java does."""
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    nanos = _nanos(found[7])
    if day > 28:
        if day > 31:
            raise ValueError
        day = min(day, calendar.monthrange(year, month)[1])
    if (hour, minute, second, nanos) == (24, 0, 0, 0):
        return datetime.datetime(year, month, day) + datetime.timedelta(days=1), 0
    return datetime.datetime(year, month, day, hour, minute, second), nanos


def _nanos(fraction: str | None) -> int:
    return int(fraction.ljust(9, "0")) if fraction else 0


def sql_instant(text: str) -> Instant:
    """``2020-01-01 00:00:00.5Z``."""
    return _instant(_SQL_INSTANT.fullmatch(text))


def zoned_instant(text: str) -> Instant:
    """A point in time with any offset.

    >>> zoned_instant("1970-01-01T01:00:01+01:00")
    Instant<1, 0>
    """
    found = _ZONED.fullmatch(text)
    instant = _instant(found)
    assert found is not None
    if found[8] == "Z":
        return instant
    offset = int(found[8][1:3]) * 3600 + int(found[8][-2:]) * 60
    return Instant(instant.seconds - (offset if found[8][0] == "+" else -offset), instant.nanos)


def _instant(found: re.Match[str] | None) -> Instant:
    if found is None:
        raise ValueError
    moment, nanos = _moment(found)
    return Instant(round((moment - _MIDNIGHT).total_seconds()), nanos)
