"""Windows that know no time: all of a key's elements in one, or so many in each."""

from __future__ import annotations

from typing import Any

from firesteel.common.serializer import TypeSerializer
from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window.assigners import WindowAssigner
from firesteel.datastream.window.content_triggers import CountTrigger, NeverTrigger, PurgingTrigger
from firesteel.datastream.window.lengths import at_least_one
from firesteel.datastream.window.serializers import CountWindowSerializer, GlobalWindowSerializer
from firesteel.datastream.window.triggers import Trigger
from firesteel.datastream.window.windows import CountWindow, GlobalWindow

__all__ = ["CountSlidingWindowAssigner", "CountTumblingWindowAssigner", "GlobalWindows"]


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """All elements of a key in one window without end. It needs a trigger: by default it never fires.

    >>> GlobalWindows.create().assign_windows("a", 0, None)
    [GlobalWindow]
    """

    @staticmethod
    def create() -> GlobalWindows:
        """A new one."""
        return GlobalWindows()

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[GlobalWindow]:
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


class _Counting(WindowAssigner[Any, CountWindow]):
    """Numbers the elements of each key, in its state."""

    _window_size: int
    _count_descriptor: ValueStateDescriptor

    def _number(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """The number of this element among those of its key, from 0."""
        state = context.get_runtime_context().get_state(self._count_descriptor)
        number: int = state.value() or 0
        state.update(number + 1)
        return number

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        # A full window is never needed again, and no time comes at which it would be cleaned up.
        return PurgingTrigger.of(CountTrigger.of(self._window_size))

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(_Counting):
    """Windows of so many elements of a key, one after the other."""

    def __init__(self, window_size: int) -> None:
        self._window_size = at_least_one(window_size, "The size of CountTumblingWindowAssigner")
        self._count_descriptor = ValueStateDescriptor("tumble-count-assigner", Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Windows of that many elements."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        return [CountWindow(self._number(context) // self._window_size)]

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self._window_size})"


class CountSlidingWindowAssigner(_Counting):
    """Windows of so many elements of a key that start every so many elements. They fire when they are full."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        self._window_size = at_least_one(window_size, "The size of CountSlidingWindowAssigner")
        self._window_slide = at_least_one(window_slide, "The slide of CountSlidingWindowAssigner")
        self._count_descriptor = ValueStateDescriptor("slide-count-assigner", Types.LONG())

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Windows of ``window_size`` elements, a new one every ``window_slide`` elements."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        # Window number i holds the elements from i * slide to i * slide + size - 1.
        number = self._number(context)
        latest = number // self._window_slide
        before_earliest = max(-1, (number - self._window_size) // self._window_slide)
        return [CountWindow(window) for window in range(latest, before_earliest, -1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self._window_size}, {self._window_slide})"
