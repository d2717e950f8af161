"""The contract of triggers, which say when a window is evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, Generic, TypeVar

from firesteel.datastream.state import State, StateDescriptor
from firesteel.errors import ProgramError
from firesteel.metrics import MetricGroup

__all__ = ["Trigger", "TriggerResult"]

T = TypeVar("T")
W = TypeVar("W")


class TriggerResult(Enum):
    """What happens to a window: evaluated (fire), emptied (purge), both, or nothing.

    An empty window that fires is not evaluated.

    >>> TriggerResult.FIRE_AND_PURGE.is_fire(), TriggerResult.FIRE.is_purge()
    (True, False)
    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def __init__(self, fire: bool, purge: bool) -> None:
        # Attributes, because ``value`` of an Enum is slow and this is asked for every element.
        self._fire = fire
        self._purge = purge

    def is_fire(self) -> bool:
        """Whether the window is evaluated."""
        return self._fire

    def is_purge(self) -> bool:
        """Whether the window's contents are removed."""
        return self._purge


class Trigger(ABC, Generic[T, W]):
    """Decides when the window of a key is evaluated, from its elements and from timers.

    One instance serves all keys and windows, so what it remembers belongs into the state of its context, never into
    attributes.

    >>> class Eager(Trigger):
    ...     def on_element(self, element, timestamp, window, ctx):
    ...         return TriggerResult.FIRE
    ...     def on_processing_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def on_event_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def clear(self, window, ctx):
    ...         pass
    >>> Eager().on_element("a", 0, None, None)
    <TriggerResult.FIRE: (True, False)>
    """

    class TriggerContext(ABC):
        """Time, timers and state of one key and one window. Valid during one call only."""

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
        def register_processing_time_timer(self, time: int) -> None:
            """Has :meth:`Trigger.on_processing_time` called at that time."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Has :meth:`Trigger.on_event_time` called when the watermark gets there."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Takes a timer of processing time back; nothing happens if there is none."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Takes a timer of event time back; nothing happens if there is none."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """The trigger's state for this key and this window."""

    class OnMergeContext(TriggerContext):
        """What :meth:`Trigger.on_merge` may ask; its state and timers are those of the new window."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Moves what the merged windows have in this state into that of the new one."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called for each element that was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called when a timer of processing time fires that was set for the window."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called when a timer of event time fires that was set for the window."""

    def can_merge(self) -> bool:
        """Whether the trigger works with windows that merge; then :meth:`on_merge` must be written."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Called when other windows became this one: merge their states and set timers anew."""
        raise ProgramError(f"{self!r} cannot merge: on_merge() is missing in {type(self).__name__}.")

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Called when the window goes away: remove its states and timers."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def nested(trigger: Any, where: str) -> Trigger[Any, Any]:
    """A trigger given to another one; an error if it is none, which is what forgetting the parentheses gives."""
    if isinstance(trigger, Trigger):
        return trigger
    raise ProgramError(f"{where} takes a Trigger such as CountTrigger.of(3), got {trigger!r}.")
