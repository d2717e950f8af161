"""What a test lets happen, as data: elements, watermarks, and moments of processing time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from firesteel.connectors.source import Records
from firesteel.errors import ProgramError, short_repr
from firesteel.testing.crash import Crash

__all__ = ["ProcessingTime", "Record", "Step", "Watermark", "checked", "chunks", "parts", "whole"]


class Record(NamedTuple):
    """A value with its timestamp, on its way in or out.

    >>> Record("a", 5)
    Record(value='a', timestamp=5)
    """

    value: Any
    timestamp: int | None = None
    """In milliseconds; None where the record has no event time."""


@dataclass(frozen=True)
class Watermark:
    """Event time has come this far: no record at or before it will follow.

    >>> Watermark(100)
    Watermark(timestamp=100)
    """

    timestamp: int

    def __post_init__(self) -> None:
        whole(self.timestamp, "A watermark")


@dataclass(frozen=True)
class ProcessingTime:
    """The clock shows this moment now.

    >>> ProcessingTime(60_000)
    ProcessingTime(milliseconds=60000)
    """

    milliseconds: int

    def __post_init__(self) -> None:
        whole(self.milliseconds, "A moment of processing time")


Step = list[Any] | Watermark | ProcessingTime
"""One line of a transcript. A list holds elements that come together: plain values, or :class:`Record` with a time. A
:class:`Watermark` or a :class:`~firesteel.testing.Crash` may stand between them."""


def checked(step: Any) -> Step:
    """The step itself, if it is one."""
    if isinstance(step, Watermark | ProcessingTime):
        return step
    if not isinstance(step, list):
        raise ProgramError(
            f"A step is a list of elements, a Watermark or a ProcessingTime, got {short_repr(step, 60)}."
        )
    if any(isinstance(element, ProcessingTime) for element in step):
        raise ProgramError(
            "A ProcessingTime stands between two lists of elements, not in one: time stands still in a micro-batch."
        )
    return step


def parts(elements: Iterable[Any]) -> Iterator[list[Any] | Watermark | Crash]:
    """What a list of elements consists of: elements in a row, and what stands between them.

    >>> list(parts(["a", "b", Watermark(5), "c"]))
    [['a', 'b'], Watermark(timestamp=5), ['c']]
    """
    for special, run in groupby(elements, key=lambda element: isinstance(element, Watermark | Crash)):
        if special:
            yield from run
        else:
            yield list(run)


def chunks(elements: Iterable[Any]) -> Iterator[Records[Any]]:
    """Elements as operators take them: values and their timestamps, those with a time apart from those without.

    >>> list(chunks(["a", Record("b", 5), Record("c", 7)]))
    [Records(values=['a'], timestamps=None), Records(values=['b', 'c'], timestamps=[5, 7])]
    """
    records = (element if isinstance(element, Record) else Record(element) for element in elements)
    for timed, together in groupby(records, key=lambda record: record.timestamp is not None):
        values, times = zip(*together, strict=True)
        yield Records(list(values), [whole(time, "A timestamp") for time in times] if timed else None)


def whole(number: Any, what: str) -> int:
    """The number itself if it is an int, as all times are."""
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    raise ProgramError(f"{what} is an int (milliseconds), got {type(number).__name__} {short_repr(number, 40)}.")
