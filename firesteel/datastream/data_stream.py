"""The fluent builder: every call writes one transformation, with the user's file and line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, overload

from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.accumulate import accumulate
from firesteel.datastream.broadcast_streams import BroadcastConnectedStream, BroadcastStream
from firesteel.datastream.closeable_iterator import CloseableIterator
from firesteel.datastream.connected_streams import ConnectedStreams
from firesteel.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    FunctionWrapper,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    as_filter,
    as_flat_map,
    as_key_selector,
    as_map,
    as_partitioner,
    as_reduce,
)
from firesteel.datastream.joined_streams import CoGroupedStreams, IntervalJoin, JoinedStreams
from firesteel.datastream.operator_settings import DataStreamSink
from firesteel.datastream.operators import operator_of
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.state import MapStateDescriptor
from firesteel.datastream.stream_ends import StreamEnds
from firesteel.datastream.window import CountSlidingWindowAssigner, CountTumblingWindowAssigner, WindowAssigner
from firesteel.datastream.windowed_stream import AllWindowedStream, WindowedStream
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.specs import (
    FilterSpec,
    FlatMapSpec,
    KeyedProcessSpec,
    MapSpec,
    OperatorSpec,
    ProcessSpec,
    ReduceSpec,
    TimestampsSpec,
    TransformSpec,
    UnionSpec,
)
from firesteel.graph.transformations import Chaining, Edge, Partitioning, Ship, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
    from firesteel.durable.state_tables import OperatorTables

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CloseableIterator",
    "CoGroupedStreams",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "IntervalJoin",
    "JoinedStreams",
    "KeyedStream",
    "WindowedStream",
]


class DataStream(StreamEnds):
    """A stream of records.

    >>> from firesteel.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.from_collection([1, 2]).map(lambda n: n + 1).get_name()
    'Map'
    """

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        node: Transformation,
        partitioning: Partitioning | None = None,
        tag: OutputTag | None = None,
    ) -> None:
        super().__init__(env, node, partitioning or Partitioning(), tag)
        self._key_type: TypeInformation | None = None

    # Facts

    def get_name(self) -> str:
        """The operator's name."""
        return self.transformation.name

    def get_type(self) -> TypeInformation:
        """The type of the records; pickled objects where none was declared."""
        return self._type or Types.PICKLED_BYTE_ARRAY()

    @property
    def _is_keyed(self) -> bool:
        return self._partitioning.ship is Ship.HASH

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment this stream belongs to."""
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        """The environment's execution configuration."""
        return self._env.get_config()

    # Settings of the operator before

    def set_max_parallelism(self, max_parallelism: int) -> DataStream:
        """Sets the number of key groups: how far the operator can ever be scaled."""
        if not isinstance(max_parallelism, int) or not 1 <= max_parallelism <= 32768:
            raise ProgramError(f"Maximum parallelism must be from 1 to 32768, got {max_parallelism!r}.")
        return self._change(max_parallelism=max_parallelism)

    def force_non_parallel(self) -> DataStream:
        """Gives the operator exactly one subtask."""
        return self._change(parallelism=1, parallel=False)

    def set_buffer_timeout(self, timeout_millis: int) -> DataStream:
        """Accepted for compatibility: a micro-batch is one for all operators, so the environment's timeout counts."""
        return self

    def start_new_chain(self) -> DataStream:
        """Shows the operator as the first of a new chain."""
        return self._change(chaining=Chaining.HEAD)

    # Transformations

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record out for each one in."""
        function = as_map(func)
        return self._add("Map", MapSpec(function, self._keyed(function)), output_type)

    def flat_map(
        self, func: Callable[[Any], Any] | FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of records out for each one in."""
        function = as_flat_map(func)
        return self._add("Flat Map", FlatMapSpec(function, self._keyed(function)), output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Keeps the records for which the function is true."""
        function = as_filter(func)
        return self._add("Filter", FilterSpec(function, self._keyed(function)), self._type)

    def _keyed(self, function: Function) -> bool:
        """Whether the function may use keyed state: a plain callable has no way to ask for it."""
        return False

    def key_by(
        self, key_selector: Callable[[Any], Any] | KeySelector, key_type: TypeInformation | None = None
    ) -> KeyedStream:
        """Partitions by key: records of one key meet in one subtask, and share state."""
        return KeyedStream(self._env, self.transformation, as_key_selector(key_selector), key_type, self._tag)

    def process(
        self, func: ProcessFunction | KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Applies a process function, which sees time and may yield to side outputs."""
        if isinstance(func, KeyedProcessFunction):
            raise ProgramError("A KeyedProcessFunction needs a keyed stream. Call key_by() before process().")
        if not isinstance(func, ProcessFunction):
            raise ProgramError(f"process() takes an instance of ProcessFunction, got {short_repr(func, 80)}.")
        return self._add("Process", ProcessSpec(func), output_type)

    def transform(self, name: str, spec: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Applies an operator of a library, or of your own: the one that is registered for the spec's class.

        :mod:`firesteel.datastream.operators` has the contract. On a keyed stream it has keyed state and timers.
        """
        return self._add(name, TransformSpec(spec, operator_of(spec), self._is_keyed), output_type)

    def show_state_as(self, tables: OperatorTables) -> DataStream:
        """Says which tables the state of an operator of :meth:`transform` is in a savepoint (``firesteel state``)."""
        spec = self.transformation.spec
        if not isinstance(spec, TransformSpec):
            raise ProgramError(f"show_state_as() is for operators of transform(); {self.get_name()!r} is none.")
        return self._change(spec=replace(spec, tables=tables))

    def project(self, *field_indexes: int) -> DataStream:
        """Keeps some fields of typed tuples or rows."""
        declared = self._type
        if declared is None or not hasattr(declared, "get_field_types"):
            raise ProgramError(
                f"project() needs a stream of a declared TUPLE or ROW type; this one is {self.get_type()}."
            )
        fields = declared.get_field_types()
        for index in field_indexes:
            if not isinstance(index, int) or not 0 <= index < len(fields):
                raise ProgramError(f"project({index!r}): the records have fields 0 to {len(fields) - 1}.")
        if not field_indexes:
            raise ProgramError("project() needs at least one field index.")
        pick = itemgetter(*field_indexes)

        def keep(record: Any) -> Any:
            chosen = pick(record)
            return chosen if len(field_indexes) > 1 else (chosen,)

        chosen_type = Types.TUPLE([fields[index] for index in field_indexes])
        return self._add("Projection", MapSpec(as_map(keep)), chosen_type)

    def union(self, *streams: DataStream) -> DataStream:
        """Merges streams of one type."""
        every = [self, *streams]
        for stream in every:
            if stream._env is not self._env:
                raise ProgramError("Streams of different environments cannot be joined in a union.")
            if stream.get_type() != self.get_type():
                raise ProgramError(
                    f"A union needs streams of one type, got {self.get_type()} and {stream.get_type()}. "
                    "Map one of them to the other's type first."
                )
        return self._add("Union", UnionSpec(), self._type, [stream._edge() for stream in every])

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Connects two streams, possibly of different types, so that one function sees both."""
        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        if not isinstance(ds, DataStream):
            raise ProgramError(f"connect() takes another DataStream, got {type(ds).__name__} {short_repr(ds, 80)}.")
        return ConnectedStreams(self, ds)

    def join(self, other: DataStream) -> JoinedStreams:
        """Pairs of elements of two streams that have the same key and are in the same window."""
        return JoinedStreams(self, self._other("join", other))

    def co_group(self, other: DataStream) -> CoGroupedStreams:
        """Groups of elements of two streams that have the same key and are in the same window."""
        return CoGroupedStreams(self, self._other("co_group", other))

    @staticmethod
    def _other(method: str, other: Any) -> DataStream:
        if not isinstance(other, DataStream):
            raise ProgramError(f"{method}() takes another DataStream, got {short_repr(other, 80)}.")
        return other

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Cuts the stream into windows over all keys, which one subtask sees."""
        return AllWindowedStream(self, window_assigner)

    # Partitioning

    def rebalance(self) -> DataStream:
        """Record by record to the next subtask in turn."""
        return self._partitioned(Ship.REBALANCE)

    def rescale(self) -> DataStream:
        """In turn among a share of the subtasks, so that less is sent across."""
        return self._partitioned(Ship.RESCALE)

    def shuffle(self) -> DataStream:
        """To a random subtask; a replayed batch goes the same ways."""
        return self._partitioned(Ship.SHUFFLE)

    def forward(self) -> DataStream:
        """To the subtask of the same number."""
        return self._partitioned(Ship.FORWARD)

    def global_(self) -> DataStream:
        """All to the first subtask."""
        return self._partitioned(Ship.GLOBAL)

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self, broadcast_state_descriptor: MapStateDescriptor, *other_broadcast_state_descriptors: MapStateDescriptor
    ) -> BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream:
        """Every record to every subtask; with descriptors, to be kept in broadcast states there."""
        everywhere = self._partitioned(Ship.BROADCAST)
        if broadcast_state_descriptor is None:
            return everywhere
        return BroadcastStream(everywhere, [broadcast_state_descriptor, *other_broadcast_state_descriptors])

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector,
    ) -> DataStream:
        """To the subtask that a function of the key and the number of subtasks names."""
        chosen = Partitioning(Ship.CUSTOM, as_key_selector(key_selector), as_partitioner(partitioner), True)
        return DataStream(self._env, self.transformation, chosen, self._tag)

    def _partitioned(self, ship: Ship) -> DataStream:
        return DataStream(self._env, self.transformation, Partitioning(ship, explicit=True), self._tag)

    # Time

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Gives records their event time, and the stream its watermarks."""
        interval = self._env.get_config().get_auto_watermark_interval()
        spec = TimestampsSpec(watermark_strategy, interval)
        return self._add("Timestamps/Watermarks", spec, self._type)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """The stream of what a process function yields with this tag."""
        if not isinstance(output_tag, OutputTag):
            raise ProgramError(
                "get_side_output() takes the OutputTag that the function yields with, got "
                f"{short_repr(output_tag, 60)}. Write get_side_output(OutputTag('name', type)), with the name and type "
                "of that tag."
            )
        return DataStream(self._env, self.transformation, tag=output_tag)

    # Building

    def _unkeyed(self) -> DataStream:
        """This stream without the exchange by key, for operators that need none."""
        return self

    def _add(
        self,
        name: str,
        spec: OperatorSpec,
        output_type: TypeInformation | None = None,
        inputs: list[Edge] | None = None,
    ) -> DataStream:
        return DataStream(self._env, self._append(name, spec, output_type, inputs))

    def __getattr__(self, name: str) -> Any:
        """Only for what is not there: tells apart what needs a keyed stream from what does not exist."""
        if hasattr(KeyedStream, name) and not isinstance(self, KeyedStream):
            also = ", or window_all() for windows over all records together" if name == "window" else ""
            raise AttributeError(f"{name}() needs a keyed stream. Call key_by(...) before it{also}.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class KeyedStream(DataStream):
    """A stream partitioned by key. Functions on it see the state and timers of the current record's key."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        node: Transformation,
        selector: KeySelector,
        key_type: TypeInformation | None,
        tag: OutputTag | None,
    ) -> None:
        super().__init__(env, node, Partitioning(Ship.HASH, selector, explicit=True, key_type=key_type), tag)
        self._key_type = key_type

    def _keyed(self, function: Function) -> bool:
        return not isinstance(function, FunctionWrapper)

    def process(
        self, func: ProcessFunction | KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Applies a process function with the key's state and timers."""
        if not isinstance(func, KeyedProcessFunction):
            raise ProgramError(
                "process() of a keyed stream takes an instance of KeyedProcessFunction, got "
                f"{type(func).__name__} {short_repr(func, 80)}. A ProcessFunction goes before key_by()."
            )
        return self._add("Keyed Process", KeyedProcessSpec(func), output_type)

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """A running fold per key: every record gives an update, in BATCH mode only the last one."""
        return self._add("Reduce", ReduceSpec(as_reduce(func)), self._type)

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The running sum of a field; the other fields are those of the key's first record."""
        return self.reduce(accumulate("sum", position_to_sum))

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The running minimum of a field; the other fields are those of the key's first record."""
        return self.reduce(accumulate("min", position_to_min))

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The running maximum of a field; the other fields are those of the key's first record."""
        return self.reduce(accumulate("max", position_to_max))

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The whole record with the smallest field so far; the first one where several are equal."""
        return self.reduce(accumulate("min_by", position_to_min_by))

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The whole record with the largest field so far; the first one where several are equal."""
        return self.reduce(accumulate("max_by", position_to_max_by))

    # Windows and joins

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Cuts the stream of each key into windows."""
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of so many elements of a key; with a slide, a new one every so many."""
        if slide == 0:
            return self.window(CountTumblingWindowAssigner(size))
        return self.window(CountSlidingWindowAssigner(size, slide))

    def interval_join(self, other: KeyedStream) -> IntervalJoin:
        """Pairs of elements of two keyed streams that have the same key and times not too far apart."""
        return IntervalJoin(self, other)

    def _unkeyed(self) -> DataStream:
        return DataStream(self._env, self.transformation, tag=self._tag)

    # The key decides where a record goes.

    def broadcast(self, *args: Any) -> Any:
        """Refused, as the other partitionings are."""
        return self._partitioned(Ship.BROADCAST)

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector,
    ) -> DataStream:
        """Refused, as the other partitionings are."""
        return self._partitioned(Ship.CUSTOM)

    def _partitioned(self, ship: Ship) -> DataStream:
        method = {Ship.CUSTOM: "partition_custom", Ship.GLOBAL: "global_"}.get(ship, ship.value.lower())
        raise ProgramError(
            f"{method}() would undo key_by(). Call it before key_by(), or behind an operator on the keyed stream."
        )

    # A keyed stream is a partitioned view of an operator, not an operator: these would change the wrong one.

    def _refuse(self, what: str) -> ProgramError:
        return ProgramError(f"{what} cannot be set on a keyed stream. Set it on the operator before key_by().")

    def _change(self, **fields: Any) -> Any:
        raise self._refuse(" and ".join(fields))

    def force_non_parallel(self) -> DataStream:
        raise self._refuse("parallelism")

    def cache(self) -> DataStream:
        """Refused, as in PyFlink."""
        raise ProgramError("cache() of a keyed stream is not supported: its records belong to the operator before it.")

    def set_buffer_timeout(self, timeout_millis: int) -> DataStream:
        raise self._refuse("buffer timeout")

    def get_name(self) -> str:
        raise ProgramError("A keyed stream has no name. Ask the operator before key_by().")
