"""What every user function shares: a lifecycle, and the context it is opened with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

# Descriptors refer to functions at run time, so the other direction is for the type checker alone.
if TYPE_CHECKING:
    from firesteel.datastream.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )
    from firesteel.metrics import MetricGroup

__all__ = ["DistributedCache", "Function", "KeyedStateStore", "RuntimeContext"]


class DistributedCache(ABC):
    """The files that a job brings for its functions, as this process has them."""

    @abstractmethod
    def get_file(self, name: str) -> str:
        """The path of a file (or folder) that was registered with ``register_cached_file``, or of the folder that an
        archive was unpacked to by ``add_python_archive``."""


class KeyedStateStore(ABC):
    """Hands out state that always shows the value of the key being processed.

    Only functions on a keyed stream may ask; ask in ``open`` and keep the handle.
    """

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """State of one value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """State of a list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """State of a map per key, read and written entry by entry."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """State that folds each added value into one with a reduce function."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """State that folds each added value into an accumulator and reads as its result."""


class RuntimeContext(KeyedStateStore):
    """Where a function runs: its task, its subtask, its metrics and its keyed state."""

    @abstractmethod
    def get_task_name(self) -> str:
        """The name of the operator this function belongs to."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """How many subtasks the operator has."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """How many subtasks it could ever be rescaled to: the number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """The number of this subtask, from 0 to parallelism - 1."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """How often this subtask has been restarted; 0 at first."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """The task's name with its one-based subtask, as in ``Map (3/6)``."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str | None = None) -> str | None:
        """A global job parameter as text, or the default."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """The group to register this function's metrics in."""

    def get_distributed_cache(self) -> DistributedCache:
        """The files that the job brings."""
        raise NotImplementedError(type(self).__name__)


class Function(ABC):  # noqa: B024 - its children have the abstract methods
    """The root of all user functions.

    An instance is pickled when the job is built, unpickled once per subtask, opened before the first element
    and closed after the last. Things that cannot be pickled (connections, models) belong in ``open``.
    """

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027 - optional to override
        """Called once per subtask before the first element."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once per subtask after the last element, also after a failure."""
