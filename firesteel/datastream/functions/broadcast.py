"""Process functions over a stream and a broadcast stream.

The broadcast side may write broadcast state; the other side reads it. This keeps the copies on all subtasks
equal: each subtask sees every broadcast element, but only its share of the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from firesteel.datastream.functions.base import Function
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService

if TYPE_CHECKING:
    from firesteel.datastream.state import (
        BroadcastState,
        MapStateDescriptor,
        ReadOnlyBroadcastState,
        State,
        StateDescriptor,
    )

__all__ = ["BaseBroadcastProcessFunction", "BroadcastProcessFunction", "KeyedBroadcastProcessFunction"]

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")


class BaseBroadcastProcessFunction(Function):
    """What the keyed and the unkeyed variant have in common: their contexts."""

    class BaseContext(ABC):
        """Time, as both sides see it."""

        @abstractmethod
        def timestamp(self) -> int:
            """The element's timestamp in milliseconds; -2^63 where there is none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event-time watermark in milliseconds."""

    class Context(BaseContext):
        """What the broadcast side may ask."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """The broadcast state of this descriptor, to read and to write."""

    class ReadOnlyContext(BaseContext):
        """What the other side may ask."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """The broadcast state of this descriptor, to read."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """Joins an unkeyed stream with a broadcast one.

    >>> class Enrich(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield value, ctx.get_broadcast_state(RULES).get(value)
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(RULES).put(*value)
    >>> enrich = Enrich()
    """

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """What the broadcast side may ask."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """What the other side may ask."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: ReadOnlyContext) -> Iterable[OUT] | None:
        """Called for each element of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: Context) -> Iterable[OUT] | None:
        """Called on every subtask for each broadcast element."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Joins a keyed stream with a broadcast one: keyed state and timers on the keyed side."""

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """What the broadcast side may ask."""

        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: Callable[[Any, State], None]
        ) -> None:
            """Calls ``function(key, state)`` for every key of this subtask that has such state."""
            raise NotImplementedError("apply_to_keyed_state is not available here")

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """What the keyed side may ask."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Time and timers."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key being processed."""

    class OnTimerContext(ReadOnlyContext, ABC):
        """What :meth:`KeyedBroadcastProcessFunction.on_timer` may ask."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Whether the firing timer is one of event time or of processing time."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: ReadOnlyContext) -> Iterable[OUT] | None:
        """Called for each element of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: Context) -> Iterable[OUT] | None:
        """Called on every subtask for each broadcast element."""

    def on_timer(self, timestamp: int, ctx: OnTimerContext) -> Iterable[OUT] | None:
        """Called when a timer fires; yields what goes out."""
        return None
