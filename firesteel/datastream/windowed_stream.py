"""Streams cut into windows: settings first, then the function that each window is evaluated with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    Function,
    FunctionWrapper,
    NullByteKeySelector,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
    as_reduce,
)
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.window import Evictor, MergingWindowAssigner, Trigger, WindowAssigner
from firesteel.datastream.window.lengths import millis
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.specs import WindowSpec

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream, KeyedStream
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["AllWindowedStream", "WindowedStream", "expect_instance"]


class _Windows:
    """What keyed and other windowed streams share. Settings change the object and return it, as in PyFlink."""

    _label: ClassVar[str]
    _plain: ClassVar[type]
    """The contract of functions that see a window and its elements."""
    _process: ClassVar[type]
    """The contract of functions that have a context, too."""

    def __init__(self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        expect_instance("window()", window_assigner, WindowAssigner)
        self._keyed_stream = keyed_stream
        self._assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any, Any] | None = None
        self._allowed_lateness = 0
        self._late_tag: OutputTag | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment this stream belongs to."""
        return self._keyed_stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """The type of the records that go into the windows."""
        return self._keyed_stream.get_type()

    # Settings

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Says when windows fire, in place of the assigner's default trigger."""
        expect_instance("trigger()", trigger, Trigger)
        self._check_merging(trigger)
        self._trigger = trigger
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Takes elements out of windows that fire. All elements are then kept until a window fires, with a reduce or
        aggregate function, too."""
        expect_instance("evictor()", evictor, Evictor)
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: int | Time | Duration) -> Self:
        """Keeps windows of event time for so many milliseconds after they fired; late records fire them again."""
        lateness = time_ms if isinstance(time_ms, int) else millis(time_ms, "allowed_lateness()")
        if lateness < 0:
            raise ProgramError(f"The allowed lateness cannot be negative, got {lateness} ms.")
        self._allowed_lateness = lateness
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Sends records that come too late for all their windows to a side output, rather than dropping them."""
        expect_instance("side_output_late_data()", output_tag, OutputTag)
        self._late_tag = output_tag
        return self

    # Functions

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: Any = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Folds the elements of a window into one as they come. A window function, if given, gets just that one."""
        fold = as_reduce(reduce_function)
        if window_function is None and output_type is None:
            output_type = self._keyed_stream._type
        return self._folded("reduce", fold, window_function, output_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: Any = None,
        accumulator_type: TypeInformation | list[TypeInformation] | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Adds the elements of a window to an accumulator as they come. A window function, if given, gets its result.

        ``accumulator_type`` is accepted for compatibility: an accumulator may be anything that can be pickled.
        """
        expect_instance("aggregate()", aggregate_function, AggregateFunction)
        return self._folded("aggregate", aggregate_function, window_function, output_type)

    def _folded(
        self, method: str, fold: Function, window_function: Any, output_type: TypeInformation | None
    ) -> DataStream:
        if window_function is not None:
            expect_instance(f"{method}(window_function)", window_function, self._plain, self._process)
        return self._evaluated(fold, window_function, output_type)

    def _evaluated(self, fold: Any, function: Any, output_type: TypeInformation | None) -> DataStream:
        trigger = self._trigger
        if trigger is None:
            trigger = self._assigner.get_default_trigger(self.get_execution_environment())
            self._check_merging(trigger)
        spec = WindowSpec(
            self._assigner, trigger, fold, function, self._evictor, self._allowed_lateness, self._late_tag
        )
        shown = [repr(self._assigner), type(trigger).__name__]
        shown += [_name(part) for part in (self._evictor, fold, function) if part is not None]
        result = self._keyed_stream._add(type(self._assigner).__name__, spec, output_type)
        return result.set_description(f"{self._label}({', '.join(shown)})")

    def _check_merging(self, trigger: Trigger[Any, Any]) -> None:
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise ProgramError(
                f"{self._assigner!r} merges windows, which {trigger!r} does not support. Use a trigger whose "
                "can_merge() is true, such as EventTimeTrigger or CountTrigger."
            )


class WindowedStream(_Windows):
    """A keyed stream cut into windows.

    >>> from firesteel.common import Time
    >>> from firesteel.datastream import StreamExecutionEnvironment
    >>> from firesteel.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> keyed = env.from_collection([("a", 1)]).key_by(lambda record: record[0])
    >>> counted = keyed.window(TumblingEventTimeWindows.of(Time.seconds(5))).reduce(lambda a, b: (a[0], a[1] + b[1]))
    >>> counted.get_name()
    'TumblingEventTimeWindows'
    """

    _label = "Window"
    _plain = WindowFunction
    _process = ProcessWindowFunction

    def apply(
        self, window_function: WindowFunction[Any, Any, Any, Any], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Calls a window function with the key, the window and all its elements, which are kept until then."""
        expect_instance("apply()", window_function, WindowFunction)
        return self._evaluated(None, window_function, output_type)

    def process(
        self,
        process_window_function: ProcessWindowFunction[Any, Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Calls a window function with the key, a context and all elements, which are kept until then."""
        expect_instance("process()", process_window_function, ProcessWindowFunction)
        return self._evaluated(None, process_window_function, output_type)


class AllWindowedStream(_Windows):
    """A stream cut into windows over all keys. One subtask sees every record."""

    _label = "AllWindow"
    _plain = AllWindowFunction
    _process = ProcessAllWindowFunction

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.key_by(NullByteKeySelector()), window_assigner)

    def apply(
        self, window_function: AllWindowFunction[Any, Any, Any], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Calls a window function with the window and all its elements, which are kept until then."""
        expect_instance("apply()", window_function, AllWindowFunction)
        return self._evaluated(None, window_function, output_type)

    def process(
        self,
        process_window_function: ProcessAllWindowFunction[Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Calls a window function with a context and all elements, which are kept until then."""
        expect_instance("process()", process_window_function, ProcessAllWindowFunction)
        return self._evaluated(None, process_window_function, output_type)

    def _evaluated(self, fold: Any, function: Any, output_type: TypeInformation | None) -> DataStream:
        return super()._evaluated(fold, function, output_type).force_non_parallel()


def expect_instance(where: str, found: Any, *contracts: type) -> None:
    """An error unless ``found`` is an instance of one of the contracts."""
    if isinstance(found, contracts):
        return
    names = " or ".join(contract.__name__ for contract in contracts)
    if isinstance(found, type):
        came = f"the class {found.__name__} itself. Pass an instance."
    else:
        came = f"{type(found).__name__} {short_repr(found, 80)}."
    raise ProgramError(f"{where} takes an instance of {names}, got {came}")


def _name(part: Any) -> str:
    """A function or an evictor in the plan."""
    if isinstance(part, FunctionWrapper):
        return getattr(part.func, "__qualname__", type(part.func).__name__)
    return type(part).__name__ if isinstance(part, Function) else repr(part)
