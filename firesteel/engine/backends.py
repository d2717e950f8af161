"""From the configured state backend to the tables that workers use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.datastream.state_backend import CustomStateBackend, StateBackend
from firesteel.errors import ConfigurationError
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.state.factories import HashMapTables, RocksDBTables
from firesteel.runtime.state.tables import TableFactory

__all__ = ["backend_name", "table_factory"]

_PLENTY = 4 * 1024**3
MEMORY_PER_SLOT = "768 mb"

_PORT = ("memory", "table", "blocks", "scan", "swept")

_KINDS = "must be hashmap, rocksdb, or the import path of a backend (package.module.Name)"
_INSTEAD = {"filesystem": "hashmap", "jobmanager": "hashmap", "forst": "rocksdb"}
"""Names of Flink's without a backend here: the first two of Flink 1, which Flink 2 does not take either."""
_OF_CLASSES = {"rocksdb": "rocksdb", "forst": "rocksdb", "hashmap": "hashmap", "memory": "hashmap", "fs": "hashmap"}
"""By what the name of a class of Flink's has in it; the first that fits."""


def table_factory(
    configuration: Configuration, chosen: StateBackend | None, graph: JobGraph, resident: bool = True
) -> TableFactory:
    """The tables of the backend that the program chose, or else the configuration.

    Where a subtask's batches do not all run in one process (not ``resident``), whole tables in memory would be read
    again and again. There the hashmap backend reads what it needs and keeps it, as far as it can.

    >>> from firesteel.datastream.state_backend import HashMapStateBackend
    >>> table_factory(Configuration(), HashMapStateBackend(), None)
    HashMapTables(memory=None)
    """
    kind = backend_name(configuration, chosen)
    if kind == "hashmap":
        return HashMapTables() if resident else RocksDBTables(_PLENTY, resident)
    if kind == "rocksdb":
        memory = configuration.get_memory_bytes("state.backend.rocksdb.memory.fixed-per-slot", MEMORY_PER_SLOT)
        # The operators of a slot share what it has.
        stateful = sum(node.spec.stateful for node in graph.graph.nodes.values())
        return RocksDBTables(memory // max(1, stateful), resident)
    factory: Any = chosen.factory if isinstance(chosen, CustomStateBackend) else kind
    tables: TableFactory = (_imported(factory) if isinstance(factory, str) else factory)(configuration)
    missing = [name for name in _PORT if not hasattr(tables, name)]
    if missing:
        raise ConfigurationError(
            f"The state backend {kind} gave {type(tables).__name__}, which lacks {', '.join(missing)}: "
            "a backend returns a firesteel.runtime.state.tables.TableFactory."
        )
    return tables


def backend_name(configuration: Configuration, chosen: StateBackend | None) -> str:
    """The backend that the program chose, or else the configuration, by its name.

    >>> backend_name(Configuration.from_dict({"state.backend.type": "RocksDB"}), None)
    'rocksdb'
    """
    kind = chosen.type if chosen is not None else configuration.get_string("state.backend.type", "hashmap")
    return kind.lower() if kind.lower() in ("hashmap", "rocksdb") else kind


def _imported(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    if not module or not name:
        raise ConfigurationError(f"state.backend.type is {path!r}: it {_KINDS}.{_hint(path)}")
    if path.startswith("org.apache.flink."):
        raise ConfigurationError(
            f"state.backend.type is {path!r}, a class in Java, which Firesteel does not run: it {_KINDS}.{_hint(name)}"
        )
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return found
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"state.backend.type is {path!r}: it {_KINDS}, and this one cannot be imported: {error}"
        ) from error


def _hint(name: str) -> str:
    """What to set instead of a name or a class of Flink's."""
    instead = _INSTEAD.get(name.lower()) or next(
        (kind for part, kind in _OF_CLASSES.items() if part in name.lower()), None
    )
    return f" Set {instead} instead of Flink's {name}." if instead else ""
