"""Triggers that fire at times: at the end of a window, or at intervals while it is open."""

from __future__ import annotations

from typing import Any, cast

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ReducingState, ReducingStateDescriptor
from firesteel.datastream.window.lengths import positive_millis
from firesteel.datastream.window.triggers import Trigger, TriggerResult
from firesteel.datastream.window.windows import MAX_TIMESTAMP, Window
from firesteel.errors import ProgramError

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "EventTimeTrigger",
    "ProcessingTimeTrigger",
]


class EventTimeTrigger(Trigger[Any, Any]):
    """Fires when the watermark passes the end of the window, and then for each late element that is allowed."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """A new one."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        # A window that is already over needs no timer: the element that merged it fires by itself.
        end = window.max_timestamp()
        if end > ctx.get_current_watermark():
            ctx.register_event_time_timer(end)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[Any, Any]):
    """Fires when the wall clock passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """A new one."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        end = window.max_timestamp()
        if end > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(end)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class _Continuous(Trigger[Any, Any]):
    """What both continuous triggers share: an interval, and the next time to fire in the window's state."""

    def __init__(self, interval: int, state_name: str) -> None:
        if interval < 1:
            raise ProgramError(f"The interval of {type(self).__name__} must be longer than 0 ms, got {interval} ms.")
        self.interval = interval
        # Where windows merge, the earliest of their next times counts.
        self.state_desc = ReducingStateDescriptor(state_name, min, Types.LONG())

    def can_merge(self) -> bool:
        return True

    def _fire_time(self, ctx: Trigger.TriggerContext) -> ReducingState[int]:
        return cast("ReducingState[int]", ctx.get_partitioned_state(self.state_desc))

    def _next(self, time: int, window: Window, fire_timestamp_state: ReducingState[int]) -> int:
        following = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(following)
        return following

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(_Continuous):
    """Fires each time the watermark has gone on by an interval, and at the end of the window.

    >>> ContinuousEventTimeTrigger.of(Time.seconds(10))
    ContinuousEventTimeTrigger(10000)
    """

    def __init__(self, interval: int) -> None:
        super().__init__(interval, "event-fire-time")

    @staticmethod
    def of(interval: Time | Duration) -> ContinuousEventTimeTrigger:
        """Fires at multiples of the interval."""
        return ContinuousEventTimeTrigger(positive_millis(interval, "ContinuousEventTimeTrigger.of(interval)"))

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        state = self._fire_time(ctx)
        if state.get() is None:
            self.register_next_fire_timestamp(timestamp - timestamp % self.interval, window, ctx, state)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        state = self._fire_time(ctx)
        if state.get() != time:
            return TriggerResult.CONTINUE
        state.clear()
        self.register_next_fire_timestamp(time, window, ctx, state)
        return TriggerResult.FIRE

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.state_desc)
        following = self._fire_time(ctx).get()
        if following is not None:
            ctx.register_event_time_timer(following)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())
        state = self._fire_time(ctx)
        following = state.get()
        if following is not None:
            ctx.delete_event_time_timer(following)
            state.clear()

    def register_next_fire_timestamp(
        self, time: int, window: Window, ctx: Trigger.TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Sets the timer after ``time``: an interval later, or at the end of the window if that is sooner."""
        end = window.max_timestamp()
        if end == MAX_TIMESTAMP == ctx.get_current_watermark():
            # The input has ended and the window never does: no interval would bring anything new, and they have no end.
            time = end
        ctx.register_event_time_timer(self._next(time, window, fire_timestamp_state))


class ContinuousProcessingTimeTrigger(_Continuous):
    """Fires each time the wall clock has gone on by an interval.

    >>> ContinuousProcessingTimeTrigger.of(Time.seconds(10))
    ContinuousProcessingTimeTrigger(10000)
    """

    def __init__(self, interval: int) -> None:
        super().__init__(interval, "processing-fire-time")

    @staticmethod
    def of(interval: Time | Duration) -> ContinuousProcessingTimeTrigger:
        """Fires at multiples of the interval."""
        return ContinuousProcessingTimeTrigger(
            positive_millis(interval, "ContinuousProcessingTimeTrigger.of(interval)")
        )

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        state = self._fire_time(ctx)
        if state.get() is None:
            now = ctx.get_current_processing_time()
            self.register_next_fire_timestamp(now - now % self.interval, window, ctx, state)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        state = self._fire_time(ctx)
        if state.get() != time:
            return TriggerResult.CONTINUE
        state.clear()
        # At (or, with a window of event time, after) the end there is nothing to wait for: a timer there would be due
        # at once, again and again.
        if time < window.max_timestamp():
            self.register_next_fire_timestamp(time, window, ctx, state)
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.state_desc)
        following = self._fire_time(ctx).get()
        if following is not None:
            ctx.register_processing_time_timer(following)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        state = self._fire_time(ctx)
        following = state.get()
        if following is not None:
            ctx.delete_processing_time_timer(following)
            state.clear()

    def register_next_fire_timestamp(
        self, time: int, window: Window, ctx: Trigger.TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Sets the timer after ``time``: an interval later, or at the end of the window if that is sooner."""
        ctx.register_processing_time_timer(self._next(time, window, fire_timestamp_state))
