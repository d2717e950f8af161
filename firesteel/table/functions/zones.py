"""Between moments and what clocks show in a zone."""

from __future__ import annotations

import datetime
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.registry import Datum

__all__ = ["local_to_utc", "utc_to_local", "zone_of"]


def local_to_utc(values: Datum, zone: str) -> Datum:
    """Times of a zone as moments. A time that a clock change leaves out is moved on by it; of two the first counts."""
    unit = values.type.unit
    utc = pa.timestamp(unit, "UTC")
    if zone == "UTC":
        return values.cast(utc)
    try:
        return pc.assume_timezone(values, zone, ambiguous="earliest").cast(utc)
    except pa.ArrowInvalid:
        return pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="latest").cast(utc)


def utc_to_local(values: Datum, zone: str) -> Datum:
    """Moments as the times that clocks in a zone show."""
    unit = values.type.unit
    if zone == "UTC":
        return values.cast(pa.timestamp(unit))
    return pc.local_timestamp(values.cast(pa.timestamp(unit, zone)))


_SHIFT = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?")


def zone_of(name: str) -> datetime.tzinfo:
    """A zone by its name, as Java knows it: GMT+08:00 is one, too, and what is none is taken for UTC.

    >>> zone_of("GMT+08:00"), zone_of("nowhere")
    (datetime.timezone(datetime.timedelta(seconds=28800)), datetime.timezone.utc)
    """
    shift = _SHIFT.fullmatch(name)
    if shift is not None:
        minutes = int(shift[2]) * 60 + int(shift[3] or 0)
        return datetime.timezone(datetime.timedelta(minutes=minutes if shift[1] == "+" else -minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return datetime.UTC
