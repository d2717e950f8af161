"""A sink that takes everything and keeps nothing, for load tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.datastream.connectors.base import Sink, SinkWriter, WriterContext
from firesteel.datastream.functions import SinkFunction

__all__ = ["BlackholeSink"]


class _Nowhere(SinkWriter):
    def write(self, value: Any, context: SinkFunction.Context) -> None:
        """Nothing is kept."""

    def write_all(self, values: Iterator[Any], timestamps: list[int] | None) -> None:
        """Nothing is kept."""


class BlackholeSink(Sink):
    """Rows, batches, anything.

    >>> BlackholeSink().create_writer(WriterContext()).prepare_commit()
    []
    """

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Nowhere()
