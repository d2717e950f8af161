"""Patterns on streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from firesteel.cep.automaton import compile_pattern
from firesteel.cep.errors import MalformedPatternError
from firesteel.cep.functions import PatternProcessFunction, selecting, with_timeouts
from firesteel.cep.operator import MatchPattern
from firesteel.cep.pattern import Pattern
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream import DataStream, KeyedStream
from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import ProgramError

__all__ = ["CEP", "PatternStream"]


class CEP:
    """Complex event processing: patterns of events."""

    @staticmethod
    def pattern(
        stream: DataStream, pattern: Pattern, comparator: Callable[[Any, Any], int] | None = None
    ) -> PatternStream:
        """Looks for a pattern, for each key of a keyed stream, else in the stream as a whole, by one subtask.

        ``comparator`` gives the order of events with the same timestamp: negative, zero or positive, as of two events.

        >>> from firesteel.cep import CEP, Pattern
        >>> from firesteel.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> readings = env.from_collection([3, 97, 98, 5])
        >>> rising = Pattern.begin("warm").where(lambda t: t > 90).next("hot").where(lambda t, ctx: t > 90)
        >>> alarms = CEP.pattern(readings, rising).in_processing_time().select(lambda match: match["hot"][0])
        >>> with alarms.execute_and_collect() as found:
        ...     list(found)
        [98]
        """
        if not isinstance(pattern, Pattern):
            raise ProgramError(f"CEP.pattern() takes a Pattern, got {pattern!r}.")
        if compile_pattern(pattern).can_be_empty:
            raise MalformedPatternError("All steps of the pattern are optional: it would match without any event.")
        return PatternStream(stream, pattern, comparator)


class PatternStream:
    """A stream with a pattern. What is made of matches gives a stream again."""

    def __init__(
        self,
        stream: DataStream,
        pattern: Pattern,
        comparator: Callable[[Any, Any], int] | None = None,
        spec: MatchPattern | None = None,
    ) -> None:
        self._stream = stream
        self._spec = spec or MatchPattern(pattern, _Unset(), comparator=comparator)

    def _with(self, **changes: Any) -> PatternStream:
        return PatternStream(self._stream, self._spec.pattern, spec=replace(self._spec, **changes))

    def in_event_time(self) -> PatternStream:
        """Events are sorted by their timestamps; this is the default."""
        return self._with(processing_time=False)

    def in_processing_time(self) -> PatternStream:
        """Events count as they come."""
        return self._with(processing_time=True)

    def side_output_late_data(self, output_tag: OutputTag) -> PatternStream:
        """Events that come when the watermark has passed them go to a side output, and are not dropped."""
        return self._with(late_tag=output_tag)

    def limit_partial_matches(self, number: int) -> PatternStream:
        """A key with more partial matches than that ends the job, with a message that says so."""
        if not isinstance(number, int) or number < 1:
            raise ProgramError(f"limit_partial_matches() takes a positive number, got {number!r}.")
        return self._with(limit=number)

    def process(self, function: PatternProcessFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Applies a :class:`PatternProcessFunction`, or a callable of a match and a context that yields results."""
        if not isinstance(function, PatternProcessFunction):
            if not callable(function):
                raise ProgramError(f"process() takes a PatternProcessFunction, got {function!r}.")
            function = _Calling(function)
        spec = replace(self._spec, function=function)
        if isinstance(self._stream, KeyedStream):
            return self._stream.transform("CepOperator", spec, output_type)
        whole = self._stream.key_by(_nothing)
        return whole.transform("GlobalCepOperator", spec, output_type).force_non_parallel()

    def select(self, *functions: Any, output_type: TypeInformation | None = None) -> DataStream:
        """One result a match: ``select(function)``; or ``select(tag, timeout_function, function)``, with the partial
        matches whose time is over in a side output."""
        return self._select(functions, False, output_type)

    def flat_select(self, *functions: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of results a match: ``flat_select(function)``, or ``flat_select(tag, timeout_function,
        function)``."""
        return self._select(functions, True, output_type)

    def _select(self, functions: tuple[Any, ...], flat: bool, output_type: TypeInformation | None) -> DataStream:
        name = "flat_select" if flat else "select"
        if len(functions) == 1:
            return self.process(selecting(functions[0], flat), output_type)
        if len(functions) == 3:
            tag, timeout, function = functions
            return self.process(with_timeouts(tag, timeout, function, flat), output_type)
        raise ProgramError(f"{name}() takes a function, or a tag, a function for partial matches and one for matches.")


class _Unset(PatternProcessFunction):
    """Stands where the program has not said yet what becomes of matches."""

    def process_match(self, match: Any, ctx: Any) -> Any:
        raise AssertionError


class _Calling(PatternProcessFunction):
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def process_match(self, match: Any, ctx: Any) -> Any:
        return self._function(match, ctx)


def _nothing(event: Any) -> int:
    return 0
