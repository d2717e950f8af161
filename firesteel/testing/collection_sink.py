"""A sink whose records a test finds in a list."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.datastream.functions import SinkFunction

__all__ = ["CollectionSink"]


class CollectionSink(Sink):
    """Collects the records of a stream, exactly once, in the process that runs the program.

    Records appear batch by batch, when their batch is committed.

    >>> from firesteel.testing import memory_environment
    >>> env, sink = memory_environment(), CollectionSink()
    >>> _ = env.from_collection([1, 2, 3]).sink_to(sink)
    >>> _ = env.execute()
    >>> sink.values
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._committed: set[str] = set()
        self._values: list[Any] = []
        self.duplicates = 0
        """How many committables came once more; each is taken once."""

    def __getstate__(self) -> dict[str, Any]:
        # Copies travel to tasks, where only writers are made.
        return {}

    @property
    def values(self) -> list[Any]:
        """All records that were committed."""
        with self._lock:
            return list(self._values)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(context.writer_id())

    def create_committer(self, context: CommitterContext) -> Committer:
        return _Committer(self)

    def _take(self, name: str, values: list[Any]) -> None:
        with self._lock:
            if name in self._committed:
                self.duplicates += 1
                return
            self._committed.add(name)
            self._values.extend(values)


class _Writer(SinkWriter):
    """A batch's records of a subtask are one committable, with a name of its own."""

    def __init__(self, writer_id: str) -> None:
        self._names = (f"{writer_id}-{number}" for number in itertools.count())
        self._pending: list[Any] = []

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._pending.append(value)

    def prepare_commit(self) -> list[Any]:
        pending, self._pending = self._pending, []
        return [(next(self._names), pending)] if pending else []


class _Committer(Committer):
    def __init__(self, sink: CollectionSink) -> None:
        self._sink = sink

    def commit(self, committables: list[Any]) -> None:
        for name, values in committables:
            self._sink._take(name, values)
