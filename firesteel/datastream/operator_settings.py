"""What streams and sinks share: names, ids, parallelism and other settings of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.datastream.slot_sharing_group import SlotSharingGroup
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.transformations import Chaining, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["DataStreamSink", "OperatorSettings"]

S = TypeVar("S", bound="OperatorSettings")


class OperatorSettings:
    """What streams and sinks share: a transformation that later calls may still change."""

    def __init__(self, env: StreamExecutionEnvironment, node: Transformation) -> None:
        self._env = env
        self._id = node.id

    @property
    def transformation(self) -> Transformation:
        """What the operator is in the program so far: its spec, name, uid, parallelism, inputs."""
        return self._env.program.get(self._id)

    def _change(self: S, **fields: Any) -> S:
        self._env.program.change(self._id, **fields)
        return self

    def name(self: S, name: str) -> S:
        """Names the operator, for plans, logs and errors."""
        return self._change(name=name)

    def uid(self: S, uid: str) -> S:
        """Gives the operator an id that stays when the program changes, so that its state is found again."""
        if not isinstance(uid, str) or not uid or "\0" in uid or "\1" in uid:
            # The two characters separate names from each other in the store.
            raise ProgramError(
                f"A uid must be a non-empty string without the characters 0 and 1, got {short_repr(uid, 60)}."
            )
        return self._change(uid=uid)

    def set_uid_hash(self: S, uid_hash: str) -> S:
        """Gives the operator the id that an earlier version of the program generated."""
        return self._change(uid=uid_hash)

    def set_parallelism(self: S, parallelism: int) -> S:
        """Sets how many subtasks the operator has."""
        if not isinstance(parallelism, int) or parallelism < 1:
            raise ProgramError(f"Parallelism must be an int of at least 1, got {short_repr(parallelism, 40)}.")
        return self._change(parallelism=parallelism)

    def set_description(self: S, description: str) -> S:
        """Describes the operator in the plan."""
        return self._change(description=description)

    def disable_chaining(self: S) -> S:
        """Shows the operator as a task of its own."""
        return self._change(chaining=Chaining.NEVER)

    def slot_sharing_group(self: S, slot_sharing_group: str | SlotSharingGroup) -> S:
        """Puts the operator into a slot sharing group."""
        if isinstance(slot_sharing_group, SlotSharingGroup):
            slot_sharing_group = slot_sharing_group.get_name()
        return self._change(slot_sharing_group=slot_sharing_group)


class DataStreamSink(OperatorSettings):
    """The end of a stream."""
