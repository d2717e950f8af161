"""What an operator does, as frozen data. Each spec has one handler in :mod:`firesteel.runtime.operators`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy

__all__ = [
    "AsyncWaitSpec",
    "CollectSpec",
    "FilterSpec",
    "FlatMapSpec",
    "KeyedProcessSpec",
    "MapSpec",
    "OperatorSpec",
    "PrintSpec",
    "ProcessSpec",
    "ReduceSpec",
    "SinkFunctionSpec",
    "SinkSpec",
    "SourceSpec",
    "TimestampsSpec",
    "UnionSpec",
]


@dataclass(frozen=True)
class OperatorSpec:
    """The root of all specs."""

    @property
    def stateful(self) -> bool:
        """Whether the operator keeps keyed state and so must stand behind an exchange by key."""
        return False

    @property
    def is_sink(self) -> bool:
        return False


@dataclass(frozen=True)
class SourceSpec(OperatorSpec):
    """Reads from outside. ``source`` is a :class:`firesteel.connectors.source.SplitSource`."""

    source: Any


@dataclass(frozen=True)
class MapSpec(OperatorSpec):
    function: Any
    keyed: bool = False

    @property
    def stateful(self) -> bool:
        return self.keyed


@dataclass(frozen=True)
class FlatMapSpec(OperatorSpec):
    function: Any
    keyed: bool = False

    @property
    def stateful(self) -> bool:
        return self.keyed


@dataclass(frozen=True)
class FilterSpec(OperatorSpec):
    function: Any
    keyed: bool = False

    @property
    def stateful(self) -> bool:
        return self.keyed


@dataclass(frozen=True)
class ProcessSpec(OperatorSpec):
    """A ProcessFunction on a stream without keys."""

    function: Any


@dataclass(frozen=True)
class AsyncWaitSpec(OperatorSpec):
    """An AsyncFunction: requests that overlap. It keeps no keyed state, on keyed streams neither."""

    function: Any
    timeout: int
    """Milliseconds for all attempts of an element; 0 or less: no limit."""
    capacity: int
    """How many elements may be under way at once, those counted that wait for their turn to go out."""
    ordered: bool
    retry: Any
    """An :class:`~firesteel.datastream.functions.AsyncRetryStrategy`."""


@dataclass(frozen=True)
class KeyedProcessSpec(OperatorSpec):
    """A KeyedProcessFunction."""

    function: Any

    @property
    def stateful(self) -> bool:
        return True


@dataclass(frozen=True)
class ReduceSpec(OperatorSpec):
    """A running fold per key: every record gives an update; in BATCH mode only the last one goes out."""

    function: Any

    @property
    def stateful(self) -> bool:
        return True


@dataclass(frozen=True)
class TimestampsSpec(OperatorSpec):
    """Assigns timestamps and watermarks."""

    strategy: WatermarkStrategy
    interval: int
    """The automatic watermark interval in milliseconds; 1 asks for a watermark after every record."""


@dataclass(frozen=True)
class UnionSpec(OperatorSpec):
    """Several streams as one."""


@dataclass(frozen=True)
class PrintSpec(OperatorSpec):
    identifier: str | None = None
    to_stderr: bool = False

    @property
    def is_sink(self) -> bool:
        return True


@dataclass(frozen=True)
class CollectSpec(OperatorSpec):
    """Sends every record to the driver, for ``execute_and_collect``."""

    channel: str

    @property
    def is_sink(self) -> bool:
        return True


@dataclass(frozen=True)
class SinkFunctionSpec(OperatorSpec):
    """A :class:`~firesteel.datastream.functions.SinkFunction` at the end of a stream."""

    function: Any

    @property
    def is_sink(self) -> bool:
        return True


@dataclass(frozen=True)
class SinkSpec(OperatorSpec):
    """A :class:`~firesteel.datastream.connectors.base.Sink`: writers in the tasks, a committer in the driver."""

    sink: Any

    @property
    def is_sink(self) -> bool:
        return True
