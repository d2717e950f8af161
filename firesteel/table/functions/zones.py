"""Between moments and what clocks show in a zone."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.registry import Datum

__all__ = ["later_moment", "local_to_utc", "utc_to_local"]


def local_to_utc(values: Datum, zone: str) -> Datum:
    """Times of a zone as moments. A time that a clock change leaves out is moved on by as much as the clock was, of
    two the first counts.

    >>> at_night = pa.scalar(datetime.datetime(2024, 3, 10, 2, 30), pa.timestamp("ms"))
    >>> print(utc_to_local(local_to_utc(at_night, "America/New_York"), "America/New_York"))
    2024-03-10 03:30:00
    """
    unit = values.type.unit
    utc = pa.timestamp(unit, "UTC")
    if zone == "UTC":
        return values.cast(utc)
    try:
        return pc.assume_timezone(values, zone, ambiguous="earliest").cast(utc)
    except pa.ArrowInvalid:
        # What the clock showed before it was set goes on: its distance from UTC a moment earlier is what counts.
        before = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="earliest").cast(utc)
        distance = pc.subtract(utc_to_local(before, zone).cast(pa.int64()), before.cast(pa.int64()))
        return pc.subtract(values.cast(pa.int64()), distance).cast(pa.timestamp(unit)).cast(utc)


def later_moment(local: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """A time of a zone as Java's calendars read it: of the two in an hour that a clock shows twice the second counts,
    and one that a clock change leaves out is moved on.

    >>> from zoneinfo import ZoneInfo
    >>> later_moment(datetime.datetime(2024, 11, 3, 1, 30), ZoneInfo("America/New_York")).utcoffset()
    datetime.timedelta(days=-1, seconds=68400)
    """
    first, second = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return max(first, second, key=datetime.datetime.timestamp)


def utc_to_local(values: Datum, zone: str) -> Datum:
    """Moments as the times that clocks in a zone show."""
    unit = values.type.unit
    if zone == "UTC":
        return values.cast(pa.timestamp(unit))
    return pc.local_timestamp(values.cast(pa.timestamp(unit, zone)))
