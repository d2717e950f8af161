"""Joins of two streams: within windows, and within an interval around each record. The names are Flink's Java ones.

A window join is built of what there is: both streams tagged, put into one by union, keyed and cut into
windows whose function tells the two apart again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.connected_streams import ConnectedStreams, two_input_stream
from firesteel.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    KeySelector,
    ProcessJoinFunction,
    as_co_group,
    as_join,
    as_key_selector,
    as_map,
)
from firesteel.datastream.joining import CoGroupWindow, FlatJoinWindow, JoinWindow, TaggedKey, tag_first, tag_second
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.window import Evictor, Trigger, WindowAssigner
from firesteel.datastream.window.lengths import millis
from firesteel.datastream.windowed_stream import WindowedStream, expect_instance
from firesteel.errors import ProgramError
from firesteel.graph.specs import IntervalJoinSpec, MapSpec

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream, KeyedStream

__all__ = ["CoGroupedStreams", "IntervalJoin", "IntervalJoined", "JoinedStreams"]

Selector = Callable[[Any], Any] | KeySelector


class _WithWindow:
    """Two streams with keys and windows, on the way to a function."""

    _operation: ClassVar[str]

    def __init__(self, windowed: WindowedStream) -> None:
        self._windowed = windowed

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Says when windows fire, in place of the assigner's default trigger."""
        self._windowed.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Takes elements out of windows that fire; it sees ``(0, element)`` and ``(1, element)``."""
        self._windowed.evictor(evictor)
        return self

    def allowed_lateness(self, time_ms: int | Time | Duration) -> Self:
        """Keeps windows of event time for so many milliseconds after they fired; late records fire them again."""
        self._windowed.allowed_lateness(time_ms)
        return self

    def _applied(self, function: Any, output_type: TypeInformation | None) -> DataStream:
        return self._windowed.apply(function, output_type).name(self._operation)


class JoinWithWindow(_WithWindow):
    """A window join that lacks its function."""

    _operation = "Join"

    def apply(
        self,
        function: JoinFunction | FlatJoinFunction | Callable[[Any, Any], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Calls the function with each pair of a key and a window. A callable returns one result a pair."""
        if isinstance(function, FlatJoinFunction):
            return self._applied(FlatJoinWindow(function), output_type)
        return self._applied(JoinWindow(as_join(function)), output_type)


