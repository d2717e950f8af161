"""Process functions: elements, state, timers and time, with nothing decided in advance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService

__all__ = ["CoProcessFunction", "KeyedCoProcessFunction", "KeyedProcessFunction", "ProcessFunction"]


class _Context(ABC):
    """What a process function may ask while it handles one element. Valid during that call only."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Time, and on keyed streams timers."""

    @abstractmethod
    def timestamp(self) -> int:
        """The element's (or the firing timer's) timestamp in milliseconds; -2^63 where there is none."""


class _KeyedContext(_Context):
    """A context on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """The key being processed."""


class ProcessFunction(Function):
    """Any number of elements out for each one in, with access to time and side outputs.

    Yield ``(tag, value)`` with an :class:`~firesteel.datastream.output_tag.OutputTag` to reach a side output.

    >>> class Repeat(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield value
    ...         yield value
    >>> list(Repeat().process_element("a", None))
    ['a', 'a']
    """

    class Context(_Context):
        """What :meth:`ProcessFunction.process_element` may ask."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each element; yields what goes out."""


class KeyedProcessFunction(Function):
    """A process function on a keyed stream: keyed state and timers as well.

    >>> class Remind(KeyedProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 60_000)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key(), timestamp
    >>> issubclass(Remind.OnTimerContext, Remind.Context)
    True
    """

    class Context(_KeyedContext):
        """What :meth:`KeyedProcessFunction.process_element` may ask."""

    class OnTimerContext(Context):
        """What :meth:`KeyedProcessFunction.on_timer` may ask."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Whether the firing timer is one of event time or of processing time."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each element; yields what goes out."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Called when a timer fires, with the key it was registered under; yields what goes out."""
        return None


class CoProcessFunction(Function):
    """A process function over two connected streams."""

    class Context(_Context):
        """What either ``process_element`` method may ask."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each element of the second stream."""


class KeyedCoProcessFunction(Function):
    """A process function over two streams keyed alike: both sides share the state and timers of a key."""

    class Context(_KeyedContext):
        """What either ``process_element`` method may ask."""

    class OnTimerContext(Context):
        """What :meth:`KeyedCoProcessFunction.on_timer` may ask."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Whether the firing timer is one of event time or of processing time."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Called for each element of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Called when a timer fires; yields what goes out."""
        return None
