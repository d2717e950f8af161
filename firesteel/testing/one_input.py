"""A harness for functions with one input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from firesteel.common.time import Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.async_data_stream import AsyncDataStream
from firesteel.datastream.connectors.base import Sink
from firesteel.datastream.data_stream import DataStream, DataStreamSink
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.functions import (
    AsyncFunction,
    FilterFunction,
    FlatMapFunction,
    GenericWriteAheadSink,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
    TwoPhaseCommitSinkFunction,
)
from firesteel.errors import ProgramError, short_repr
from firesteel.testing.crash import Crash
from firesteel.testing.harness import Harness
from firesteel.testing.job_of_function import Options, plan
from firesteel.testing.snapshot import Snapshot
from firesteel.testing.steps import ProcessingTime, Record, Step, Watermark, checked, parts

__all__ = ["OneInputHarness"]

Apply = Callable[[Any, Any, TypeInformation | None], Any]

_APPLY: dict[type, Apply] = {
    MapFunction: lambda stream, function, declared: stream.map(function, declared),
    FlatMapFunction: lambda stream, function, declared: stream.flat_map(function, declared),
    FilterFunction: lambda stream, function, declared: stream.filter(function),
    ReduceFunction: lambda stream, function, declared: stream.reduce(function),
    ProcessFunction: lambda stream, function, declared: stream.process(function, declared),
    KeyedProcessFunction: lambda stream, function, declared: stream.process(function, declared),
    AsyncFunction: lambda stream, function, declared: AsyncDataStream.ordered_wait(
        stream, function, Time.minutes(1), output_type=declared
    ),
    SinkFunction: lambda stream, function, declared: stream.add_sink(function),
    TwoPhaseCommitSinkFunction: lambda stream, function, declared: stream.add_sink(function),
    GenericWriteAheadSink: lambda stream, function, declared: stream.add_sink(function),
    Sink: lambda stream, sink, declared: stream.sink_to(sink),
    WatermarkStrategy: lambda stream, strategy, declared: stream.assign_timestamps_and_watermarks(strategy),
}
"""How the builder applies each kind of function."""


class OneInputHarness(Harness):
    """Runs one function on elements, watermarks and moments that a test gives it, without Spark.

    >>> from firesteel.common import Types
    >>> from firesteel.datastream import KeyedProcessFunction
    >>> from firesteel.datastream.state import ValueStateDescriptor
    >>> class Count(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
    ...     def process_element(self, value, ctx):
    ...         self.count.update((self.count.value() or 0) + 1)
    ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
    ...         yield value, self.count.value()
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key(), "ten later"
    >>> with OneInputHarness(Count(), key_selector=lambda word: word) as harness:
    ...     harness.process_element("a", timestamp=1)
    ...     harness.process_elements([Record("b", 5), Record("a", 7)])
    ...     harness.process_watermark(15)
    ...     snapshot = harness.snapshot()
    ...     harness.records, harness.num_event_time_timers
    ([Record(value=('a', 1), timestamp=1), Record(value=('b', 1), timestamp=5), Record(value=('a', 2), timestamp=7), \
Record(value=('a', 'ten later'), timestamp=11), Record(value=('b', 'ten later'), timestamp=15)], 1)

    After a failure a job goes on from its last batch, with a new copy of the function. So does a harness:

    >>> with harness.restore(snapshot) as restarted:
    ...     restarted.process_element("a", timestamp=20)
    ...     restarted.output
    [('a', 3)]
    """

    def __init__(
        self,
        function: Any,
        key_selector: Callable[[Any], Any] | KeySelector | None = None,
        key_type: TypeInformation | None = None,
        *,
        output_type: TypeInformation | None = None,
        input_type: TypeInformation | None = None,
        backend: str = "hashmap",
        parallelism: int = 1,
        subtask: int = 0,
        mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING,
        config: Mapping[str, str] | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        """``function`` is a map, flat map, filter, reduce, process, async or sink function, a sink, or a watermark
        strategy. With a ``key_selector`` it runs on a keyed stream. What ``of`` builds can be anything else."""
        apply = _apply_of(function)
        if isinstance(function, ReduceFunction | KeyedProcessFunction) and key_selector is None:
            raise ProgramError(f"A {_kind(function)} runs on a keyed stream: pass a key_selector to the harness.")

        def build(stream: DataStream) -> Any:
            return apply(
                stream if key_selector is None else stream.key_by(key_selector, key_type), function, output_type
            )

        options = Options(backend, parallelism, subtask, mode, config)
        self._set_up(plan(lambda env: build(env.from_collection([], input_type)), options), snapshot)

    @classmethod
    def of(
        cls,
        build: Callable[[DataStream], DataStream | DataStreamSink],
        *,
        input_type: TypeInformation | None = None,
        backend: str = "hashmap",
        parallelism: int = 1,
        subtask: int = 0,
        mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING,
        config: Mapping[str, str] | None = None,
        snapshot: Snapshot | None = None,
    ) -> OneInputHarness:
        """A harness of the one operator that ``build`` puts on a stream, for what is no function object.

        >>> with OneInputHarness.of(lambda stream: stream.key_by(lambda pair: pair[0]).sum(1)) as harness:
        ...     harness.process_elements([("a", 1), ("b", 5), ("a", 2)])
        ...     harness.output
        [('a', 1), ('b', 5), ('a', 3)]
        """
        options = Options(backend, parallelism, subtask, mode, config)
        harness = cls.__new__(cls)
        harness._set_up(plan(lambda env: build(env.from_collection([], input_type)), options), snapshot)
        return harness

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """One element comes in."""
        self._feed(0, [Record(value, timestamp)])

    def process_elements(self, elements: Iterable[Any]) -> None:
        """Elements come in together: plain values, or :class:`Record` where they have timestamps."""
        self._feed(0, elements)

    def play(self, steps: Iterable[Step]) -> list[Any]:
        """Lets one step after the other happen and returns the values that came out meanwhile.

        A :class:`~firesteel.testing.ListSource` of the same steps lets them happen to a whole program.

        >>> OneInputHarness.of(lambda stream: stream.map(str.upper)).play([["a", "b"], Watermark(5), ["c"]])
        ['A', 'B', 'C']
        """
        before = len(self._main.records)
        for step in map(checked, steps):
            if isinstance(step, ProcessingTime):
                self.set_processing_time(step.milliseconds)
                continue
            for part in parts(step if isinstance(step, list) else [step]):
                match part:
                    case Watermark(timestamp):
                        self.process_watermark(timestamp)
                    case Crash():
                        part.hit()
                    case elements:
                        self.process_elements(elements)
        return self.output[before:]


def _apply_of(function: Any) -> Apply:
    for kind, apply in _APPLY.items():
        if isinstance(function, kind):
            return apply
    if isinstance(function, type):
        raise ProgramError(f"A harness takes a function object. Pass an instance: {function.__name__}().")
    kinds = ", ".join(kind.__name__ for kind in _APPLY)
    raise ProgramError(
        f"OneInputHarness takes an instance of one of {kinds}, got {short_repr(function, 60)}. For anything else say "
        "how it is applied: OneInputHarness.of(lambda stream: stream.map(…))."
    )


def _kind(function: Any) -> str:
    return next(kind.__name__ for kind in _APPLY if isinstance(function, kind))
