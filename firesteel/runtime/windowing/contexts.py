"""What assigners, triggers, evictors and window functions may ask while one window is looked at."""

from __future__ import annotations

from typing import Any, cast

from firesteel.datastream.functions import (
    KeyedStateStore,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from firesteel.datastream.state import State, StateDescriptor
from firesteel.datastream.window import EvictorContext, Trigger, WindowAssigner
from firesteel.errors import ProgramError
from firesteel.metrics import MetricGroup
from firesteel.runtime.clock import Clock
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.getters import BackendStates
from firesteel.runtime.timers import TimerQueue
from firesteel.runtime.windowing.namespaces import pack

__all__ = ["AssignerContext", "FunctionContext", "TriggerContext", "WindowEvictorContext"]


class AssignerContext(WindowAssigner.WindowAssignerContext):
    def __init__(self, clock: Clock, runtime_context: RuntimeContext) -> None:
        self._clock = clock
        self._runtime_context = runtime_context

    def get_current_processing_time(self) -> int:
        return self._clock.processing_time

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime_context


class TriggerContext(Trigger.OnMergeContext):
    """Looks at the window under the windows' backend's current key."""

    def __init__(self, clock: Clock, windows: KeyedStateBackend, metrics: MetricGroup) -> None:
        self._clock = clock
        self._windows = windows
        self._metrics = metrics
        self.event: TimerQueue
        self.processing: TimerQueue
        self.merged: list[Any] = []
        """The windows that became the current one, while ``on_merge`` runs."""
        self.quiet = False
        """Whether new timers are ignored: they could only be set by the last ones there are, in BATCH mode."""

    def get_current_processing_time(self) -> int:
        return self._clock.processing_time

    def get_current_watermark(self) -> int:
        return self._clock.watermark

    def get_metric_group(self) -> MetricGroup:
        return self._metrics

    def register_processing_time_timer(self, time: int) -> None:
        if not self.quiet:
            self.processing.register(int(time), self._windows.key)

    def register_event_time_timer(self, time: int) -> None:
        if not self.quiet:
            self.event.register(int(time), self._windows.key)

    def delete_processing_time_timer(self, time: int) -> None:
        self.processing.delete(int(time), self._windows.key)

    def delete_event_time_timer(self, time: int) -> None:
        self.event.delete(int(time), self._windows.key)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
        return cast(State, self._windows.state(state_descriptor))

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        state = self._windows.state(state_descriptor)
        if not hasattr(state, "merge"):
            raise ProgramError(f"State {state_descriptor.name!r} of a trigger cannot be merged: use a merging kind.")
        here = self._windows.key
        sources = [(here[0], pack(window)) for window in self.merged if pack(window) != here[1]]
        self._windows.prepare([here, *sources])
        state.merge(here, sources)


class WindowEvictorContext(EvictorContext):
    def __init__(self, clock: Clock, metrics: MetricGroup) -> None:
        self._clock = clock
        self._metrics = metrics

    def get_current_processing_time(self) -> int:
        return self._clock.processing_time

    def get_current_watermark(self) -> int:
        return self._clock.watermark

    def get_metric_group(self) -> MetricGroup:
        return self._metrics


class FunctionContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """What process window functions may ask."""

    def __init__(self, clock: Clock, windows: KeyedStateBackend, keyed: KeyedStateBackend, merging: bool) -> None:
        self._clock = clock
        self._window_store = None if merging else BackendStates(windows)
        self._global_store = BackendStates(keyed)
        self.current: Any = None

    def window(self) -> Any:
        return self.current

    def current_processing_time(self) -> int:
        return self._clock.processing_time

    def current_watermark(self) -> int:
        return self._clock.watermark

    def window_state(self) -> KeyedStateStore:
        if self._window_store is None:
            raise ProgramError("Windows that merge have no state of their own: use global_state().")
        return self._window_store

    def global_state(self) -> KeyedStateStore:
        return self._global_store
