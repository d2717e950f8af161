"""How functions get handles of keyed state, whichever context they ask."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, cast

from firesteel.datastream.functions import KeyedStateStore
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
from firesteel.runtime.state.backend import KeyedStateBackend

__all__ = ["BackendStates", "StateGetters"]


class StateGetters(KeyedStateStore):
    """The getters of a context that knows which backend the state is in."""

    @abstractmethod
    def _backend(self) -> KeyedStateBackend:
        """The backend; an error that says why there is none."""

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return cast(ValueState[Any], self._backend().state(state_descriptor))

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return cast(ListState[Any], self._backend().state(state_descriptor))

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return cast(MapState[Any, Any], self._backend().state(state_descriptor))

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return cast(ReducingState[Any], self._backend().state(state_descriptor))

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        return cast(AggregatingState[Any, Any], self._backend().state(state_descriptor))


class BackendStates(StateGetters):
    """The states of one backend."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._keyed = backend

    def _backend(self) -> KeyedStateBackend:
        return self._keyed
