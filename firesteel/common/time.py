"""Lengths of time and points in time, to the nanosecond where Flink has it."""

from __future__ import annotations

import copyreg
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

from firesteel.durable.names import stored_as

__all__ = ["Duration", "Instant", "Time"]

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000


@total_ordering
@dataclass(frozen=True)
class Duration:
    """A length of time.

    >>> Duration.of_seconds(90)
    Duration(PT1M30S)
    >>> Duration.of_seconds(90).to_millis()
    90000
    """

    _nanos: int

    @staticmethod
    def of_days(days: int) -> Duration:
        """That many days of 24 hours."""
        return Duration.of_hours(days * 24)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """That many hours."""
        return Duration.of_minutes(hours * 60)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """That many minutes."""
        return Duration.of_seconds(minutes * 60)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """That many seconds."""
        return Duration(int(seconds) * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """That many milliseconds."""
        return Duration(int(millis) * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """That many nanoseconds."""
        return Duration(int(nanos))

    def to_millis(self) -> int:
        """The length in whole milliseconds."""
        return self._nanos // _NANOS_PER_MILLI

    def to_nanos(self) -> int:
        """The length in nanoseconds."""
        return self._nanos

    def __lt__(self, other: Duration) -> bool:
        return self._nanos < other._nanos

    def __str__(self) -> str:
        """The ISO 8601 text that Java gives, such as ``PT1H0.5S``."""
        if self._nanos == 0:
            return "PT0S"
        sign = "-" if self._nanos < 0 else ""
        seconds, nanos = divmod(abs(self._nanos), _NANOS_PER_SECOND)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        text = "PT"
        if hours:
            text += f"{sign}{hours}H"
        if minutes:
            text += f"{sign}{minutes}M"
        if seconds or nanos:
            fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
            text += f"{sign}{seconds}{fraction}S"
        return text

    def __repr__(self) -> str:
        return f"Duration({self})"


@total_ordering
@dataclass(frozen=True, repr=False)
class Instant:
    """A point in time: seconds since 1970 in UTC, and nanoseconds after that second.

    >>> Instant.of_epoch_milli(1500)
    Instant<1, 500000000>
    >>> Instant.of_epoch_milli(-1).to_epoch_milli()
    -1
    """

    seconds: int
    nanos: int

    def to_epoch_milli(self) -> int:
        """Milliseconds since 1970, rounded down."""
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """The point that many milliseconds after 1970."""
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def __lt__(self, other: Instant) -> bool:
        return (self.seconds, self.nanos) < (other.seconds, other.nanos)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


@total_ordering
class Time:
    """A length of time in milliseconds, as windows and state take it.

    >>> Time.minutes(2).to_milliseconds()
    120000
    >>> print(Time.seconds(1))
    1000 ms
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return self._milliseconds

    def to_milliseconds(self) -> int:
        """The length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """That many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """That many seconds."""
        return Time.milliseconds(seconds * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """That many minutes."""
        return Time.seconds(minutes * 60)

    @staticmethod
    def hours(hours: int) -> Time:
        """That many hours."""
        return Time.minutes(hours * 60)

    @staticmethod
    def days(days: int) -> Time:
        """That many days of 24 hours."""
        return Time.hours(days * 24)

    def __lt__(self, other: Time) -> bool:
        return self._milliseconds < other._milliseconds

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"

    def __repr__(self) -> str:
        return f"Time({self._milliseconds} ms)"


# How they are pickled


@stored_as("duration")
def _duration(nanos: int) -> Duration:
    return Duration(nanos)


@stored_as("instant")
def _instant(seconds: int, nanos: int) -> Instant:
    return Instant(seconds, nanos)


@stored_as("time")
def _time(milliseconds: int) -> Time:
    return Time(milliseconds)


def _reduce_duration(duration: Duration) -> tuple[Any, ...]:
    return _duration, (duration._nanos,)


def _reduce_instant(instant: Instant) -> tuple[Any, ...]:
    return _instant, (instant.seconds, instant.nanos)


def _reduce_time(time: Time) -> tuple[Any, ...]:
    return _time, (time._milliseconds,)


# Registered rather than written as __reduce__: it counts for these very classes, not for a user's subclass.
copyreg.pickle(Duration, _reduce_duration)
copyreg.pickle(Instant, _reduce_instant)
copyreg.pickle(Time, _reduce_time)