class CoGroupWithWindow(_WithWindow):
    """A co-group that lacks its function."""

    _operation = "Co-Group"

    def apply(
        self,
        function: CoGroupFunction | Callable[[list[Any], list[Any]], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Calls the function with all elements of a key and a window, of one stream and of the other."""
        return self._applied(CoGroupWindow(as_co_group(function)), output_type)


class _TwoStreams:
    """Two streams without keys yet."""

    def __init__(self, first: DataStream, second: DataStream) -> None:
        if first._env is not second._env:
            raise ProgramError("Streams of different environments cannot be joined.")
        self._streams = first, second


class _Where:
    """The first stream's keys are known."""

    def __init__(self, streams: tuple[DataStream, DataStream], selector: Selector, key_type: Any) -> None:
        self._streams = streams
        self._selector = as_key_selector(selector)
        self._key_type = key_type

    def _keyed(self, selector: Selector, key_type: TypeInformation | None) -> KeyedStream:
        if None not in (key_type, self._key_type) and key_type != self._key_type:
            raise ProgramError(
                f"The keys of joined streams must be of one type, these are {self._key_type} and {key_type}. Let both "
                "key selectors return the same."
            )
        first, second = self._streams
        both = _tagged(first, tag_first).union(_tagged(second, tag_second))
        return both.key_by(TaggedKey(self._selector, as_key_selector(selector)), self._key_type or key_type)


def _tagged(stream: DataStream, tag: Callable[[Any], Any]) -> DataStream:
    """A stream's elements as pairs. The operator runs where they come from: what they do next is to go to a key."""
    tagged = stream._unkeyed()._add("Map", MapSpec(as_map(tag)))
    node = stream.transformation
    return tagged._change(parallelism=node.parallelism, parallel=node.parallel)


class JoinedStreams(_TwoStreams):
    """Two streams on the way to a window join.

    >>> from firesteel.common import Time
    >>> from firesteel.datastream import StreamExecutionEnvironment
    >>> from firesteel.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> orders, payments = env.from_collection([(1, "book")]), env.from_collection([(1, 9.5)])
    >>> joined = orders.join(payments).where(lambda order: order[0]).equal_to(lambda payment: payment[0])
    >>> joined.window(TumblingEventTimeWindows.of(Time.hours(1))).apply(lambda o, p: (*o, p[1])).get_name()
    'Join'
    """

    class Where(_Where):
        """The first stream's keys are known."""

        def equal_to(self, key_selector: Selector, key_type: TypeInformation | None = None) -> JoinedStreams.EqualTo:
            """How the second stream's elements get their keys."""
            return JoinedStreams.EqualTo(self._keyed(key_selector, key_type))

    class EqualTo:
        """The keys of both streams are known."""

        def __init__(self, keyed_stream: KeyedStream) -> None:
            self._keyed_stream = keyed_stream

        def window(self, window_assigner: WindowAssigner[Any, Any]) -> JoinWithWindow:
            """The windows within which elements meet. An assigner sees ``(0, element)`` and ``(1, element)``."""
            return JoinWithWindow(WindowedStream(self._keyed_stream, window_assigner))

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> JoinedStreams.Where:
        """How the first stream's elements get their keys."""
        return JoinedStreams.Where(self._streams, key_selector, key_type)


class CoGroupedStreams(_TwoStreams):
    """Two streams on the way to a co-group: a window's elements of both at once, also where one has none."""

    class Where(_Where):
        """The first stream's keys are known."""

        def equal_to(self, key_selector: Selector, key_type: TypeInformation | None = None) -> CoGroupedStreams.EqualTo:
            """How the second stream's elements get their keys."""
            return CoGroupedStreams.EqualTo(self._keyed(key_selector, key_type))

    class EqualTo:
        """The keys of both streams are known."""

        def __init__(self, keyed_stream: KeyedStream) -> None:
            self._keyed_stream = keyed_stream

        def window(self, window_assigner: WindowAssigner[Any, Any]) -> CoGroupWithWindow:
            """The windows within which elements meet. An assigner sees ``(0, element)`` and ``(1, element)``."""
            return CoGroupWithWindow(WindowedStream(self._keyed_stream, window_assigner))

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> CoGroupedStreams.Where:
        """How the first stream's elements get their keys."""
        return CoGroupedStreams.Where(self._streams, key_selector, key_type)


class IntervalJoin:
    """Two keyed streams on the way to an interval join."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        if not getattr(right, "_is_keyed", False):
            raise ProgramError(
                f"interval_join() takes another KeyedStream, got {type(right).__name__}. Call key_by() on it first."
            )
        # Refuses streams of two environments and keys of two types.
        ConnectedStreams(left, right)._keyed()
        self._left = left
        self._right = right

    def between(self, lower_bound: Time | Duration, upper_bound: Time | Duration) -> IntervalJoined:
        """Which times a right record may have, counted from the left one's; both bounds are part of the interval."""
        lower, upper = millis(lower_bound, "between(lower_bound)"), millis(upper_bound, "between(upper_bound)")
        if lower > upper:
            raise ProgramError(
                f"between() needs a lower bound that is not above the upper one, got {lower} ms and {upper} ms."
            )
        return IntervalJoined(self._left, self._right, lower, upper)


class IntervalJoined:
    """An interval join that lacks its function."""

    def __init__(self, left: KeyedStream, right: KeyedStream, lower: int, upper: int) -> None:
        self._left = left
        self._right = right
        self._lower = lower
        self._upper = upper
        self._lower_open = 0
        self._upper_open = 0
        self._left_late: OutputTag | None = None
        self._right_late: OutputTag | None = None

    def lower_bound_exclusive(self) -> IntervalJoined:
        """Takes the lower bound out of the interval."""
        self._lower_open = 1
        return self

    def upper_bound_exclusive(self) -> IntervalJoined:
        """Takes the upper bound out of the interval."""
        self._upper_open = 1
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Sends left records that come too late to a side output, rather than dropping them."""
        expect_instance("side_output_left_late_data()", output_tag, OutputTag)
        self._left_late = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Sends right records that come too late to a side output, rather than dropping them."""
        expect_instance("side_output_right_late_data()", output_tag, OutputTag)
        self._right_late = output_tag
        return self

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Calls the function with each pair of one key whose times fit, as soon as both are there."""
        expect_instance("process()", process_join_function, ProcessJoinFunction)
        lower, upper = self._lower + self._lower_open, self._upper - self._upper_open
        if lower > upper:
            raise ProgramError(
                f"No time lies between {self._lower} ms and {self._upper} ms without these bounds. Leave out "
                "lower_bound_exclusive() or upper_bound_exclusive()."
            )
        spec = IntervalJoinSpec(process_join_function, lower, upper, self._left_late, self._right_late)
        return two_input_stream(self._left, self._right, "Interval Join", spec, output_type)
