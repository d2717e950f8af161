"""Triggers that look at the elements, and those that change what another trigger does."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.state import ReducingState, ReducingStateDescriptor, ValueState, ValueStateDescriptor
from firesteel.datastream.window.deltas import DeltaFunction, as_delta
from firesteel.datastream.window.lengths import at_least_one, positive_millis
from firesteel.datastream.window.triggers import Trigger, TriggerResult, nested
from firesteel.datastream.window.windows import Window

__all__ = ["CountTrigger", "DeltaTrigger", "NeverTrigger", "ProcessingTimeoutTrigger", "PurgingTrigger"]


class CountTrigger(Trigger[Any, Any]):
    """Fires when so many elements have come since it last fired. Wrap it in a PurgingTrigger to forget them, too.

    >>> PurgingTrigger.of(CountTrigger.of(3))
    PurgingTrigger(CountTrigger(3))
    """

    def __init__(self, window_size: int) -> None:
        self._window_size = at_least_one(window_size, "The count of CountTrigger")
        self._count_state_descriptor = ReducingStateDescriptor("count", operator.add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Fires after that many elements."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        state = cast("ReducingState[int]", ctx.get_partitioned_state(self._count_state_descriptor))
        state.add(1)
        if cast("int", state.get()) < self._window_size:
            return TriggerResult.CONTINUE
        state.clear()
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._count_state_descriptor)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._count_state_descriptor).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self._window_size})"


class DeltaTrigger(Trigger[Any, Any]):
    """Fires when an element is further than a threshold from the one that fired last (at first: the first one)."""

    def __init__(
        self,
        threshold: float,
        delta_function: DeltaFunction | Callable[[Any, Any], float],
        type_info: TypeInformation | None = None,
    ) -> None:
        self._threshold = threshold
        self._delta = as_delta(delta_function, "DeltaTrigger.of(delta_function)")
        self._last_descriptor = ValueStateDescriptor("last-element", type_info or Types.PICKLED_BYTE_ARRAY())

    @staticmethod
    def of(
        threshold: float,
        delta_function: DeltaFunction | Callable[[Any, Any], float],
        type_info: TypeInformation | None = None,
    ) -> DeltaTrigger:
        """``type_info`` is the type of the elements, one of which is kept for each window."""
        return DeltaTrigger(threshold, delta_function, type_info)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        state = cast("ValueState[Any]", ctx.get_partitioned_state(self._last_descriptor))
        last = state.value()
        if last is None:
            state.update(element)
            return TriggerResult.CONTINUE
        if self._delta(last, element) <= self._threshold:
            return TriggerResult.CONTINUE
        state.update(element)
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last_descriptor).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self._threshold})"


class NeverTrigger(Trigger[Any, Any]):
    """Never fires: the default of GlobalWindows, which have no end."""

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        pass

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        pass


class PurgingTrigger(Trigger[Any, Any]):
    """Fires when another trigger does, and empties the window as well."""

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        self.nested_trigger = nested(nested_trigger, "PurgingTrigger.of(nested_trigger)")

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Makes a trigger a purging one."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


class ProcessingTimeoutTrigger(Trigger[Any, Any]):
    """Fires when another trigger does, or when that takes too long by the wall clock.

    Every timer of the window fires it, the one at the window's end too, so that elements the other trigger still
    waits with are not lost.

    >>> ProcessingTimeoutTrigger.of(CountTrigger.of(3), Time.seconds(1))
    ProcessingTimeoutTrigger(CountTrigger(3), 1000)
    """

    def __init__(
        self,
        nested_trigger: Trigger[Any, Any],
        interval: int,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> None:
        self._nested = nested(nested_trigger, "ProcessingTimeoutTrigger.of(nested_trigger)")
        self._interval = interval
        self._reset = reset_timer_on_new_record
        self._clear = should_clear_on_timeout
        self._timeout_descriptor = ValueStateDescriptor("timeout", Types.LONG())

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Time | Duration,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """The time runs from the first element, or from the latest one if it is reset.

        Without ``should_clear_on_timeout`` the other trigger goes on as if nothing had fired, and there is no new
        timeout before it fires itself (or, if it is reset, before the next element).
        """
        interval = positive_millis(timeout, "ProcessingTimeoutTrigger.of(timeout)")
        return ProcessingTimeoutTrigger(nested_trigger, interval, reset_timer_on_new_record, should_clear_on_timeout)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        result = self._nested.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        state = cast("ValueState[int]", ctx.get_partitioned_state(self._timeout_descriptor))
        timeout = state.value()
        if timeout is None or self._reset:
            if timeout is not None:
                ctx.delete_processing_time_timer(timeout)
            timeout = ctx.get_current_processing_time() + self._interval
            state.update(timeout)
            ctx.register_processing_time_timer(timeout)
        return result

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._fire(self._nested.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._fire(self._nested.on_event_time(time, window, ctx), window, ctx)

    def _fire(self, result: TriggerResult, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if self._clear:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        state = cast("ValueState[int]", ctx.get_partitioned_state(self._timeout_descriptor))
        timeout = state.value()
        if timeout is not None:
            ctx.delete_processing_time_timer(timeout)
            state.clear()
        self._nested.clear(window, ctx)

    def __repr__(self) -> str:
        return f"ProcessingTimeoutTrigger({self._nested!r}, {self._interval})"
