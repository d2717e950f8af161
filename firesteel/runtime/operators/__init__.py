"""Operators: one class per spec, found through a registry. Importing this package registers all of them."""

from firesteel.runtime.operators import (
    asynchronous,
    broadcast,
    connected,
    custom,
    interval_join,
    keyed,
    sinks,
    sources,
    stateless,
    time_windows,
    timestamps,
)
from firesteel.runtime.operators.base import Operator, Placement, Port, create_operator, handles

__all__ = [
    "Operator",
    "Placement",
    "Port",
    "asynchronous",
    "broadcast",
    "connected",
    "create_operator",
    "custom",
    "handles",
    "interval_join",
    "keyed",
    "sinks",
    "sources",
    "stateless",
    "time_windows",
    "timestamps",
]
