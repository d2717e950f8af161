"""Sources and sinks. Each system has a module of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.connectors.partitions import PartitionEnumerator
from firesteel.connectors.source import Records, SideRecords, SourceReader, SplitEnumerator, SplitRange
from firesteel.connectors.undecodable import Undecodable, UndecodableRecord, UndecodableRecords
from firesteel.datastream.connectors.base import (
    Committer,
    CommitterContext,
    DeliveryGuarantee,
    Sink,
    SinkIdentity,
    SinkWriter,
    Source,
    WriterContext,
)
from firesteel.datastream.functions import (
    CheckpointCommitter,
    FileCheckpointCommitter,
    GenericWriteAheadSink,
    TwoPhaseCommitSinkFunction,
)

if TYPE_CHECKING:
    from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, OutputFileConfig, RollingPolicy

__all__ = [
    "BucketAssigner",
    "CheckpointCommitter",
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "FileCheckpointCommitter",
    "FileSink",
    "GenericWriteAheadSink",
    "OutputFileConfig",
    "PartitionEnumerator",
    "Records",
    "RollingPolicy",
    "SideRecords",
    "Sink",
    "SinkIdentity",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SplitEnumerator",
    "SplitRange",
    "TwoPhaseCommitSinkFunction",
    "Undecodable",
    "UndecodableRecord",
    "UndecodableRecords",
    "WriterContext",
]

_FILE_SINK_NAMES = ("BucketAssigner", "FileSink", "OutputFileConfig", "RollingPolicy")


def __getattr__(name: str) -> Any:
    """What belongs to one system is loaded when it is asked for: every worker imports this package."""
    if name not in _FILE_SINK_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from firesteel.datastream.connectors import file_system

    return getattr(file_system, name)
