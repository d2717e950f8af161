"""The contracts of connectors: a source that streams read from, and a sink with a writer and a committer.

A sink has two phases per micro-batch. Each subtask's *writer* takes records and, when the batch ends, flushes and gives
out *committables* (names of finished files, ids of prepared transactions). The *committer* runs in the driver once all
tasks of the batch are done. A batch is repeated after a failure, so committing must be idempotent by committable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.connectors.source import SplitSource
from firesteel.datastream.functions import SinkFunction

__all__ = ["Committer", "Sink", "SinkWriter", "Source", "WriterContext"]


class Source(ABC):
    """What ``from_source`` reads."""

    @abstractmethod
    def split_source(self) -> SplitSource:
        """The reader behind this source."""


class WriterContext(ABC):
    """Where a writer runs."""

    @abstractmethod
    def subtask(self) -> int:
        """The number of this subtask, from 0."""

    @abstractmethod
    def parallelism(self) -> int:
        """How many subtasks write."""


class SinkWriter(ABC):
    """Writes the records of one subtask."""

    @abstractmethod
    def write(self, value: Any, context: SinkFunction.Context) -> None:
        """Takes one record."""

    def prepare_commit(self) -> list[Any]:
        """Ends a batch: makes what was written durable but not yet visible, and names it."""
        return []

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once after the last record."""


class Committer(ABC):
    """Makes prepared writes visible."""

    @abstractmethod
    def commit(self, committables: list[Any]) -> None:
        """Commits. A committable may come again after a failure; the second time must change nothing."""


class Sink(ABC):
    """What ``sink_to`` writes to.

    >>> class ListWriter(SinkWriter):
    ...     def __init__(self): self.held = []
    ...     def write(self, value, context): self.held.append(value)
    ...     def prepare_commit(self):
    ...         held, self.held = self.held, []
    ...         return held
    >>> class ListSink(Sink):
    ...     def create_writer(self, context): return ListWriter()
    >>> writer = ListSink().create_writer(None)
    >>> writer.write(1, None)
    >>> writer.prepare_commit()
    [1]
    """

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer for one subtask; called in the task."""

    def create_committer(self) -> Committer | None:
        """The committer, called in the driver; None where writing alone is enough."""
        return None
