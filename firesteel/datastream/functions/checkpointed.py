"""State that belongs to a function rather than to a key: saved with every checkpoint, given back after a restart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from firesteel.datastream.functions.base import KeyedStateStore

if TYPE_CHECKING:
    from firesteel.datastream.state import OperatorStateStore

__all__ = ["CheckpointedFunction", "FunctionInitializationContext", "FunctionSnapshotContext"]


class FunctionSnapshotContext(ABC):
    """What :meth:`CheckpointedFunction.snapshot_state` may ask."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When the checkpoint began, in milliseconds."""

    @abstractmethod
    def set_raw_operator_state(self, data: bytes) -> None:
        """Saves bytes as they are, for those who serialise their state themselves."""


class FunctionInitializationContext(ABC):
    """What :meth:`CheckpointedFunction.initialize_state` may ask."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether there is state from before: True after a restart, False at the first start."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Gives list, union list and broadcast state."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Gives keyed state, for a function on a keyed stream."""

    @abstractmethod
    def get_raw_operator_states(self) -> list[bytes]:
        """The bytes that were saved: one piece, or those of several former subtasks after the parallelism changed."""


class CheckpointedFunction(ABC):
    """Mixed into any function or sink that keeps something in its own fields which must survive a restart.

    >>> from firesteel.common import Types
    >>> from firesteel.datastream.functions import SinkFunction
    >>> from firesteel.datastream.state import ListStateDescriptor
    >>> class BufferingSink(SinkFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         store = context.get_operator_state_store()
    ...         self.saved = store.get_list_state(ListStateDescriptor("buffer", Types.STRING()))
    ...         self.buffer = list(self.saved.get())
    ...     def invoke(self, value, context):
    ...         self.buffer.append(value)
    ...     def snapshot_state(self, context):
    ...         self.saved.update(self.buffer)
    >>> sink = BufferingSink()
    """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called once before ``open``: asks for state, and takes back what was saved."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Called at every checkpoint, which is the end of every micro-batch: puts into state what must survive."""
