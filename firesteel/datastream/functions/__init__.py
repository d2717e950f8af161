"""The contracts that users subclass, and the adapters that let a plain callable stand in for one.

PyFlink keeps these in a single module; here each family has a file of its own and the names meet again in
this package, so ``from firesteel.datastream.functions import MapFunction`` works as before.
"""

from firesteel.datastream.functions.async_io import AsyncFunction, AsyncFunctionDescriptor
from firesteel.datastream.functions.async_retry import (
    NO_RETRY_STRATEGY,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
)
from firesteel.datastream.functions.base import DistributedCache, Function, KeyedStateStore, RuntimeContext
from firesteel.datastream.functions.basic import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    NullByteKeySelector,
    Partitioner,
    ReduceFunction,
)
from firesteel.datastream.functions.broadcast import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from firesteel.datastream.functions.checkpointed import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from firesteel.datastream.functions.join import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from firesteel.datastream.functions.process import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from firesteel.datastream.functions.sink import SinkFunction
from firesteel.datastream.functions.two_phase import TwoPhaseCommitSinkFunction
from firesteel.datastream.functions.window import (
    AllWindowFunction,
    PassThroughAllWindowFunction,
    PassThroughWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from firesteel.datastream.functions.wrappers import (
    CoGroupFunctionWrapper,
    FilterFunctionWrapper,
    FlatMapFunctionWrapper,
    FunctionWrapper,
    JoinFunctionWrapper,
    KeySelectorWrapper,
    MapFunctionWrapper,
    PartitionerWrapper,
    ReduceFunctionWrapper,
    as_co_group,
    as_filter,
    as_flat_map,
    as_join,
    as_key_selector,
    as_map,
    as_partitioner,
    as_reduce,
)
from firesteel.datastream.functions.write_ahead import (
    CheckpointCommitter,
    FileCheckpointCommitter,
    GenericWriteAheadSink,
)
from firesteel.datastream.timerservice import TimerService

__all__ = [
    "NO_RETRY_STRATEGY",
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointCommitter",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoGroupFunctionWrapper",
    "CoMapFunction",
    "CoProcessFunction",
    "DistributedCache",
    "FileCheckpointCommitter",
    "FilterFunction",
    "FilterFunctionWrapper",
    "FlatJoinFunction",
    "FlatMapFunction",
    "FlatMapFunctionWrapper",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "FunctionWrapper",
    "GenericWriteAheadSink",
    "JoinFunction",
    "JoinFunctionWrapper",
    "KeySelector",
    "KeySelectorWrapper",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "MapFunction",
    "MapFunctionWrapper",
    "NullByteKeySelector",
    "Partitioner",
    "PartitionerWrapper",
    "PassThroughAllWindowFunction",
    "PassThroughWindowFunction",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "ReduceFunctionWrapper",
    "RuntimeContext",
    "SinkFunction",
    "TimerService",
    "TwoPhaseCommitSinkFunction",
    "WindowFunction",
    "as_co_group",
    "as_filter",
    "as_flat_map",
    "as_join",
    "as_key_selector",
    "as_map",
    "as_partitioner",
    "as_reduce",
]
