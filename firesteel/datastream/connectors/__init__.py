"""Sources and sinks. Each system has a module of its own."""

from firesteel.datastream.connectors.base import (
    Committer,
    CommitterContext,
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

__all__ = [
    "CheckpointCommitter",
    "Committer",
    "CommitterContext",
    "FileCheckpointCommitter",
    "GenericWriteAheadSink",
    "Sink",
    "SinkIdentity",
    "SinkWriter",
    "Source",
    "TwoPhaseCommitSinkFunction",
    "WriterContext",
]
