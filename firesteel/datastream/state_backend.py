"""State backends: where keyed state lives while a job runs.

Whichever is chosen, the truth is in Spark's state store, so results, checkpoints and recovery are the same. The choice
is one of memory and speed, made by ``state.backend.type`` in the configuration or in the program:

    env.set_state_backend(EmbeddedRocksDBStateBackend())
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from firesteel.errors import ProgramError, short_repr

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]


class StateBackend:
    """The root of all backends."""

    type: str
    """The value of ``state.backend.type`` that chooses it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class HashMapStateBackend(StateBackend):
    """All state as Python objects in the memory of the workers, a log of the changes in Spark's store. The default.

    >>> HashMapStateBackend()
    HashMapStateBackend()
    """

    type = "hashmap"


class PredefinedOptions(Enum):
    """Sets of RocksDB options of Flink's. Accepted for compatibility: Spark has settings of its own for its store."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """State in Spark's RocksDB store, in the workers only what was used last: for state larger than memory.

    How much a worker may hold says ``state.backend.rocksdb.memory.fixed-per-slot``.

    >>> EmbeddedRocksDBStateBackend().is_incremental_checkpoints_enabled()
    True
    """

    type = "rocksdb"

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._incremental = enable_incremental_checkpointing is not False
        self._paths: list[str] = []
        self._options = PredefinedOptions.DEFAULT
        self._threads = 4
        self._options_factory: str | None = None

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether a checkpoint holds only what changed. Spark's store always works that way."""
        return self._incremental

    def set_db_storage_paths(self, *paths: str) -> None:
        """Accepted for compatibility: Spark keeps its files under ``spark.local.dir``. As in Flink, they are absolute
        paths or ``file:`` URIs; none restores the default.

        >>> backend = EmbeddedRocksDBStateBackend()
        >>> backend.set_db_storage_paths("file:///var/state/")
        >>> backend.get_db_storage_paths()
        ['/var/state']
        """
        self._paths = [_local_path(path) for path in paths]

    def get_db_storage_paths(self) -> list[str]:
        """The paths that were set."""
        return list(self._paths)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Accepted for compatibility: see the settings ``spark.sql.streaming.stateStore.rocksdb.*`` instead."""
        self._options = options

    def get_predefined_options(self) -> PredefinedOptions:
        """The options that were set."""
        return self._options

    def set_options(self, options_factory_class_name: str) -> None:
        """Accepted for compatibility: a Java class has no meaning here; use Spark's settings of its store."""
        self._options_factory = options_factory_class_name

    def get_options(self) -> str | None:
        """The name that was set."""
        return self._options_factory

    def get_number_of_transfer_threads(self) -> int:
        """The number that was set."""
        return self._threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Accepted for compatibility: Spark moves its files itself."""
        self._threads = number_of_transfering_threads


def _local_path(place: str) -> str:
    if not isinstance(place, str):
        raise ProgramError(f"set_db_storage_paths() takes paths, got {short_repr(place, 60)}.")
    # Not filesystems.resolved: Flink ignores the host of a file: URI here, and PyFlink's own tests ask for it.
    parts = urlsplit(place)
    if parts.scheme not in ("", "file"):
        raise ProgramError(f"set_db_storage_paths(): {place!r} has a non-local scheme.")
    path = parts.path if parts.scheme else place
    if not os.path.isabs(path):
        raise ProgramError(f"set_db_storage_paths() takes absolute paths, got {place!r}.")
    return os.path.normpath(path)


class CustomStateBackend(StateBackend):
    """A backend of your own: how the tables are made that hold the state in the workers.

    ``factory`` (or the import path of one, as ``package.module.Name``) is called with the job's configuration and
    returns a :class:`firesteel.runtime.state.tables.TableFactory`.

    >>> CustomStateBackend("my_package.backends.Compressed").type
    'my_package.backends.Compressed'
    """

    def __init__(self, factory: str | Callable[..., Any]) -> None:
        if not isinstance(factory, str) and not callable(factory):
            raise ProgramError(f"CustomStateBackend takes a factory or its import path, got {short_repr(factory, 80)}.")
        self.factory = factory
        self.type = factory if isinstance(factory, str) else f"{factory.__module__}.{factory.__qualname__}"

    def __repr__(self) -> str:
        return f"CustomStateBackend({self.type!r})"
