"""Session windows: as long as elements keep coming, and over after a silence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.common.serializer import TypeSerializer
from firesteel.common.time import Duration, Time
from firesteel.datastream.window.assigners import (
    MergingWindowAssigner,
    SessionWindowTimeGapExtractor,
    WindowAssigner,
    as_gap,
    no_timestamp,
)
from firesteel.datastream.window.lengths import positive_millis
from firesteel.datastream.window.serializers import TimeWindowSerializer
from firesteel.datastream.window.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from firesteel.datastream.window.triggers import Trigger
from firesteel.datastream.window.windows import NO_TIMESTAMP, TimeWindow
from firesteel.errors import ProgramError, short_repr

__all__ = [
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "ProcessingTimeSessionWindows",
]

Extractor = SessionWindowTimeGapExtractor | Callable[[Any], int]


class _Sessions(MergingWindowAssigner[Any, TimeWindow]):
    """Each element opens a session of its own, which then grows together with those it reaches."""

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()


class _FixedGap(_Sessions):
    def __init__(self, session_gap: int) -> None:
        if session_gap < 1:
            raise ProgramError(f"The gap of {type(self).__name__} must be longer than 0 ms, got {session_gap} ms.")
        self.session_gap = session_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class _DynamicGap(_Sessions):
    def __init__(self, session_window_time_gap_extractor: Extractor) -> None:
        self._gap = as_gap(session_window_time_gap_extractor, f"{type(self).__name__}.with_dynamic_gap(extractor)")

    def _session(self, element: Any, time: int) -> list[TimeWindow]:
        gap = self._gap(element)
        if not isinstance(gap, int) or gap < 1:
            raise ProgramError(
                f"{self!r}: the gap of a session must be an int of at least 1 ms, but the extractor returned "
                f"{short_repr(gap, 40)} for {short_repr(element, 80)}."
            )
        return [TimeWindow(time, time + gap)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class EventTimeSessionWindows(_FixedGap):
    """Sessions by the elements' timestamps.

    >>> EventTimeSessionWindows.with_gap(Time.seconds(5)).assign_windows("a", 1000, None)
    [TimeWindow(start=1000, end=6000)]
    """

    @staticmethod
    def with_gap(size: Time | Duration) -> EventTimeSessionWindows:
        """Sessions that end after a silence of that length."""
        return EventTimeSessionWindows(positive_millis(size, "EventTimeSessionWindows.with_gap(size)"))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """Sessions where each element says how long a silence may follow it."""
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        if timestamp <= NO_TIMESTAMP:
            raise no_timestamp(self, element)
        return [TimeWindow(timestamp, timestamp + self.session_gap)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class ProcessingTimeSessionWindows(_FixedGap):
    """Sessions by the wall clock.

    >>> ProcessingTimeSessionWindows.with_gap(Time.seconds(5))
    ProcessingTimeSessionWindows(5000)
    """

    @staticmethod
    def with_gap(size: Time | Duration) -> ProcessingTimeSessionWindows:
        """Sessions that end after a silence of that length."""
        return ProcessingTimeSessionWindows(positive_millis(size, "ProcessingTimeSessionWindows.with_gap(size)"))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """Sessions where each element says how long a silence may follow it."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        now = context.get_current_processing_time()
        return [TimeWindow(now, now + self.session_gap)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class DynamicEventTimeSessionWindows(_DynamicGap):
    """Sessions by the elements' timestamps, with gaps that depend on the elements.

    >>> windows = DynamicEventTimeSessionWindows.with_dynamic_gap(lambda element: element["gap"])
    >>> windows.assign_windows({"gap": 7}, 1000, None)
    [TimeWindow(start=1000, end=1007)]
    """

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """Sessions where each element says how long a silence may follow it."""
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        if timestamp <= NO_TIMESTAMP:
            raise no_timestamp(self, element)
        return self._session(element, timestamp)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class DynamicProcessingTimeSessionWindows(_DynamicGap):
    """Sessions by the wall clock, with gaps that depend on the elements."""

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """Sessions where each element says how long a silence may follow it."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return self._session(element, context.get_current_processing_time())

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False
