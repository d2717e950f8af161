"""What is known of a state besides its entries, from what the user declared."""

from __future__ import annotations

from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from firesteel.durable.headers import UNDECLARED, StateSchema

__all__ = ["UNDECLARED", "StateSchema", "schema_of"]

_KINDS: dict[type[StateDescriptor], str] = {
    ValueStateDescriptor: "value",
    ListStateDescriptor: "list",
    MapStateDescriptor: "map",
    ReducingStateDescriptor: "reducing",
    AggregatingStateDescriptor: "aggregating",
}


def schema_of(descriptor: StateDescriptor) -> StateSchema:
    """
    >>> from firesteel.common.typeinfo import Types
    >>> schema_of(MapStateDescriptor("prices", Types.STRING(), Types.DOUBLE())).text
    'map state of MAP<STRING, DOUBLE>'
    """
    config = descriptor.ttl_config
    return StateSchema(_KINDS[type(descriptor)], descriptor.type_info, config is not None and config.is_enabled())
