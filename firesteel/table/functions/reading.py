"""Dates and times out of text, as leniently as Flink reads them."""

from __future__ import annotations

import datetime
import re

__all__ = ["read_date", "read_time", "read_timestamp"]

_DATE = re.compile(r"(\d{1,4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?")
_EPOCH = datetime.date(1970, 1, 1).toordinal()


def read_date(text: str) -> datetime.date | None:
    """A date: the month and the day may be missing, and anything may follow a space.

    >>> read_date("12"), read_date("2024-2-30")
    (datetime.date(12, 1, 1), None)
    """
    # Flink cuts at the first space, and at a T.
    body = text.strip().split(" ")[0].split("T")[0]
    match = _DATE.fullmatch(body)
    if match is None:
        return None
    try:
        return datetime.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        return None


def read_time(text: str) -> datetime.time | None:
    """A time of day, in milliseconds.

    >>> read_time("1:2")
    datetime.time(1, 2)
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    try:
        micros = int((match[4] or "").ljust(3, "0")[:3]) * 1000
        return datetime.time(int(match[1]), int(match[2] or 0), int(match[3] or 0), micros)
    except ValueError:
        return None


def read_timestamp(text: str, precision: int) -> int | None:
    """Nanoseconds since 1970, without a zone; digits beyond the precision go.

    >>> read_timestamp("1970-01-01 00:00:01.5", 3)
    1500000000
    """
    stripped = text.strip()
    head, _, tail = stripped.replace("T", " ", 1).partition(" ")
    day = read_date(head)
    if day is None:
        return None
    nanos = 0
    if tail.strip():
        match = _TIME.fullmatch(tail.strip().rstrip("Z"))
        if match is None:
            return None
        hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
        if hour > 23 or minute > 59 or second > 59:
            return None
        fraction = (match[4] or "").ljust(9, "0")[:9]
        kept = int(fraction[:precision].ljust(9, "0")) if precision else 0
        nanos = ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + kept
    return (day.toordinal() - _EPOCH) * 86_400_000_000_000 + nanos
