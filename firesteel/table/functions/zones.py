"""Between moments and what clocks show in a zone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.registry import Datum

__all__ = ["local_to_utc", "utc_to_local"]


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
