"""Rows into Cassandra, many requests under way, each with a timestamp of its own.

Of two writes to a cell Cassandra keeps the one with the later timestamp, in whatever order they arrive. Here it is that
of the micro-batch, which is logged before the micro-batch runs, and a number that counts within it. So a batch that
comes again writes what is there already, and what a later batch has written stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.common.types import Row
from firesteel.connectors.batch_versions import BatchVersions
from firesteel.connectors.cassandra.connecting import CassandraAddress, as_connector_error, load_driver
from firesteel.datastream.connectors.base import DeliveryGuarantee, SinkWriter, WriterContext
from firesteel.datastream.connectors.batch_sink import BatchSink, SinkBatch
from firesteel.errors import TypeMismatchError, short_repr

__all__ = ["CassandraWriting", "Writing"]

MICROSECONDS = 1000


@dataclass(frozen=True)
class Writing:
    """What is written, and how."""

    query: str
    concurrent: int = 500
    """Requests under way at once."""
    consistency: str | None = None
    ignore_nulls: bool = False
    """Whether None leaves what is there, instead of deleting it."""
    ahead: bool = False
    """Whether records wait in the checkpoint folder until their checkpoint is complete."""


class CassandraWriting(BatchSink):
    """The sink behind :class:`~firesteel.datastream.connectors.cassandra.CassandraSink`."""

    max_records = 5000

    def __init__(self, address: CassandraAddress, writing: Writing) -> None:
        load_driver()
        if writing.ahead:
            self.guarantee = DeliveryGuarantee.EXACTLY_ONCE
        self._address, self._writing = address, writing
        self._versions: BatchVersions | None = None
        self._cluster: Any = None
        self._session: Any = None
        self._statement: Any = None
        self._timestamp = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_versions": None, "_cluster": None, "_session": None, "_statement": None}

    def create_writer(self, context: WriterContext) -> SinkWriter:
        self._versions = BatchVersions(context.current_processing_time, MICROSECONDS)
        return super().create_writer(context)

    def convert(self, value: Any) -> tuple[int, Sequence[Any], Any]:
        # Here, and not when it is sent: what is sent a second time, by the driver too, keeps its timestamp.
        assert self._versions is not None
        if not isinstance(value, Row | tuple | list):
            raise TypeMismatchError(
                f"A record for Cassandra is a row or a tuple, with a value for each ? of the query; got "
                f"{short_repr(value, 80)}."
            )
        return self._versions.take(1), list(value), value

    def _connected(self) -> Any:
        if self._session is None:
            try:
                self._cluster = self._address.cluster(lambda: self._timestamp)
                self._session = self._cluster.connect()
                self._statement = self._session.prepare(self._writing.query)
                if self._writing.consistency is not None:
                    levels = load_driver("cassandra").ConsistencyLevel
                    self._statement.consistency_level = getattr(levels, self._writing.consistency)
            except Exception as error:
                self._drop()
                raise as_connector_error(self._address, error, f"the query {self._writing.query!r}") from None
        return self._session

    def write(self, batch: SinkBatch) -> None:
        session = self._connected()
        under_way: deque[tuple[Any, Any]] = deque()
        for timestamp, values, record in batch.values:
            bound = self._bound(values, record)
            # The driver asks for it while it makes the request, in this thread.
            self._timestamp = timestamp
            under_way.append((session.execute_async(bound), record))
            if len(under_way) >= self._writing.concurrent:
                self._finish(*under_way.popleft())
        while under_way:
            self._finish(*under_way.popleft())

    def _bound(self, values: Sequence[Any], record: Any) -> Any:
        given: Sequence[Any] = values
        if self._writing.ignore_nulls:
            unset = load_driver("cassandra.query").UNSET_VALUE
            given = [unset if value is None else value for value in values]
        try:
            return self._statement.bind(given)
        except Exception as error:
            raise TypeMismatchError(
                f"{' '.join(str(error).split()).rstrip('.')}. The query is {self._writing.query!r}, the record "
                f"{short_repr(record, 200)}."
            ) from None

    def _finish(self, future: Any, record: Any) -> None:
        try:
            future.result()
        except Exception as error:
            raise as_connector_error(self._address, error, f"the query {self._writing.query!r}", record) from None

    def _drop(self) -> None:
        cluster, self._cluster, self._session, self._statement = self._cluster, None, None, None
        if cluster is not None:
            cluster.shutdown()

    def close(self) -> None:
        self._drop()
