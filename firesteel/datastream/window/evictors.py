"""Evictors: they take elements out of a window before or after its function sees them."""

from __future__ import annotations

import copyreg
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from firesteel.common.time import Duration, Time
from firesteel.datastream.window.deltas import DeltaFunction, as_delta
from firesteel.datastream.window.lengths import at_least_one, millis
from firesteel.datastream.window.windows import NO_TIMESTAMP, Window
from firesteel.durable.names import stored_as
from firesteel.errors import ProgramError
from firesteel.metrics import MetricGroup

__all__ = ["CountEvictor", "DeltaEvictor", "Evictor", "EvictorContext", "TimeEvictor", "TimestampedValue"]

T = TypeVar("T")
W = TypeVar("W")


class TimestampedValue:
    """An element of a window with its timestamp, -2^63 where it has none.

    >>> TimestampedValue("a", 5).get_timestamp(), TimestampedValue("a").has_timestamp()
    (5, False)
    """

    __slots__ = ("timestamp", "value")

    def __init__(self, value: Any, timestamp: int = NO_TIMESTAMP) -> None:
        self.value = value
        self.timestamp = timestamp

    def get_value(self) -> Any:
        """The element."""
        return self.value

    def get_timestamp(self) -> int:
        """Its timestamp in milliseconds."""
        return self.timestamp

    def has_timestamp(self) -> bool:
        """Whether it was given one."""
        return self.timestamp > NO_TIMESTAMP

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimestampedValue):
            return NotImplemented
        return bool(self.value == other.value) and self.timestamp == other.timestamp

    def __hash__(self) -> int:
        return hash((self.value, self.timestamp))

    def __repr__(self) -> str:
        return f"TimestampedValue({self.value!r}, {self.timestamp})"


@stored_as("timestamped_value")
def _timestamped_value(value: Any, timestamp: int) -> TimestampedValue:
    return TimestampedValue(value, timestamp)


def _reduce(timed: TimestampedValue) -> tuple[Any, ...]:
    return _timestamped_value, (timed.value, timed.timestamp)


copyreg.pickle(TimestampedValue, _reduce)


class Evictor(ABC, Generic[T, W]):
    """Removes elements of a window that fires. A window with an evictor keeps all its elements until then.

    ``elements`` is a list, in the order in which the elements came. An evictor changes that very list
    (``del elements[:2]``, ``elements[:] = …``); what it removes is gone from the window for good.

    >>> class DropNone(Evictor):
    ...     def evict_before(self, elements, size, window, evictor_context):
    ...         elements[:] = [element for element in elements if element.value is not None]
    ...     def evict_after(self, elements, size, window, evictor_context):
    ...         pass
    >>> elements = [TimestampedValue(None), TimestampedValue(1)]
    >>> DropNone().evict_before(elements, 2, None, None)
    >>> [element.value for element in elements]
    [1]
    """

    class EvictorContext(ABC):
        """What an evictor may ask. Valid during one call only."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """The group to register metrics in; functions of the operator have the same."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The event-time watermark in milliseconds; -2^63 before the first one."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Called before the window function, which does not see what is removed. ``size`` is ``len(elements)``."""

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Called after the window function. ``size`` is ``len(elements)``."""


EvictorContext = Evictor.EvictorContext


class _EvictOnce(Evictor[Any, Any]):
    """An evictor that does its work on one side of the window function."""

    def __init__(self, do_evict_after: bool) -> None:
        self._after = do_evict_after

    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        if not self._after:
            self._evict(elements)

    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        if self._after:
            self._evict(elements)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue]) -> None:
        """Takes out what is not to stay."""

    def _text(self, *arguments: object) -> str:
        after = ", do_evict_after=True" if self._after else ""
        return f"{type(self).__name__}({', '.join(map(str, arguments))}{after})"


class CountEvictor(_EvictOnce):
    """Keeps the latest so many elements.

    >>> CountEvictor.of(100)
    CountEvictor(100)
    """

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._max_count = at_least_one(max_count, "The count of CountEvictor")

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Keeps ``max_count`` elements; those that came first go."""
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if len(elements) > self._max_count:
            del elements[: len(elements) - self._max_count]

    def __repr__(self) -> str:
        return self._text(self._max_count)


class TimeEvictor(_EvictOnce):
    """Keeps the elements less than so much older than the newest one. Does nothing where there are no timestamps.

    >>> TimeEvictor.of(Time.seconds(5))
    TimeEvictor(5000)
    """

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        if window_size < 0:
            raise ProgramError(f"The time of TimeEvictor cannot be negative, got {window_size} ms.")
        self._window_size = window_size

    @staticmethod
    def of(time: Time | Duration, do_evict_after: bool = False) -> TimeEvictor:
        """Keeps elements for that long, by their timestamps."""
        return TimeEvictor(millis(time, "TimeEvictor.of(time)"), do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if not elements or not elements[0].has_timestamp():
            return
        oldest = max(element.timestamp for element in elements) - self._window_size
        elements[:] = [element for element in elements if element.timestamp > oldest]

    def __repr__(self) -> str:
        return self._text(self._window_size)


class DeltaEvictor(_EvictOnce):
    """Keeps the elements closer than a threshold to the one that came last.

    >>> elements = [TimestampedValue(1), TimestampedValue(7), TimestampedValue(9)]
    >>> DeltaEvictor.of(5, lambda old, new: abs(new - old)).evict_before(elements, 3, None, None)
    >>> [element.value for element in elements]
    [7, 9]
    """

    def __init__(
        self,
        threshold: float,
        delta_function: DeltaFunction | Callable[[Any, Any], float],
        do_evict_after: bool = False,
    ) -> None:
        super().__init__(do_evict_after)
        self._threshold = threshold
        self._delta = as_delta(delta_function, "DeltaEvictor.of(delta_function)")

    @staticmethod
    def of(
        threshold: float,
        delta_function: DeltaFunction | Callable[[Any, Any], float],
        do_evict_after: bool = False,
    ) -> DeltaEvictor:
        """Removes each element whose delta to the last one is ``threshold`` or more."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if not elements:
            return
        last = elements[-1].value
        elements[:] = [element for element in elements if not self._delta(element.value, last) >= self._threshold]

    def __repr__(self) -> str:
        return self._text(self._threshold)
