"""Tumbling and sliding windows: of a fixed size, at places that do not depend on the data."""

from __future__ import annotations

from typing import Any

from firesteel.common.serializer import TypeSerializer
from firesteel.common.time import Duration, Time
from firesteel.datastream.window.assigners import WindowAssigner, no_timestamp
from firesteel.datastream.window.lengths import millis, positive_millis
from firesteel.datastream.window.serializers import TimeWindowSerializer
from firesteel.datastream.window.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from firesteel.datastream.window.triggers import Trigger
from firesteel.datastream.window.windows import NO_TIMESTAMP, TimeWindow
from firesteel.errors import ProgramError

__all__ = [
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
]


class _Tumbling(WindowAssigner[Any, TimeWindow]):
    """Windows end to end: each time is in one of them."""

    def __init__(self, size: int, offset: int) -> None:
        if size < 1 or abs(offset) >= size:
            raise ProgramError(
                f"{type(self).__name__} needs a size above 0 and an offset between -size and size, got size {size} ms "
                f"and offset {offset} ms. An offset beyond that gives the same windows as its remainder."
            )
        self.size = size
        self.offset = offset

    @classmethod
    def _checked(cls, size: Any, offset: Any) -> tuple[int, int]:
        where = f"{cls.__name__}.of"
        return positive_millis(size, f"{where}(size)"), 0 if offset is None else millis(offset, f"{where}(offset)")

    def _windows(self, time: int) -> list[TimeWindow]:
        start = time - (time - self.offset) % self.size
        return [TimeWindow(start, start + self.size)]

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.offset})"


class TumblingEventTimeWindows(_Tumbling):
    """Windows of a fixed size by the elements' timestamps, one after the other.

    >>> daily = TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8))  # days as they begin in UTC+8
    >>> daily
    TumblingEventTimeWindows(86400000, -28800000)
    """

    @staticmethod
    def of(size: Time | Duration, offset: Time | Duration | None = None) -> TumblingEventTimeWindows:
        """Windows that start at multiples of ``size``, moved by ``offset``."""
        return TumblingEventTimeWindows(*TumblingEventTimeWindows._checked(size, offset))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        if timestamp <= NO_TIMESTAMP:
            raise no_timestamp(self, element)
        return self._windows(timestamp)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class TumblingProcessingTimeWindows(_Tumbling):
    """Windows of a fixed size by the wall clock, one after the other.

    >>> TumblingProcessingTimeWindows.of(Time.minutes(1))
    TumblingProcessingTimeWindows(60000, 0)
    """

    @staticmethod
    def of(size: Time | Duration, offset: Time | Duration | None = None) -> TumblingProcessingTimeWindows:
        """Windows that start at multiples of ``size``, moved by ``offset``."""
        return TumblingProcessingTimeWindows(*TumblingProcessingTimeWindows._checked(size, offset))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return self._windows(context.get_current_processing_time())

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class _Sliding(WindowAssigner[Any, TimeWindow]):
    """Windows that start at intervals shorter than they last (or longer: then some times are in none)."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        if size < 1 or slide < 1 or abs(offset) >= slide:
            raise ProgramError(
                f"{type(self).__name__} needs a size and a slide above 0 and an offset between -slide and slide, got "
                f"size {size} ms, slide {slide} ms and offset {offset} ms."
            )
        self.size = size
        self.slide = slide
        self.offset = offset

    @classmethod
    def _checked(cls, size: Any, slide: Any, offset: Any) -> tuple[int, int, int]:
        where = f"{cls.__name__}.of"
        return (
            positive_millis(size, f"{where}(size)"),
            positive_millis(slide, f"{where}(slide)"),
            0 if offset is None else millis(offset, f"{where}(offset)"),
        )

    def _windows(self, time: int) -> list[TimeWindow]:
        last = time - (time - self.offset) % self.slide
        return [TimeWindow(start, start + self.size) for start in range(last, time - self.size, -self.slide)]

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide}, {self.offset})"


class SlidingEventTimeWindows(_Sliding):
    """Overlapping windows by the elements' timestamps.

    >>> windows = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
    >>> windows.assign_windows("a", 12_000, None)
    [TimeWindow(start=10000, end=20000), TimeWindow(start=5000, end=15000)]
    """

    @staticmethod
    def of(
        size: Time | Duration, slide: Time | Duration, offset: Time | Duration | None = None
    ) -> SlidingEventTimeWindows:
        """Windows of ``size`` that start at multiples of ``slide``, moved by ``offset``."""
        return SlidingEventTimeWindows(*SlidingEventTimeWindows._checked(size, slide, offset))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        if timestamp <= NO_TIMESTAMP:
            raise no_timestamp(self, element)
        return self._windows(timestamp)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class SlidingProcessingTimeWindows(_Sliding):
    """Overlapping windows by the wall clock.

    >>> SlidingProcessingTimeWindows.of(Time.minutes(1), Time.seconds(10))
    SlidingProcessingTimeWindows(60000, 10000, 0)
    """

    @staticmethod
    def of(
        size: Time | Duration, slide: Time | Duration, offset: Time | Duration | None = None
    ) -> SlidingProcessingTimeWindows:
        """Windows of ``size`` that start at multiples of ``slide``, moved by ``offset``."""
        return SlidingProcessingTimeWindows(*SlidingProcessingTimeWindows._checked(size, slide, offset))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return self._windows(context.get_current_processing_time())

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False
