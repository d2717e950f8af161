"""What an operator does, as frozen data. Each spec has one handler in :mod:`firesteel.runtime.operators`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.source import SourceReader, SplitEnumerator

if TYPE_CHECKING:
    from firesteel.datastream.operators import StreamOperator
    from firesteel.datastream.output_tag import OutputTag
    from firesteel.datastream.state import MapStateDescriptor
    from firesteel.durable.state_tables import OperatorTables

__all__ = [
    "AsyncWaitSpec",
    "BroadcastProcessSpec",
    "CoFlatMapSpec",
    "CoMapSpec",
    "CoProcessSpec",
    "CollectSpec",
    "FilterSpec",
    "FlatMapSpec",
    "IntervalJoinSpec",
    "KeyedBroadcastProcessSpec",
    "KeyedCoProcessSpec",
    "KeyedProcessSpec",
    "MapSpec",
    "OperatorSpec",
    "PrintSpec",
    "ProcessSpec",
    "ReduceSpec",
    "SinkFunctionSpec",
    "SinkSpec",
    "SourceSpec",
    "TimestampsSpec",
    "TransformSpec",
    "UnionSpec",
    "WindowSpec",
]


@dataclass(frozen=True)
class OperatorSpec:
    """The root of all specs."""

    @property
    def kind(self) -> str:
        """What generated operator ids are made from."""
        return type(self).__name__

    @property
    def stateful(self) -> bool:
        """Whether the operator keeps keyed state and so must stand behind an exchange by key."""
        return False

    @property
    def checkpointed(self) -> bool:
        """Whether the operator keeps state that belongs to no key."""
        return hasattr(getattr(self, "function", None), "snapshot_state")

    @property
    def needs_store(self) -> bool:
        """Whether anything must be kept between batches. A task that reads a source has nowhere to keep it."""
        return self.stateful or self.checkpointed

    def comes_first(self, ordinal: int) -> bool:
        """Whether a batch's records for this input come before those for others."""
        return False

    @property
    def is_sink(self) -> bool:
        return False


class _StatefulSpec(OperatorSpec):
    """An operator that always keeps keyed state."""

    @property
    def stateful(self) -> bool:
        return True


class _EndSpec(OperatorSpec):
    """An operator that a stream ends with."""

    @property
    def is_sink(self) -> bool:
        return True


@dataclass(frozen=True)
class _FunctionSpec(OperatorSpec):
    """A function that may keep state where its stream is keyed."""

    function: Any
    keyed: bool = False

    @property
    def stateful(self) -> bool:
        return self.keyed


@dataclass(frozen=True)
class SourceSpec(OperatorSpec):
    """Reads from outside."""

    enumerator: SplitEnumerator[Any] | None
    """Plans what each batch reads. Tasks do not have it: it may hold all the elements of a collection."""
    reader: SourceReader[Any, Any]
    strategy: WatermarkStrategy | None = None
    """How event time is made, per split of the source; None leaves it to the source itself."""
    interval: int = 0
    """As in :class:`TimestampsSpec`."""


@dataclass(frozen=True)
class MapSpec(_FunctionSpec):
    """A MapFunction."""


@dataclass(frozen=True)
class FlatMapSpec(_FunctionSpec):
    """A FlatMapFunction."""


@dataclass(frozen=True)
class FilterSpec(_FunctionSpec):
    """A FilterFunction."""


@dataclass(frozen=True)
class ProcessSpec(OperatorSpec):
    """A ProcessFunction on a stream without keys."""

    function: Any


@dataclass(frozen=True)
class AsyncWaitSpec(OperatorSpec):
    """An AsyncFunction: requests that overlap. It keeps no keyed state, on keyed streams neither."""

    function: Any
    timeout: int
    """Milliseconds for all attempts of an element; 0 or less: no limit."""
    capacity: int
    """How many elements may be under way at once, those counted that wait for their turn to go out."""
    ordered: bool
    retry: Any
    """An :class:`~firesteel.datastream.functions.AsyncRetryStrategy`."""


@dataclass(frozen=True)
class KeyedProcessSpec(_StatefulSpec):
    """A KeyedProcessFunction."""

    function: Any


