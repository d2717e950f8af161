"""Sources and sinks. Each system has a module of its own."""

from firesteel.datastream.connectors.base import Committer, Sink, SinkWriter, Source, WriterContext

__all__ = ["Committer", "Sink", "SinkWriter", "Source", "WriterContext"]
