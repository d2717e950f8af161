"""A harness for functions with two inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from firesteel.datastream.state import MapStateDescriptor
from firesteel.errors import ProgramError, short_repr
from firesteel.testing.harness import Harness
from firesteel.testing.job_of_function import Options, plan
from firesteel.testing.snapshot import Snapshot
from firesteel.testing.steps import Record

__all__ = ["TwoInputHarness"]

_METHODS: dict[type, str] = {
    CoMapFunction: "map",
    CoFlatMapFunction: "flat_map",
    CoProcessFunction: "process",
    KeyedCoProcessFunction: "process",
    BroadcastProcessFunction: "process",
    KeyedBroadcastProcessFunction: "process",
}
"""How connected streams apply each kind of function."""

Selector = Callable[[Any], Any] | KeySelector


class TwoInputHarness(Harness):
    """Runs one function of connected streams on elements of both, without Spark.

    >>> from firesteel.datastream import CoMapFunction
    >>> class Label(CoMapFunction):
    ...     def map1(self, value):
    ...         return "word", value
    ...     def map2(self, value):
    ...         return "number", value
    >>> with TwoInputHarness(Label()) as harness:
    ...     harness.process_element1("a")
    ...     harness.process_element2(1)
    ...     harness.output
    [('word', 'a'), ('number', 1)]

    With broadcast functions the second input is the broadcast one:

    >>> from firesteel.common import Types
    >>> from firesteel.datastream import BroadcastProcessFunction
    >>> RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    >>> class Limit(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value <= ctx.get_broadcast_state(RULES).get("limit"):
    ...             yield value
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(RULES).put("limit", value)
    >>> with TwoInputHarness(Limit(), broadcast_states=[RULES]) as harness:
    ...     harness.process_broadcast_element(5)
    ...     harness.process_elements1([4, 5, 6])
    ...     harness.output, harness.broadcast_state(RULES)
    ([4, 5], {'limit': 5})
    """

    def __init__(
        self,
        function: Any,
        key_selector1: Selector | None = None,
        key_selector2: Selector | None = None,
        key_type: TypeInformation | None = None,
        *,
        broadcast_states: Sequence[MapStateDescriptor] = (),
        output_type: TypeInformation | None = None,
        backend: str = "hashmap",
        parallelism: int = 1,
        subtask: int = 0,
        mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING,
        config: Mapping[str, str] | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        """``function`` is a co-map, co-flat-map or co-process function, or a broadcast function: the latter with the
        descriptors of its states, and a key selector for its first input alone."""
        method = _method_of(function)

        def keyed(stream: DataStream, selector: Selector | None) -> DataStream:
            return stream if selector is None else stream.key_by(selector, key_type)

        def build(first: DataStream, second: DataStream) -> Any:
            other: Any = keyed(second, key_selector2)
            if _broadcasts(function):
                other = other.broadcast(*_needed(broadcast_states, function))
            return getattr(keyed(first, key_selector1).connect(other), method)(function, output_type)

        options = Options(backend, parallelism, subtask, mode, config)
        made = plan(lambda env: build(env.from_collection([]), env.from_collection([])), options)
        self._set_up(made, snapshot)

    @classmethod
    def of(
        cls,
        build: Callable[[DataStream, DataStream], DataStream],
        *,
        backend: str = "hashmap",
        parallelism: int = 1,
        subtask: int = 0,
        mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING,
        config: Mapping[str, str] | None = None,
        snapshot: Snapshot | None = None,
    ) -> TwoInputHarness:
        """A harness of the one operator that ``build`` puts on two streams, for what is no function object.

        >>> from firesteel.common import Time
        >>> from firesteel.datastream import ProcessJoinFunction
        >>> class Pair(ProcessJoinFunction):
        ...     def process_element(self, left, right, ctx):
        ...         yield left, right
        >>> def join(one, two):
        ...     joined = one.key_by(len).interval_join(two.key_by(len))
        ...     return joined.between(Time.seconds(-5), Time.seconds(5)).process(Pair())
        >>> with TwoInputHarness.of(join) as harness:
        ...     harness.process_element1("one", timestamp=1)
        ...     harness.process_element2("two", timestamp=3)
        ...     harness.output
        [('one', 'two')]
        """
        options = Options(backend, parallelism, subtask, mode, config)
        harness = cls.__new__(cls)
        made = plan(lambda env: build(env.from_collection([]), env.from_collection([])), options)
        harness._set_up(made, snapshot)
        return harness

    # Input

    def process_element1(self, value: Any, timestamp: int | None = None) -> None:
        """An element of the first stream comes in."""
        self._feed(0, [Record(value, timestamp)])

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """An element of the second stream comes in."""
        self._feed(1, [Record(value, timestamp)])

    def process_elements1(self, elements: Iterable[Any]) -> None:
        """Elements of the first stream come in together: plain values, or :class:`Record`."""
        self._feed(0, elements)

    def process_elements2(self, elements: Iterable[Any]) -> None:
        """Elements of the second stream come in together: plain values, or :class:`Record`."""
        self._feed(1, elements)

    def process_broadcast_element(self, value: Any, timestamp: int | None = None) -> None:
        """An element of the broadcast stream, the second one, comes in."""
        if not _broadcasts(self.function):
            raise ProgramError(f"{type(self.function).__name__} has no broadcast input. Use process_element2().")
        self._feed(1, [Record(value, timestamp)])

    def process_watermark1(self, timestamp: int) -> None:
        """Event time of the first stream comes to this moment; the slower of both decides."""
        self._advance([0], timestamp)

    def process_watermark2(self, timestamp: int) -> None:
        """Event time of the second stream comes to this moment; the slower of both decides."""
        self._advance([1], timestamp)

    # State

    def broadcast_state(self, descriptor: MapStateDescriptor) -> dict[Any, Any]:
        """A copy of a broadcast state."""
        state = self._operator.operator_state
        if state is None or not _broadcasts(self.function):
            raise ProgramError(f"{type(self.function).__name__} has no broadcast state.")
        with self._running():
            return dict(state.get_read_only_broadcast_state(descriptor).items())


def _method_of(function: Any) -> str:
    for kind, method in _METHODS.items():
        if isinstance(function, kind):
            return method
    if isinstance(function, type):
        raise ProgramError(f"A harness takes a function object. Pass an instance: {function.__name__}().")
    kinds = ", ".join(kind.__name__ for kind in _METHODS)
    raise ProgramError(f"TwoInputHarness takes an instance of one of {kinds}, got {short_repr(function, 60)}.")


def _broadcasts(function: Any) -> bool:
    return isinstance(function, BroadcastProcessFunction | KeyedBroadcastProcessFunction)


def _needed(descriptors: Sequence[MapStateDescriptor], function: Any) -> Sequence[MapStateDescriptor]:
    if not descriptors:
        raise ProgramError(f"{type(function).__name__} needs broadcast_states: the descriptors for broadcast().")
    return descriptors
