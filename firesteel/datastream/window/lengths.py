"""Arguments of windows, triggers and evictors, checked with an error that says what to write instead."""

from __future__ import annotations

from typing import Any

from firesteel.common.time import Duration, Time
from firesteel.errors import ProgramError, short_repr

__all__ = ["at_least_one", "millis", "positive_millis"]


def millis(length: Any, where: str) -> int:
    """A length of time in milliseconds.

    >>> millis(Time.seconds(2), "of"), millis(Duration.of_seconds(2), "of")
    (2000, 2000)
    >>> millis(5, "TimeEvictor.of(time)")
    Traceback (most recent call last):
    firesteel.errors.ProgramError: TimeEvictor.of(time) takes a Time such as Time.seconds(5), or a Duration, got int 5.
    """
    if isinstance(length, Time):
        return length.to_milliseconds()
    if isinstance(length, Duration):
        return length.to_millis()
    raise ProgramError(
        f"{where} takes a Time such as Time.seconds(5), or a Duration, got {type(length).__name__} "
        f"{short_repr(length, 60)}."
    )


def positive_millis(length: Any, where: str) -> int:
    """A length of time of at least one millisecond."""
    found = millis(length, where)
    if found < 1:
        raise ProgramError(f"{where} must be longer than 0 ms, got {found} ms.")
    return found


def at_least_one(number: Any, where: str) -> int:
    """A count of elements."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ProgramError(f"{where} must be an int of at least 1, got {short_repr(number, 60)}.")
    return number
