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

__all__ = ["Committer", "CommitterContext", "Sink", "SinkIdentity", "SinkWriter", "Source", "WriterContext"]
