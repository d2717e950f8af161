"""Sources and sinks. Each system has a module of its own."""

from __future__ import annotations

import importlib
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
    from firesteel.datastream.connectors.batch_sink import BatchSink, SinkBatch
    from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, OutputFileConfig, RollingPolicy
    from firesteel.datastream.connectors.polling_source import PollingSource

__all__ = [
    "BatchSink",
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
    "PollingSource",
    "Records",
    "RollingPolicy",
    "SideRecords",
    "Sink",
    "SinkBatch",
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

_HOMES = {
    **dict.fromkeys(("BucketAssigner", "FileSink", "OutputFileConfig", "RollingPolicy"), "file_system"),
    **dict.fromkeys(("BatchSink", "SinkBatch"), "batch_sink"),
    "PollingSource": "polling_source",
}


def __getattr__(name: str) -> Any:
    """What not every job needs is loaded when it is asked for: every worker imports this package."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
