"""Timestamps of columns, also nested ones, on this machine's clock and in UTC, as formats convert them that go by the
clock."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["clock_is_utc", "from_utc", "to_utc"]

_EPOCH = datetime.datetime(1970, 1, 1)
_QUARTER = 900
"""Seconds. Clocks are moved at quarters of an hour, so one offset is enough for each."""
_FIRST, _LAST = -62_135_000_000, 253_401_000_000
"""Seconds, some days within the years 1 to 9999: nearer to their ends Python cannot ask for the clock's offset, which
does not change there any more."""
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
Numbers = npt.NDArray[np.int64]


def clock_is_utc() -> bool:
    """Whether this machine's clock shows UTC, always."""
    return time.tzname[0] in ("UTC", "GMT") and not time.daylight and time.timezone == 0


def from_utc(column: pa.Array) -> pa.Array:
    """What the clock shows at moments of UTC."""
    return _shifted(column, _offset_at)


def to_utc(column: pa.Array) -> pa.Array:
    """The moments at which the clock shows some times."""
    return _shifted(column, lambda seconds: -_offset_of(seconds))


def _offset_at(seconds: int) -> int:
    """How far the clock is ahead of UTC at a moment."""
    return _seconds(_time(seconds).replace(tzinfo=datetime.UTC).astimezone())


def _offset_of(seconds: int) -> int:
    """The same when the clock shows something."""
    return _seconds(_time(seconds).astimezone())


def _time(seconds: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(seconds=min(max(seconds, _FIRST), _LAST))


def _seconds(local: datetime.datetime) -> int:
    offset = local.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _shifted(column: pa.Array, offset: Callable[[int], int]) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _shifted_numbers(column, _UNITS[kind.unit], offset)
    if pa.types.is_struct(kind):
        parts = [_shifted(column.field(index), offset) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind):
        whole = _unsliced(column)
        return pa.ListArray.from_arrays(whole.offsets, _shifted(whole.values, offset), kind, mask=whole.is_null())
    if pa.types.is_map(kind):
        whole = _unsliced(column)
        items = _shifted(whole.items, offset)
        return pa.MapArray.from_arrays(whole.offsets, _shifted(whole.keys, offset), items, kind, mask=whole.is_null())
    return column


def _unsliced(column: pa.Array) -> pa.Array:
    return column if column.offset == 0 else column.take(pa.array(np.arange(len(column))))


def _shifted_numbers(column: pa.Array, unit: int, offset: Callable[[int], int]) -> pa.Array:
    numbers: Numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    quarters, places = np.unique(numbers // (unit * _QUARTER), return_inverse=True)
    offsets = np.array([offset(int(each) * _QUARTER) for each in quarters], np.int64)
    shifted = pa.array(numbers + offsets[places] * unit, mask=column.is_null().to_numpy(zero_copy_only=False))
    return shifted.cast(column.type)
