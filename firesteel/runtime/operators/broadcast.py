"""A stream joined with a broadcast one: every subtask holds the same maps, changed by the broadcast side alone.

Within a micro-batch the broadcast records come first, so that a rule holds for the data that arrives with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from firesteel.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from firesteel.datastream.state import (
    BroadcastState,
    MapStateDescriptor,
    ReadOnlyBroadcastState,
    State,
    StateDescriptor,
)
from firesteel.errors import ProgramError
from firesteel.graph.specs import BroadcastProcessSpec, KeyedBroadcastProcessSpec
from firesteel.runtime.clock import Clock
from firesteel.runtime.context import ElementContext
from firesteel.runtime.copies import may_change
from firesteel.runtime.operators.base import Operator, Placement, Port, handles
from firesteel.runtime.operators.connected import Input, TwoInputs
from firesteel.runtime.operators.keyed import KeyedProcessOperator
from firesteel.runtime.operators.stateless import ProcessCalls
from firesteel.runtime.state.backend import NO_KEY, KeyedStateBackend
from firesteel.runtime.state.operator import OperatorState

__all__ = ["BroadcastProcessOperator", "KeyedBroadcastProcessOperator"]


class _States:
    """The broadcast states of one operator, by the descriptors that broadcast() was given."""

    def __init__(self, operator: Operator) -> None:
        assert operator.operator_state is not None
        self.store: OperatorState = operator.operator_state
        self._declared = {descriptor.name: descriptor for descriptor in operator.spec.descriptors}
        self._asked: dict[str, tuple[MapStateDescriptor, ReadOnlyBroadcastState[Any, Any]]] = {}
        """For each name the descriptor that was last asked with: to compare it for every record would cost much."""

    def writable(self, descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self.store.get_broadcast_state(self._checked(descriptor))

    def read_only(self, descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        asked = self._asked.get(descriptor.name)
        if asked is not None and asked[0] is descriptor:
            return asked[1]
        found = self.store.get_read_only_broadcast_state(self._checked(descriptor))
        self._asked[descriptor.name] = (descriptor, found)
        return found

    def _checked(self, descriptor: MapStateDescriptor) -> MapStateDescriptor:
        declared = self._declared.get(descriptor.name)
        if declared != descriptor:
            names = ", ".join(map(repr, self._declared.values()))
            raise ProgramError(
                f"The broadcast state {descriptor!r} is none of those that broadcast() was called with: {names}."
            )
        return descriptor

    def touch(self) -> None:
        """Makes sure that all of them are there, used or not: a restart must find every one."""
        for descriptor in self._declared.values():
            self.store.get_broadcast_state(descriptor)

    @property
    def shared(self) -> bool:
        return any(may_change(descriptor.value_type_info) for descriptor in self._declared.values())


class _ReadOnlyContext(ElementContext):
    """What the side with the data may ask."""

    states: _States

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        return self.states.read_only(state_descriptor)

    def current_processing_time(self) -> int:
        return self._clock.processing_time

    def current_watermark(self) -> int:
        return self._clock.watermark


class _Context(KeyedBroadcastProcessFunction.Context, BroadcastProcessFunction.Context):
    """What the broadcast side may ask."""

    def __init__(self, clock: Clock, states: _States, backend: KeyedStateBackend | None) -> None:
        self._clock = clock
        self._states = states
        self._backend = backend

    def timestamp(self) -> int:
        return self._clock.timestamp

    def current_processing_time(self) -> int:
        return self._clock.processing_time

    def current_watermark(self) -> int:
        return self._clock.watermark

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._states.writable(state_descriptor)

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, State], None]) -> None:
        if self._backend is None:
            raise ProgramError("apply_to_keyed_state() needs a keyed stream. Call key_by() before connect().")
        self._backend.apply(state_descriptor, function)


@handles(BroadcastProcessSpec)
class BroadcastProcessOperator(ProcessCalls, TwoInputs):
    METHODS = ("process_element", "process_broadcast_element")

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        states = self._states = _States(self)
        context = self._context = _ReadOnlyContext(self.clock, self._context.timer_service(), None)
        context.states = states
        self.shared = states.shared
        self._broadcast = _Context(self.clock, states, None)

    def open(self) -> None:
        self._states.touch()
        super().open()

    def port(self, ordinal: int) -> Port:
        if ordinal == 0:
            return super().port(0)
        method, context = self.spec.function.process_broadcast_element, self._broadcast
        take = partial(self.call, lambda value, _: method(value, context))
        return Input(take, lambda keys, values, timestamps: take(values, timestamps))


@handles(KeyedBroadcastProcessSpec)
class KeyedBroadcastProcessOperator(KeyedProcessOperator):
    """State and timers of a key for one input; the other has no key."""

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement)
        states = self._states = _States(self)
        context = self._context = _ReadOnlyContext(self.clock, self._timers, self.backend)
        context.states = states
        self.backend.shared = states.shared
        self._broadcast = _Context(self.clock, states, self.backend)

    def open(self) -> None:
        self._states.touch()
        super().open()

    def port(self, ordinal: int) -> Port:
        if ordinal == 0:
            return self
        method, context = self.spec.function.process_broadcast_element, self._broadcast

        def call(value: Any, _: Any) -> Any:
            return method(value, context)

        def take(values: list[Any], timestamps: list[int] | None) -> None:
            self.call(call, [NO_KEY] * len(values), values, timestamps)

        return Input(take, lambda keys, values, timestamps: take(values, timestamps))
