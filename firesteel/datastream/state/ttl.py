"""How long state lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from firesteel.common.time import Duration, Time
from firesteel.errors import ProgramError, short_repr

__all__ = ["StateTtlConfig"]


class _UpdateType(Enum):
    """What prolongs a value's life."""

    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class _StateVisibility(Enum):
    """Whether an expired value that is still stored may be read."""

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class _TtlTimeCharacteristic(Enum):
    """The clock by which values age."""

    ProcessingTime = 0


class _Strategies(Enum):
    """The ways to remove expired values."""

    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


class _CleanupStrategy:
    """The root of the strategies' settings."""


@dataclass(frozen=True)
class _EmptyCleanupStrategy(_CleanupStrategy):
    """A strategy with nothing to set."""


class _IncrementalCleanupStrategy(_CleanupStrategy):
    """Checks a few entries with every access."""

    def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
        self._settings = (cleanup_size, run_cleanup_for_every_record)

    def get_cleanup_size(self) -> int:
        """How many entries to check each time."""
        return self._settings[0]

    def run_cleanup_for_every_record(self) -> bool:
        """Whether to check with every record too."""
        return self._settings[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IncrementalCleanupStrategy) and self._settings == other._settings

    def __hash__(self) -> int:
        return hash(self._settings)


@dataclass(frozen=True)
class _RocksdbCompactFilterCleanupStrategy(_CleanupStrategy):
    """Drops expired entries when RocksDB compacts."""

    query_time_after_num_entries: int
    periodic_compaction_time: Duration = field(default_factory=lambda: Duration.of_days(30))

    def get_query_time_after_num_entries(self) -> int:
        """How many entries to go through between two looks at the clock."""
        return self.query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Duration:
        """The age at which files are compacted in any case."""
        return self.periodic_compaction_time


class _CleanupStrategies:
    """Which strategies are on."""

    Strategies = _Strategies
    CleanupStrategy = _CleanupStrategy
    EmptyCleanupStrategy = _EmptyCleanupStrategy
    IncrementalCleanupStrategy = _IncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy = _RocksdbCompactFilterCleanupStrategy
    EMPTY_STRATEGY = _EmptyCleanupStrategy()

    def __init__(self, strategies: Mapping[_Strategies, _CleanupStrategy], is_cleanup_in_background: bool) -> None:
        self._strategies = dict(strategies)
        self._is_cleanup_in_background = is_cleanup_in_background

    @property
    def strategies(self) -> Mapping[_Strategies, _CleanupStrategy]:
        """The strategies asked for, with their settings."""
        return MappingProxyType(self._strategies)

    def is_cleanup_in_background(self) -> bool:
        """Whether expired values are removed without being read."""
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """Whether full snapshots leave expired values out."""
        return _Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> _IncrementalCleanupStrategy | None:
        """The incremental strategy; with background cleanup there is a default one."""
        found = self._strategies.get(_Strategies.INCREMENTAL_CLEANUP)
        if isinstance(found, _IncrementalCleanupStrategy):
            return found
        return _IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> _RocksdbCompactFilterCleanupStrategy | None:
        """The RocksDB strategy; with background cleanup there is a default one."""
        found = self._strategies.get(_Strategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(found, _RocksdbCompactFilterCleanupStrategy):
            return found
        return _RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _CleanupStrategies):
            return NotImplemented
        return (self._strategies, self._is_cleanup_in_background) == (
            other._strategies,
            other._is_cleanup_in_background,
        )

    def __hash__(self) -> int:
        return hash((frozenset(self._strategies), self._is_cleanup_in_background))


