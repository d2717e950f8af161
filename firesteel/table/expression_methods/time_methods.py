"""Methods of expressions about times, and intervals by their units."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, cast

from firesteel.errors import ProgramError
from firesteel.table.expression_methods.calls import NOWHERE, HoldsNode, TimeIntervalUnit
from firesteel.table.logical.literals import python_literal
from firesteel.table.sql.syntax import Cast, Constant
from firesteel.table.types.data_types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)

if TYPE_CHECKING:
    from firesteel.table.expression import Expression

__all__ = ["TimeMethods"]


def _span(unit: str, factor: int, months: bool = False) -> Expression:
    """``lit(3).minutes``."""

    def make(self: HoldsNode) -> Expression:
        node = self._node
        value = node.value.value if isinstance(node, Constant) and node.kind == "python" else None
        if not isinstance(value, int):
            raise ProgramError(f"lit(n).{unit} takes a whole number.")
        kind: DataType
        if months:
            kind = YearMonthIntervalType(resolution="MONTH", is_nullable=False)
            return self._made(Constant("python", python_literal(value * factor, kind), span=NOWHERE))
        kind = DayTimeIntervalType(resolution="SECOND", is_nullable=False)
        span = datetime.timedelta(milliseconds=value * factor)
        return self._made(Constant("python", python_literal(span, kind), span=NOWHERE))

    return cast("Expression", property(make, doc=f"An interval of that many {unit}."))


class TimeMethods(HoldsNode):
    """Of expressions that are times, or numbers of units of time.

    >>> from firesteel.table.expressions import col
    >>> col("a").extract(TimeIntervalUnit.DAY)
    <Expression EXTRACT(Symbol, a)>
    """

    @property
    def to_date(self) -> Expression:
        """As a DATE: a text such as ``2024-05-17``, or the day of a timestamp. The same as ``cast``."""
        return self._made(Cast(self._node, DateType(), False, span=NOWHERE))

    @property
    def to_time(self) -> Expression:
        """As a TIME: a text such as ``10:15:30``, or the time of day of a timestamp."""
        return self._made(Cast(self._node, TimeType(), False, span=NOWHERE))

    @property
    def to_timestamp(self) -> Expression:
        """As a TIMESTAMP(3): a text such as ``2024-05-17 10:15:30``, or the beginning of a day."""
        return self._made(Cast(self._node, TimestampType(3), False, span=NOWHERE))

    year = years = _span("years", 12, months=True)
    quarter = quarters = _span("quarters", 3, months=True)
    month = months = _span("months", 1, months=True)
    week = weeks = _span("weeks", 604_800_000)
    day = days = _span("days", 86_400_000)
    hour = hours = _span("hours", 3_600_000)
    minute = minutes = _span("minutes", 60_000)
    second = seconds = _span("seconds", 1000)
    milli = millis = _span("milliseconds", 1)

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression:
        """A part of a date or time."""
        return self._called("EXTRACT", time_interval_unit, self)
