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
    from firesteel.datastream.connectors.file_system import (
        BucketAssigner,
        FileEnumeratorProvider,
        FileSink,
        FileSource,
        FileSourceBuilder,
        FileSplitAssignerProvider,
        OutputFileConfig,
        RollingPolicy,
        StreamFormat,
    )
    from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
    from firesteel.datastream.connectors.kafka import KafkaSource
    from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    from firesteel.datastream.connectors.polling_source import PollingSource
    from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource

__all__ = [
    "BatchSink",
    "BucketAssigner",
    "CheckpointCommitter",
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "FileCheckpointCommitter",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "GenericWriteAheadSink",
    "JdbcConnectionOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "KafkaSource",
    "NumberSequenceSource",
    "OutputFileConfig",
    "PartitionEnumerator",
    "PollingSource",
    "RMQConnectionConfig",
    "RMQSink",
    "RMQSource",
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
    "StreamFormat",
    "TwoPhaseCommitSinkFunction",
    "Undecodable",
    "UndecodableRecord",
    "UndecodableRecords",
    "WriterContext",
]

_HOMES = {
    name: module
    for module, names in {
        "batch_sink": ("BatchSink", "SinkBatch"),
        "file_system": (
            "BucketAssigner",
            "FileEnumeratorProvider",
            "FileSink",
            "FileSource",
            "FileSourceBuilder",
            "FileSplitAssignerProvider",
            "OutputFileConfig",
            "RollingPolicy",
            "StreamFormat",
        ),
        "jdbc": ("JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"),
        "kafka": ("KafkaSource",),
        "number_seq": ("NumberSequenceSource",),
        "polling_source": ("PollingSource",),
        "rabbitmq": ("RMQConnectionConfig", "RMQSink", "RMQSource"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    """What not every job needs is loaded when it is asked for: every worker imports this package."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