class _Builder:
    """Builds a :class:`StateTtlConfig` step by step."""

    def __init__(self, ttl: Time | Duration) -> None:
        self._update_type = _UpdateType.OnCreateAndWrite
        self._state_visibility = _StateVisibility.NeverReturnExpired
        self._ttl_time_characteristic = _TtlTimeCharacteristic.ProcessingTime
        self._is_cleanup_in_background = True
        self._strategies: dict[_Strategies, _CleanupStrategy] = {}
        self.set_ttl(ttl)

    def set_update_type(self, update_type: _UpdateType) -> _Builder:
        """Says what prolongs a value's life."""
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> _Builder:
        """A value lives on from its last write. The default."""
        return self.set_update_type(_UpdateType.OnCreateAndWrite)

    def update_ttl_on_read_and_write(self) -> _Builder:
        """A value lives on from its last use, be it a read or a write."""
        return self.set_update_type(_UpdateType.OnReadAndWrite)

    def set_state_visibility(self, state_visibility: _StateVisibility) -> _Builder:
        """Says whether expired values may be read."""
        self._state_visibility = state_visibility
        return self

    def return_expired_if_not_cleaned_up(self) -> _Builder:
        """An expired value can be read until it is removed."""
        return self.set_state_visibility(_StateVisibility.ReturnExpiredIfNotCleanedUp)

    def never_return_expired(self) -> _Builder:
        """An expired value is never seen again. The default."""
        return self.set_state_visibility(_StateVisibility.NeverReturnExpired)

    def set_ttl_time_characteristic(self, ttl_time_characteristic: _TtlTimeCharacteristic) -> _Builder:
        """Says by which clock values age."""
        self._ttl_time_characteristic = ttl_time_characteristic
        return self

    def use_processing_time(self) -> _Builder:
        """Values age by the wall clock. The default, and the only choice."""
        return self.set_ttl_time_characteristic(_TtlTimeCharacteristic.ProcessingTime)

    def cleanup_full_snapshot(self) -> _Builder:
        """Leaves expired values out of full snapshots."""
        self._strategies[_Strategies.FULL_STATE_SCAN_SNAPSHOT] = _CleanupStrategies.EMPTY_STRATEGY
        return self

    def cleanup_incrementally(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> _Builder:
        """Checks ``cleanup_size`` entries with every access, and with every record too if so asked."""
        strategy = _IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
        self._strategies[_Strategies.INCREMENTAL_CLEANUP] = strategy
        return self

    def cleanup_in_rocksdb_compact_filter(
        self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None
    ) -> _Builder:
        """Drops expired entries when RocksDB compacts."""
        self._strategies[_Strategies.ROCKSDB_COMPACTION_FILTER] = _RocksdbCompactFilterCleanupStrategy(
            query_time_after_num_entries, periodic_compaction_time or Duration.of_days(30)
        )
        return self

    def disable_cleanup_in_background(self) -> _Builder:
        """Removes expired values only when they are read."""
        self._is_cleanup_in_background = False
        return self

    def set_ttl(self, ttl: Time | Duration) -> _Builder:
        """Says how long values live."""
        if not isinstance(ttl, Time | Duration):
            raise ProgramError(
                f"A time to live is a Time or a Duration, such as Time.hours(1), got {short_repr(ttl, 60)}."
            )
        self._ttl = ttl if isinstance(ttl, Time) else Time.milliseconds(ttl.to_millis())
        if self._ttl.to_milliseconds() <= 0:
            raise ProgramError(f"A time to live must be longer than nothing, got {self._ttl}.")
        return self

    def build(self) -> StateTtlConfig:
        """The finished configuration."""
        return StateTtlConfig(
            self._update_type,
            self._state_visibility,
            self._ttl_time_characteristic,
            self._ttl,
            _CleanupStrategies(self._strategies, self._is_cleanup_in_background),
        )


@dataclass(frozen=True)
class StateTtlConfig:
    """When values expire, and what is seen and removed of them then.

    >>> config = StateTtlConfig.new_builder(Time.minutes(5)).update_ttl_on_read_and_write().build()
    >>> config.get_ttl().to_milliseconds(), config.get_update_type().name
    (300000, 'OnReadAndWrite')
    """

    update_type: _UpdateType
    state_visibility: _StateVisibility
    ttl_time_characteristic: _TtlTimeCharacteristic
    ttl: Time
    cleanup_strategies: _CleanupStrategies

    @staticmethod
    def new_builder(ttl: Time | Duration) -> _Builder:
        """A builder with Flink's defaults."""
        return _Builder(ttl)

    def get_update_type(self) -> _UpdateType:
        """What prolongs a value's life."""
        return self.update_type

    def get_state_visibility(self) -> _StateVisibility:
        """Whether expired values may be read."""
        return self.state_visibility

    def get_ttl_time_characteristic(self) -> _TtlTimeCharacteristic:
        """The clock by which values age."""
        return self.ttl_time_characteristic

    def get_ttl(self) -> Time:
        """How long values live."""
        return self.ttl

    def is_enabled(self) -> bool:
        """Whether values expire at all."""
        return self.update_type is not _UpdateType.Disabled

    def get_cleanup_strategies(self) -> _CleanupStrategies:
        """How expired values are removed."""
        return self.cleanup_strategies

    # PyFlink nests these classes. They stand on their own above, where a type checker and pickle find them.
    UpdateType = _UpdateType
    StateVisibility = _StateVisibility
    TtlTimeCharacteristic = _TtlTimeCharacteristic
    CleanupStrategies = _CleanupStrategies
    Builder = _Builder
