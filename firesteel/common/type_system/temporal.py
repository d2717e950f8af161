"""Dates, times and instants."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.type_system.base import ALWAYS, TypeInformation, expected, java_text
from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.codegen import Scope
from firesteel.common.type_system.javatext import java_instant, java_time, java_timestamp

__all__ = [
    "DateTypeInfo",
    "InstantTypeInfo",
    "LocalTimeTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
]


class InstantTypeInfo(BasicTypeInfo):
    """INSTANT: an :class:`~firesteel.common.time.Instant`."""

    def __init__(self, kind: BasicType = BasicType.INSTANT) -> None:
        super().__init__(kind)

    def _accepts(self, value: Any) -> bool:
        return isinstance(value, Instant)

    def fast_source(self, first: str, name: str, scope: Scope) -> str:
        return f"type({first}) is {scope.bind(Instant)}"

    def _nested_formatter(self) -> Callable[[Any], str]:
        return java_instant


class SqlTimeTypeInfo(TypeInformation):
    """The root of dates, times and timestamps, and as in PyFlink the place to get them."""

    _name: str
    _class: type

    @staticmethod
    def DATE() -> DateTypeInfo:
        """The type of dates."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """The type of times of day."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """The type of dates with a time."""
        return TimestampTypeInfo()

    def explain(self, value: Any) -> str | None:
        return None if value is None or isinstance(value, self._class) else expected(self, value)

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        cls = scope.bind(self._class)
        return f"(type({first}) is {cls} or {name} is None or isinstance({name}, {cls}))"

    def _key(self) -> Hashable:
        return ()

    def __repr__(self) -> str:
        return self._name


class DateTypeInfo(SqlTimeTypeInfo):
    """SQL_DATE. A datetime loses its time."""

    _name = "SQL_DATE"
    _class = datetime.date

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        return f"type({first}) is {scope.bind(datetime.date)}"

    def _slow_converter(self) -> Callable[[Any], Any]:
        return _to_date


class TimeTypeInfo(SqlTimeTypeInfo):
    """SQL_TIME. What is below a millisecond is cut off, and so is a time zone."""

    _name = "SQL_TIME"
    _class = datetime.time

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        cls = scope.bind(datetime.time)
        return f"type({first}) is {cls} and not {name}.microsecond % 1000 and {name}.tzinfo is None"

    def _slow_converter(self) -> Callable[[Any], Any]:
        return _to_millis

    def _nested_formatter(self) -> Callable[[Any], str]:
        return java_time


class TimestampTypeInfo(SqlTimeTypeInfo):
    """SQL_TIMESTAMP. What is below a millisecond is cut off, and so is a time zone: the hour stays."""

    _name = "SQL_TIMESTAMP"
    _class = datetime.datetime

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        cls = scope.bind(datetime.datetime)
        return f"type({first}) is {cls} and not {name}.microsecond % 1000 and {name}.tzinfo is None"

    def _slow_converter(self) -> Callable[[Any], Any]:
        return _to_millis

    def _nested_formatter(self) -> Callable[[Any], str]:
        return java_timestamp


class LocalTimeTypeInfo(SqlTimeTypeInfo):
    """Java's local dates and times, which keep their microseconds.

    >>> LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE)
    LOCAL_DATE
    """

    class TimeType(Enum):
        """Which one."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: TimeType) -> None:
        self.time_type = time_type
        self._name = time_type.name
        self._class = (datetime.date, datetime.time, datetime.datetime)[time_type.value]

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        if self.time_type is LocalTimeTypeInfo.TimeType.LOCAL_DATE:
            return f"type({first}) is {scope.bind(datetime.date)}"
        return ALWAYS

    def _slow_converter(self) -> Callable[[Any], Any]:
        return _to_date

    def _nested_formatter(self) -> Callable[[Any], str]:
        return _iso_text

    def _key(self) -> Hashable:
        return self.time_type


def _to_date(value: Any) -> datetime.date | None:
    return None if value is None else datetime.date(value.year, value.month, value.day)


def _to_millis(value: Any) -> Any:
    if value is None:
        return None
    return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)


def _iso_text(value: Any) -> str:
    return java_text(None if value is None else value.isoformat())
