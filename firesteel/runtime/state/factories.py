"""The state backends: which tables they use, and how much memory those may take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from firesteel.datastream.state import StateTtlConfig
from firesteel.runtime.state.cells import CellTable
from firesteel.runtime.state.growing import GrowingTable, scan_growing
from firesteel.runtime.state.log import LogTable, scan_log
from firesteel.runtime.state.store import StateStore
from firesteel.runtime.state.tables import Table

__all__ = ["HashMapTables", "RocksDBTables"]


@dataclass(frozen=True)
class HashMapTables:
    """All state in memory as Python objects, a log of the changes in the store."""

    NAME: ClassVar = "hashmap"
    memory: None = None

    def table(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Table:
        return LogTable(prefix, store, shape)

    def blocks(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Table:
        return LogTable(prefix, store, shape)

    def scan(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
        return scan_log(prefix, store, shape)

    def swept(self, config: StateTtlConfig, records: int) -> int:
        strategy = config.get_cleanup_strategies().get_incremental_cleanup_strategy()
        return 0 if strategy is None else strategy.get_cleanup_size() * records


@dataclass(frozen=True)
class RocksDBTables:
    """State in the store, in memory what was used last."""

    NAME: ClassVar = "rocksdb"
    memory: int = 768 * 1024 * 1024
    resident: bool = True
    """Whether a subtask's batches run in one process, so that what fits into memory need not be read again."""

    def table(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Table:
        return GrowingTable(prefix, store, shape, fits=self.resident and self.memory > 0)

    def blocks(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Table:
        return CellTable(prefix, store, shape)

    def scan(self, prefix: bytes, store: StateStore, shape: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
        return scan_growing(prefix, store, shape)

    def swept(self, config: StateTtlConfig, records: int) -> int:
        strategy = config.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy()
        return 0 if strategy is None else strategy.get_query_time_after_num_entries()
