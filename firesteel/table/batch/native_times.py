"""Dates and times, in Spark's microseconds."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from firesteel.table.batch.layout import is_number_in_spark
from firesteel.table.batch.native import native
from firesteel.table.logical.expressions import Call, Literal
from firesteel.table.types.data_types import DataType, DateType, DayTimeIntervalType, TimestampType

__all__ = ["micros", "moment_of_micros"]


def micros(column: Column) -> Column:
    """A TIMESTAMP as microseconds since 1970. The session's zone is UTC."""
    return F.unix_micros(column.cast("timestamp"))


def moment_of_micros(number: Column) -> Column:
    """The other way round."""
    return F.timestamp_micros(number).cast("timestamp_ntz")


def _is_moment(kind: DataType) -> bool:
    return isinstance(kind, TimestampType) and not is_number_in_spark(kind)


def _part(name: str, compute: Callable[[Column], Column]) -> None:
    @native(name)
    def translate(call: Call, args: list[Column]) -> Column | None:
        kind = call.args[0].type
        if not (_is_moment(kind) or isinstance(kind, DateType)):
            return None
        return compute(args[0]).cast("bigint")


_PARTS: dict[str, Callable[[Column], Column]] = {
    "YEAR": F.year,
    "QUARTER": F.quarter,
    "MONTH": F.month,
    "DAYOFYEAR": F.dayofyear,
    "DAYOFMONTH": F.dayofmonth,
    "DAYOFWEEK": F.dayofweek,
}
for _name, _compute in _PARTS.items():
    _part(_name, _compute)

_UNITS: dict[str, Callable[[Column], Column]] = {
    "YEAR": F.year,
    "QUARTER": F.quarter,
    "MONTH": F.month,
    "DAY": F.dayofmonth,
    "HOUR": F.hour,
    "MINUTE": F.minute,
    "SECOND": F.second,
}


@native("EXTRACT")
def _extract(call: Call, args: list[Column]) -> Column | None:
    unit = call.args[0]
    if not isinstance(unit, Literal) or unit.value not in _UNITS or len(args) != 2:
        return None
    if not _is_moment(call.args[1].type):
        return None
    return _UNITS[unit.value](args[1]).cast("bigint")


def _shift(name: str, sign: int) -> None:
    @native(name)
    def translate(call: Call, args: list[Column]) -> Column | None:
        """A time and an interval of days or less, which is in milliseconds."""
        first, second = (each.type for each in call.args)
        if not _is_moment(call.type) or not _is_moment(first) or not isinstance(second, DayTimeIntervalType):
            return None
        return moment_of_micros(micros(args[0]) + args[1] * F.lit(1000 * sign))


_shift("TIME +", 1)
_shift("TIME -", -1)
