"""Sinks of single elements as sinks of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.datastream.functions import SinkFunction

__all__ = ["ExpandingSink"]

Expand = Callable[[pa.RecordBatch], Iterable[Any]]


class _ExpandingWriter(SinkWriter):
    def __init__(self, inner: SinkWriter, expand: Expand) -> None:
        self._inner, self._expand = inner, expand
        self.flush, self.prepare_commit = inner.flush, inner.prepare_commit  # type: ignore[method-assign]
        self.wake_at, self.close = inner.wake_at, inner.close  # type: ignore[method-assign]
        if inner.write_all is not None:
            self.write_all = self._write_all

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        for element in self._expand(value):
            self._inner.write(element, context)

    def _write_all(self, values: Iterator[Any], timestamps: list[int] | None) -> None:
        assert self._inner.write_all is not None
        for batch in values:
            self._inner.write_all(iter(self._expand(batch)), None)


class ExpandingSink(Sink):
    """Writes what a function makes of each batch into another sink. That one's guarantee stays."""

    def __init__(self, inner: Sink, expand: Expand) -> None:
        self._inner, self._expand = inner, expand

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _ExpandingWriter(self._inner.create_writer(context), self._expand)

    def create_committer(self, context: CommitterContext) -> Committer | None:
        return self._inner.create_committer(context)
