"""What a program does with matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from firesteel.cep.matching import Match
from firesteel.datastream.functions import Function
from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import ProgramError

__all__ = [
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternTimeoutFunction",
    "TimedOutPartialMatchHandler",
    "selecting",
    "with_timeouts",
]


class PatternProcessFunction(Function):
    """Makes results of matches. A match is a dict from a step's name to the list of its events.

    A class that is a :class:`TimedOutPartialMatchHandler` as well gets the partial matches whose time is over.
    """

    class Context(ABC):
        """The time of a match, and side outputs."""

        @abstractmethod
        def timestamp(self) -> int:
            """The time of the match: that of its last event, or the one that it had to wait for."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The processing time: that of the micro-batch."""

        @abstractmethod
        def output(self, output_tag: OutputTag, value: Any) -> None:
            """Sends a value to a side output."""

    @abstractmethod
    def process_match(self, match: Match, ctx: PatternProcessFunction.Context) -> Iterable[Any] | None:
        """Yields results."""


class TimedOutPartialMatchHandler(ABC):
    """To be mixed into a :class:`PatternProcessFunction`."""

    @abstractmethod
    def process_timed_out_match(
        self, match: Match, ctx: PatternProcessFunction.Context
    ) -> Iterable[tuple[OutputTag, Any]] | None:
        """A partial match's time is over: yields pairs of a tag and a value, which go to side outputs."""


class PatternSelectFunction(Function):
    """One result a match."""

    @abstractmethod
    def select(self, match: Match) -> Any: ...


class PatternFlatSelectFunction(Function):
    """Any number of results a match."""

    @abstractmethod
    def flat_select(self, match: Match) -> Iterable[Any]: ...


class PatternTimeoutFunction(Function):
    """One result a partial match whose time is over, at the end of that time."""

    @abstractmethod
    def timeout(self, match: Match, timeout_timestamp: int) -> Any: ...


class PatternFlatTimeoutFunction(Function):
    """Any number of results a partial match whose time is over."""

    @abstractmethod
    def timeout(self, match: Match, timeout_timestamp: int) -> Iterable[Any]: ...


class _Selecting(PatternProcessFunction):
    """Calls functions of a match alone."""

    def __init__(self, functions: list[Any], results: Callable[[Match], Iterable[Any]]) -> None:
        self._functions, self._results = functions, results

    def open(self, runtime_context: Any) -> None:
        for function in self._functions:
            if isinstance(function, Function):
                function.open(runtime_context)

    def close(self) -> None:
        for function in self._functions:
            if isinstance(function, Function):
                function.close()

    def process_match(self, match: Match, ctx: PatternProcessFunction.Context) -> Iterable[Any]:
        return self._results(match)


class _WithTimeouts(_Selecting, TimedOutPartialMatchHandler):
    def __init__(
        self,
        functions: list[Any],
        results: Callable[[Match], Iterable[Any]],
        tag: OutputTag,
        timed_out: Callable[[Match, int], Iterable[Any]],
    ) -> None:
        super().__init__(functions, results)
        self._tag, self._timed_out = tag, timed_out

    def process_timed_out_match(
        self, match: Match, ctx: PatternProcessFunction.Context
    ) -> Iterable[tuple[OutputTag, Any]]:
        return [(self._tag, value) for value in self._timed_out(match, ctx.timestamp())]


def selecting(function: Any, flat: bool) -> PatternProcessFunction:
    """A function, or a callable, that makes one result or several of a match."""
    return _Selecting([function], _results_of(function, flat))


def with_timeouts(tag: OutputTag, timeout: Any, function: Any, flat: bool) -> PatternProcessFunction:
    """The same, with another function for partial matches whose time is over."""
    if not isinstance(tag, OutputTag):
        raise ProgramError(f"The side output of partial matches is named by an OutputTag, got {tag!r}.")
    call = _call_of(timeout, "timeout", "a callable of a match and the end of its time")
    timed_out = call if flat else lambda match, end: [call(match, end)]
    return _WithTimeouts([function, timeout], _results_of(function, flat), tag, timed_out)


def _results_of(function: Any, flat: bool) -> Callable[[Match], Iterable[Any]]:
    call = _call_of(function, "flat_select" if flat else "select", "a callable of a match")
    return call if flat else lambda match: [call(match)]


def _call_of(function: Any, method: str, expected: str) -> Callable[..., Any]:
    found = getattr(function, method, None) or (function if callable(function) else None)
    if found is None:
        raise ProgramError(f"{method}() takes {expected}, got {function!r}.")
    return found  # type: ignore[no-any-return]
