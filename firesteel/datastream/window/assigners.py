"""The contracts of window assigners, which say what windows an element belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, TypeVar

from firesteel.common.serializer import TypeSerializer
from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.window.serializers import PickledWindowSerializer
from firesteel.datastream.window.triggers import Trigger
from firesteel.errors import ProgramError, short_repr

__all__ = ["MergingWindowAssigner", "SessionWindowTimeGapExtractor", "WindowAssigner", "no_timestamp"]

T = TypeVar("T")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowAssigner(ABC, Generic[T, W]):
    """Puts each element into any number of windows.

    >>> from firesteel.datastream.window import EventTimeTrigger, TimeWindow
    >>> class Decades(WindowAssigner):
    ...     def assign_windows(self, element, timestamp, context):
    ...         return [TimeWindow(element["decade"], element["decade"] + 10)]
    ...     def get_default_trigger(self, env):
    ...         return EventTimeTrigger()
    ...     def is_event_time(self):
    ...         return True
    >>> Decades().assign_windows({"decade": 1990}, 1994, None)
    [TimeWindow(start=1990, end=2000)]
    """

    class WindowAssignerContext(ABC):
        """What an assigner may ask. Valid during one call only."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Where the assigner runs, with the state of the element's key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of an element. ``timestamp`` is -2^63 where it has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger of windows for which none was chosen; ``env`` is the environment."""

    def get_window_serializer(self) -> TypeSerializer[W]:
        """Accepted for compatibility: windows are pickled."""
        return PickledWindowSerializer()

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether the windows are those of event time."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may grow together, as sessions do. Their trigger must be able to merge, too."""

    class MergeCallback(ABC, Generic[W2]):
        """Where :meth:`MergingWindowAssigner.merge_windows` reports what it found."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """Says that these windows become that one."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Looks at all windows of a key and calls back for each group that must become one."""


class SessionWindowTimeGapExtractor(ABC):
    """Says how long a silence after an element ends its session.

    >>> class Patience(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return element["patience"]
    >>> Patience().extract({"patience": 500})
    500
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds, above 0."""


def no_timestamp(assigner: WindowAssigner[Any, Any], element: Any) -> ProgramError:
    """The error for an element without a timestamp in a window of event time."""
    return ProgramError(
        f"{assigner!r} needs records with timestamps, but {short_repr(element, 80)} has none. Call "
        "assign_timestamps_and_watermarks() before the window with a strategy that has a timestamp assigner, or use "
        "windows of processing time."
    )


def as_gap(extractor: Any, where: str) -> Callable[[Any], int]:
    """The function that finds an element's gap, for an extractor or a callable."""
    if isinstance(extractor, type):
        name = extractor.__name__
        raise ProgramError(f"{where} got the class {name} itself. Pass an instance: {name}().")
    found = getattr(extractor, "extract", extractor)
    if not callable(found):
        raise ProgramError(
            f"{where} takes a SessionWindowTimeGapExtractor or a callable f(element), got {short_repr(extractor, 60)}."
        )
    function: Callable[[Any], int] = found
    return function
