"""Names that stand in pickles for objects of Firesteel's own classes.

State, commit logs and savepoints hold pickles of what users keep, and in them rows, windows and other objects of ours.
Pickle writes a class by its module path. That would make every path part of the durable format: a class that moves
could not be read again. So such objects are pickled as a call of one of the names below, which stay for ever, while
the functions behind them may live anywhere and change with their classes:

    Row(1, 2)  ──►  firesteel.durable.names row (None, [1, 2])  ──►  whatever makes a row in this version

A name is found by pickle itself, in C, so a record costs what it cost with a module path. Whoever reads a pickle needs
nothing but an installed Firesteel: a name that is not known yet loads the module that it lives in.

The arguments of a name are part of the format, too. ``tests/unit/test_durable_format.py`` has the bytes of each.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["HOMES", "stored_as"]

HOMES: Final = {
    "row": "firesteel.common.types",
    "row_kind": "firesteel.common.types",
    "duration": "firesteel.common.time",
    "instant": "firesteel.common.time",
    "time": "firesteel.common.time",
    "time_window": "firesteel.datastream.window.windows",
    "count_window": "firesteel.datastream.window.windows",
    "global_window": "firesteel.datastream.window.windows",
    "timestamped_value": "firesteel.datastream.window.evictors",
    # Records of sources.
    "redis_entry": "firesteel.connectors.redis.streams",
    "mqtt_message": "firesteel.connectors.mqtt.receiving",
    "kafka_record": "firesteel.connectors.kafka.deserializing",
    "undecodable_record": "firesteel.connectors.undecodable",
    # Parts of accumulators.
    "list_view": "firesteel.table.data_view",
    "map_view": "firesteel.table.data_view",
    # Elements of graphs.
    "vertex": "firesteel.gelly.elements",
    "edge": "firesteel.gelly.elements",
    # What states keep for themselves among users' values.
    "big_list": "firesteel.runtime.state.lists",
    "big_map": "firesteel.runtime.state.maps",
    "purged": "firesteel.runtime.windowing.sessions",
    # What sinks have prepared.
    "finished_part": "firesteel.connectors.files.parts",
    "part_in_progress": "firesteel.connectors.files.parts",
    "partition_report": "firesteel.connectors.table.partition_report",
    "prepared_transaction": "firesteel.connectors.postgresql.two_phase",
}
"""Every name, with the module that it lives in. A module may change; a name stays, and what it means, too."""

Function = TypeVar("Function", bound=Callable[..., Any])


def stored_as(name: str) -> Callable[[Function], Function]:
    """Gives a function, by which objects are made again, its name in pickles.

    >>> import pickle
    >>> from firesteel.common import Row
    >>> b"firesteel.durable.names" in pickle.dumps(Row(1)), pickle.loads(pickle.dumps(Row(1)))
    (True, <Row(1)>)
    """

    def register(function: Function) -> Function:
        if HOMES.get(name) != function.__module__:
            raise ValueError(f"{name!r} of {function.__module__} is not among the names of the durable format")
        function.__module__, function.__name__, function.__qualname__ = __name__, name, name
        globals()[name] = function
        return function

    return register


def __getattr__(name: str) -> Any:
    """A name whose module nobody has imported yet."""
    if name in HOMES:
        importlib.import_module(HOMES[name])
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
