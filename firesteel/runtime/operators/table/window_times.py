"""Which windows a moment is in, and the moments at which windows end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.errors import ProgramError
from firesteel.runtime.operators.table.specs import Window

__all__ = ["as_moments", "local_milliseconds", "milliseconds", "window_ends", "window_spans"]

Array = npt.NDArray[Any]


def milliseconds(column: pa.Array) -> Array:
    """Times as milliseconds since 1970.

    >>> import datetime
    >>> milliseconds(pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1, 1999)])).tolist()
    [1001]
    """
    if column.null_count:
        raise ProgramError("The event time of a row is NULL. Leave such rows out, or give them a time, before windows.")
    if pa.types.is_timestamp(column.type):
        per_unit = {"s": 1000, "ms": 1, "us": -1000, "ns": -1_000_000}[column.type.unit]
        plain: Array = column.view(pa.int64()).to_numpy()
        return plain * per_unit if per_unit > 0 else plain // -per_unit
    found: Array = column.cast(pa.int64()).to_numpy()
    return found


def local_milliseconds(column: pa.Array, time_zone: str | None) -> Array:
    """Times as windows see them: those of a time zone are its local ones.

    >>> midnight = pa.array([0], pa.timestamp("ms", "UTC"))
    >>> local_milliseconds(midnight, "Asia/Shanghai").tolist()
    [28800000]
    """
    times = milliseconds(column)
    if time_zone is None or time_zone == "UTC":
        return times
    zoned = pa.array(times, pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", time_zone))
    return milliseconds(pc.local_timestamp(zoned))


def as_moments(times: Array, time_zone: str | None) -> Array:
    """The way back: local times as milliseconds since 1970.

    >>> as_moments(np.array([28800000]), "Asia/Shanghai").tolist()
    [0]
    """
    if time_zone is None or time_zone == "UTC":
        return times
    local = pa.array(times, pa.timestamp("ms"))
    return milliseconds(pc.assume_timezone(local, time_zone, ambiguous="latest", nonexistent="latest"))


def window_ends(window: Window, times: Array) -> tuple[Array, Array]:
    """For each window of each row the row's place, and the end of the window.

    >>> window_ends(Window("HOP", 10, 5), np.array([7]))[1].tolist()
    [15, 10]
    >>> window_ends(Window("CUMULATE", 10, 5), np.array([3, 7]))
    (array([0, 0, 1]), array([ 5, 10, 10]))
    """
    rows = np.arange(len(times))
    match window.kind.upper():
        case "TUMBLE":
            return rows, times - (times - window.offset) % window.size + window.size
        case "HOP":
            latest = times - (times - window.offset) % window.slide
            count = -(-window.size // window.slide)
            places = np.repeat(rows, count)
            starts = latest[places] - np.tile(np.arange(count) * window.slide, len(rows))
            inside = starts > times[places] - window.size
            return (places, starts + window.size) if inside.all() else (places[inside], starts[inside] + window.size)
        case "CUMULATE":
            starts = times - (times - window.offset) % window.size
            count = window.size // window.slide
            places = np.repeat(rows, count)
            ends = starts[places] + np.tile(np.arange(1, count + 1) * window.slide, len(rows))
            inside = ends > times[places]
            return places[inside], ends[inside]
        case "ENDS":
            # The time of a row is the end of the window that it was given before.
            return rows, times
    raise ProgramError(f"The window {window.kind} is not known here. There are TUMBLE, HOP, CUMULATE and SESSION.")


def window_spans(window: Window, ends: Array) -> Array | int:
    """How far before its end each window begins."""
    if window.kind.upper() != "CUMULATE":
        return window.size
    return (ends - window.offset - 1) % window.size + 1
