"""Sinks written in Python. PyFlink's SinkFunction wraps a Java object; here it is a class to subclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function

__all__ = ["SinkFunction"]


class SinkFunction(Function):
    """Receives every element of a stream at its end.

    After a failure elements since the last checkpoint come again, so writes should be idempotent.

    >>> class Collect(SinkFunction):
    ...     def __init__(self):
    ...         self.seen = []
    ...     def invoke(self, value, context):
    ...         self.seen.append(value)
    >>> sink = Collect()
    >>> sink.invoke(1, None)
    >>> sink.seen
    [1]
    """

    class Context(ABC):
        """What :meth:`SinkFunction.invoke` may ask. Valid during that call only."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event-time watermark in milliseconds."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The element's timestamp in milliseconds, or None where there is none."""

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Called for each element."""
