"""Functions over the contents of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from firesteel.datastream.functions.base import Function, KeyedStateStore

__all__ = [
    "AllWindowFunction",
    "PassThroughAllWindowFunction",
    "PassThroughWindowFunction",
    "ProcessAllWindowFunction",
    "ProcessWindowFunction",
    "WindowFunction",
]

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Turns the elements of a keyed window into results.

    >>> class Count(WindowFunction):
    ...     def apply(self, key, window, inputs):
    ...         return [(key, sum(1 for _ in inputs))]
    >>> Count().apply("a", None, [1, 2])
    [('a', 2)]
    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Called when the window fires; returns or yields what goes out."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Turns the elements of a window over an unkeyed stream into results."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Called when the window fires; returns or yields what goes out."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Like :class:`WindowFunction`, with a context that knows the time and keeps state.

    >>> class Size(ProcessWindowFunction):
    ...     def process(self, key, context, elements):
    ...         yield key, len(list(elements))
    >>> list(Size().process("a", None, [1, 2]))
    [('a', 2)]
    """

    class Context(ABC, Generic[W2]):
        """What :meth:`ProcessWindowFunction.process` may ask. Valid during that call only."""

        @abstractmethod
        def window(self) -> W2:
            """The window that fires."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event-time watermark in milliseconds."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of this key and this window; clean it up in :meth:`ProcessWindowFunction.clear`."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State of this key, shared by all its windows."""

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[Any], elements: Iterable[IN]) -> Iterable[OUT]:
        """Called each time the window fires; returns or yields what goes out."""

    def clear(self, context: ProcessWindowFunction.Context[Any]) -> None:
        """Called when the window expires, to remove what was put into its window state."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Like :class:`AllWindowFunction`, with a context that keeps state."""

    class Context(ABC, Generic[W2]):
        """What :meth:`ProcessAllWindowFunction.process` may ask. Valid during that call only."""

        @abstractmethod
        def window(self) -> W2:
            """The window that fires."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of this window; clean it up in :meth:`ProcessAllWindowFunction.clear`."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State shared by all windows."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[Any], elements: Iterable[IN]) -> Iterable[OUT]:
        """Called each time the window fires; returns or yields what goes out."""

    def clear(self, context: ProcessAllWindowFunction.Context[Any]) -> None:
        """Called when the window expires, to remove what was put into its window state."""


class PassThroughWindowFunction(WindowFunction[IN, IN, KEY, W]):
    """Emits the window's elements as they are."""

    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        return inputs


class PassThroughAllWindowFunction(AllWindowFunction[IN, IN, W]):
    """Emits the window's elements as they are."""

    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        return inputs