@dataclass(frozen=True)
class BroadcastProcessSpec(OperatorSpec):
    """A BroadcastProcessFunction: a stream without keys, and a broadcast one that changes the states."""

    function: Any
    descriptors: tuple[MapStateDescriptor, ...]

    @property
    def checkpointed(self) -> bool:
        return True

    def comes_first(self, ordinal: int) -> bool:
        return ordinal == 1


@dataclass(frozen=True)
class KeyedBroadcastProcessSpec(BroadcastProcessSpec):
    """A KeyedBroadcastProcessFunction: the first stream is keyed."""

    @property
    def stateful(self) -> bool:
        return True


@dataclass(frozen=True)
class ReduceSpec(_StatefulSpec):
    """A running fold per key: every record gives an update; in BATCH mode only the last one goes out."""

    function: Any


@dataclass(frozen=True)
class CoMapSpec(_FunctionSpec):
    """A CoMapFunction over two inputs, which are both keyed, or neither is."""


@dataclass(frozen=True)
class CoFlatMapSpec(_FunctionSpec):
    """A CoFlatMapFunction over two inputs, which are both keyed, or neither is."""


@dataclass(frozen=True)
class CoProcessSpec(OperatorSpec):
    """A CoProcessFunction over two inputs without keys."""

    function: Any


@dataclass(frozen=True)
class KeyedCoProcessSpec(_StatefulSpec):
    """A KeyedCoProcessFunction (or a CoProcessFunction, which sets no timers) over two keyed inputs."""

    function: Any


@dataclass(frozen=True)
class WindowSpec(_StatefulSpec):
    """Windows on a keyed stream (``window_all`` is one on a single key)."""

    assigner: Any
    trigger: Any
    fold: Any = None
    """A ReduceFunction or AggregateFunction that keeps one value a window; None keeps the elements."""
    function: Any = None
    """A WindowFunction, ProcessWindowFunction or one for all windows; None emits what was folded."""
    evictor: Any = None
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    """Where records go that come too late; without it they are counted and dropped."""


@dataclass(frozen=True)
class IntervalJoinSpec(_StatefulSpec):
    """Pairs of records of two keyed inputs whose times differ by no less than ``lower`` and no more than ``upper``."""

    function: Any
    lower: int
    upper: int
    """Both in milliseconds from the left record to the right one, and inclusive."""
    left_late_tag: OutputTag | None = None
    right_late_tag: OutputTag | None = None


@dataclass(frozen=True)
class TransformSpec(OperatorSpec):
    """What a library or a program brings as an operator of its own (see :mod:`firesteel.datastream.operators`)."""

    spec: Any
    operator: type[StreamOperator[Any]]
    keyed: bool = False
    """Whether an input is keyed."""
    broadcast: frozenset[int] = frozenset()
    """The inputs of which every subtask gets every record."""
    tables: OperatorTables | None = None
    """How its state is shown to those who read savepoints."""

    @property
    def kind(self) -> str:
        return f"{type(self).__name__}:{type(self.spec).__name__}"

    @property
    def stateful(self) -> bool:
        return self.keyed

    @property
    def checkpointed(self) -> bool:
        return hasattr(self.operator, "snapshot_state")

    @property
    def needs_store(self) -> bool:
        # Only where there is a store are the watermarks of several channels combined into one.
        return super().needs_store or self.operator.sees_watermarks

    def comes_first(self, ordinal: int) -> bool:
        return ordinal in self.broadcast


@dataclass(frozen=True)
class TimestampsSpec(OperatorSpec):
    """Assigns timestamps and watermarks."""

    strategy: WatermarkStrategy
    interval: int
    """The automatic watermark interval in milliseconds; 1 asks for a watermark after every record."""


@dataclass(frozen=True)
class UnionSpec(OperatorSpec):
    """Several streams as one."""


@dataclass(frozen=True)
class PrintSpec(_EndSpec):
    identifier: str | None = None
    to_stderr: bool = False


@dataclass(frozen=True)
class CollectSpec(_EndSpec):
    """Sends every record to the driver, for ``execute_and_collect``."""

    channel: str


@dataclass(frozen=True)
class SinkFunctionSpec(_EndSpec):
    """A :class:`~firesteel.datastream.functions.SinkFunction` at the end of a stream."""

    function: Any


@dataclass(frozen=True)
class SinkSpec(_EndSpec):
    """A :class:`~firesteel.datastream.connectors.base.Sink`: writers in the tasks, a committer in the driver."""

    sink: Any
