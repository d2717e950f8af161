"""Broadcast streams: every record to every subtask, into maps that all subtasks hold alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.connected_streams import two_input_stream
from firesteel.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from firesteel.datastream.state import MapStateDescriptor
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.specs import BroadcastProcessSpec, KeyedBroadcastProcessSpec

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream

__all__ = ["BroadcastConnectedStream", "BroadcastStream"]


class BroadcastStream:
    """A stream on its way to every subtask, with the states its records are kept in.

    >>> from firesteel.common import Types
    >>> from firesteel.datastream import StreamExecutionEnvironment
    >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> broadcast = env.from_collection([("limit", 3)]).broadcast(rules)
    >>> connected = env.from_collection(["a"]).connect(broadcast)
    """

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: list[MapStateDescriptor]) -> None:
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise ProgramError(
                    f"broadcast() takes MapStateDescriptors, got {type(descriptor).__name__} "
                    f"{short_repr(descriptor, 80)}."
                )
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


class BroadcastConnectedStream:
    """A stream, keyed or not, connected with a broadcast one."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: list[MapStateDescriptor],
    ) -> None:
        if non_broadcast_stream._env is not broadcast_stream.input_stream._env:
            raise ProgramError("Streams of different environments cannot be connected.")
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Applies a function that reads the broadcast states with each record, and changes them with broadcast ones."""
        keyed = self.non_broadcast_stream._is_keyed
        wanted = KeyedBroadcastProcessFunction if keyed else BroadcastProcessFunction
        if not isinstance(func, wanted):
            stream = "a keyed stream" if keyed else "a stream without keys"
            raise ProgramError(
                f"process() of {stream} connected with a broadcast one takes an instance of {wanted.__name__}, got "
                f"{type(func).__name__} {short_repr(func, 80)}."
            )
        spec = KeyedBroadcastProcessSpec if keyed else BroadcastProcessSpec
        return two_input_stream(
            self.non_broadcast_stream,
            self.broadcast_stream.input_stream,
            "Keyed Broadcast Process" if keyed else "Broadcast Process",
            spec(func, tuple(self.broadcast_state_descriptors)),
            output_type,
        )
