"""What user functions are handed: the runtime context, timer service and the contexts of process functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firesteel.datastream.functions import (
    CoProcessFunction,
    DistributedCache,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStateStore,
    ProcessFunction,
    RuntimeContext,
    SinkFunction,
)
from firesteel.datastream.state import OperatorStateStore
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.stream_graph import StreamNode
from firesteel.metrics import MetricGroup
from firesteel.runtime.clock import Clock
from firesteel.runtime.state.backend import KeyedStateBackend
from firesteel.runtime.state.getters import StateGetters
from firesteel.runtime.state.operator import OperatorState
from firesteel.runtime.state.tables import ColumnTable
from firesteel.runtime.timers import TimerQueue
from firesteel.runtime.watermarks import MIN_TIMESTAMP

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = [
    "ElementContext",
    "InitializationContext",
    "KeyedTimerService",
    "NoFiles",
    "OperatorContext",
    "SinkContext",
    "SnapshotContext",
    "TimerlessService",
    "UnkeyedTimerService",
]


@dataclass(frozen=True)
class NoFiles(DistributedCache):
    """The cache of a job that brings none."""

    def get_file(self, name: str) -> str:
        raise ProgramError(f"There is no cached file {name!r}. Bring it with register_cached_file(), before execute().")


@dataclass
class OperatorContext(StateGetters, RuntimeContext):
    """The runtime context of one operator in one subtask."""

    node: StreamNode
    subtask: int
    attempt: int
    job_parameters: dict[str, str]
    keyed: KeyedStateBackend | None
    metrics: MetricGroup = field(default_factory=MetricGroup)
    files: DistributedCache = field(default_factory=NoFiles)

    def get_task_name(self) -> str:
        return self.node.name

    def get_number_of_parallel_subtasks(self) -> int:
        return self.node.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self.node.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self.subtask

    def get_attempt_number(self) -> int:
        return self.attempt

    def get_task_name_with_subtasks(self) -> str:
        return f"{self.node.name} ({self.subtask + 1}/{self.node.parallelism})"

    def get_job_parameter(self, key: str, default_value: str | None = None) -> str | None:
        return self.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        return self.metrics

    def get_distributed_cache(self) -> DistributedCache:
        return self.files

    def keep_columns(self, name: str, table: ColumnTable, paged: bool = False) -> None:
        """Makes a table of columns part of the operator's keyed state, for operators that work on batches of rows.
        ``paged``: not all of it need be in memory, because the operator asks for :meth:`pieces` of what it gets."""
        self._backend().columns(name, table, paged)

    def pieces(
        self, batch: RecordBatch, keys: Sequence[int], before_release: Callable[[], None] | None = None
    ) -> Iterable[RecordBatch]:
        """The rows of a batch, keyed by some of its columns, as many at a time as memory has room for what tables have
        of them. ``before_release`` is called before slots of tables become others."""
        return self._backend().pieces(batch, [batch.column(key) for key in keys], before_release)

    def _backend(self) -> KeyedStateBackend:
        if self.keyed is None:
            raise ProgramError(
                f"Operator {self.node.name!r} asks for keyed state, but its stream has no keys. Call key_by() first."
            )
        return self.keyed


class UnkeyedTimerService(TimerService):
    """Time without timers, for process functions on a stream without keys."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def current_processing_time(self) -> int:
        return self._clock.processing_time

    def current_watermark(self) -> int:
        return self._clock.watermark

    def _refuse(self) -> ProgramError:
        return ProgramError(
            "Timers belong to a key: setting or deleting one needs a keyed stream. Call key_by() first."
        )

    def register_processing_time_timer(self, timestamp: int) -> None:
        raise self._refuse()

    def register_event_time_timer(self, timestamp: int) -> None:
        raise self._refuse()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        raise self._refuse()

    def delete_event_time_timer(self, timestamp: int) -> None:
        raise self._refuse()


class TimerlessService(UnkeyedTimerService):
    """Time without timers, for a function on keyed streams that has no ``on_timer``."""

    def _refuse(self) -> ProgramError:
        return ProgramError(
            "A CoProcessFunction has no on_timer(), so a timer could never fire. Subclass KeyedCoProcessFunction."
        )


class KeyedTimerService(TimerService):
    """Timers under the current key."""

    def __init__(self, clock: Clock, backend: KeyedStateBackend) -> None:
        self._clock = clock
        self._backend = backend
        self.event: TimerQueue
        self.processing: TimerQueue
        self.quiet = False
        """Whether new timers are ignored: at the end of a key in BATCH mode, or timers could go on for ever."""

    def current_processing_time(self) -> int:
        return self._clock.processing_time

    def current_watermark(self) -> int:
        return self._clock.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        if not self.quiet:
            self.processing.register(_whole(timestamp), self._backend.key)

    def register_event_time_timer(self, timestamp: int) -> None:
        if not self.quiet:
            self.event.register(_whole(timestamp), self._backend.key)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self.processing.delete(_whole(timestamp), self._backend.key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self.event.delete(_whole(timestamp), self._backend.key)


def _whole(timestamp: Any) -> int:
    if timestamp.__class__ is int:
        whole: int = timestamp
        return whole
    try:
        return operator.index(timestamp)
    except TypeError:
        kind = type(timestamp).__name__
        raise ProgramError(f"A timer takes an int (milliseconds), got {kind} {short_repr(timestamp, 40)}.") from None


class ElementContext(
    ProcessFunction.Context,
    KeyedProcessFunction.OnTimerContext,
    CoProcessFunction.Context,
    KeyedCoProcessFunction.OnTimerContext,
):
    """The one context object of a process operator; it shows whatever is being processed now."""

    def __init__(self, clock: Clock, timers: TimerService, backend: KeyedStateBackend | None) -> None:
        self._clock = clock
        self._timers = timers
        self._backend = backend
        self.domain = TimeDomain.EVENT_TIME

    def timer_service(self) -> TimerService:
        return self._timers

    def timestamp(self) -> int:
        return self._clock.timestamp

    def get_current_key(self) -> Any:
        return self._backend.key if self._backend is not None else None

    def time_domain(self) -> TimeDomain:
        return self.domain


class InitializationContext(FunctionInitializationContext):
    """What a function may ask when it is initialised."""

    def __init__(self, state: OperatorState, context: OperatorContext) -> None:
        self._state = state
        self._context = context

    def is_restored(self) -> bool:
        return self._state.restored

    def get_operator_state_store(self) -> OperatorStateStore:
        return self._state

    def get_keyed_state_store(self) -> KeyedStateStore:
        return self._context

    def get_raw_operator_states(self) -> list[bytes]:
        return self._state.raw_states()


class SnapshotContext(FunctionSnapshotContext):
    """What a function may ask at a checkpoint."""

    def __init__(self, state: OperatorState, clock: Clock) -> None:
        self._state = state
        self._clock = clock

    def get_checkpoint_timestamp(self) -> int:
        return self._clock.processing_time

    def set_raw_operator_state(self, data: bytes) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ProgramError(f"Raw operator state is bytes, got {type(data).__name__} {short_repr(data, 40)}.")
        self._state.raw = bytes(data)


class SinkContext(SinkFunction.Context):
    """What a sink function may ask."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def current_processing_time(self) -> int:
        return self._clock.processing_time

    def current_watermark(self) -> int:
        return self._clock.watermark

    def timestamp(self) -> int | None:
        return None if self._clock.timestamp == MIN_TIMESTAMP else self._clock.timestamp
