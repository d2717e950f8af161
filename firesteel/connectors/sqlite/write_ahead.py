"""Exactly once in SQLite: records wait in the checkpoint folder until the driver inserts them, together with a mark.

SQLite has no transactions that could be prepared in one process and committed by another. So the sink is a
:class:`~firesteel.datastream.connectors.BatchSink`, whose batches have numbers. The number of the last one is a row in
a table of the same file, and changes in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from firesteel.connectors.jdbc.writing import Target
from firesteel.connectors.sqlite.driver import Session
from firesteel.datastream.connectors.base import CommitterContext, DeliveryGuarantee, SinkWriter, WriterContext
from firesteel.datastream.connectors.batch_sink import BatchSink, SinkBatch
from firesteel.errors import ConnectorError

__all__ = ["MARKS", "SqliteSink"]

MARKS = "firesteel_batches"

Result = TypeVar("Result")


class SqliteSink(BatchSink):
    """Rows and a mark in one transaction."""

    guarantee = DeliveryGuarantee.EXACTLY_ONCE

    def __init__(self, target: Target) -> None:
        self._target = target
        self._session = Session(target.address)
        self._row: Callable[[Any], Any] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> SqliteSink:
        return SqliteSink(self._target)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        self._row = self._target.dialect.rows(self._target.declared).row
        return super().create_writer(context)

    def convert(self, value: Any) -> Any:
        assert self._row is not None
        return self._row(value)

    def open(self, context: CommitterContext) -> None:
        create = f"CREATE TABLE IF NOT EXISTS {MARKS} (sink TEXT PRIMARY KEY, number INTEGER NOT NULL)"
        self._run(lambda: self._session.execute(create), f"CREATE TABLE {MARKS}")

    def last_written(self, sink: str) -> int | None:
        found = self._run(
            lambda: self._session.execute(f"SELECT number FROM {MARKS} WHERE sink = ?", sink), "a look at the marks"
        )
        return int(found[0][0]) if found else None

    def write(self, batch: SinkBatch) -> None:
        def insert() -> None:
            with self._session.transaction():
                self._session.execute(
                    f"INSERT INTO {MARKS} VALUES (?, ?) ON CONFLICT (sink) DO UPDATE SET number = excluded.number",
                    batch.sink,
                    batch.number,
                )
                self._session.executemany(self._target.statement, batch.values)

        try:
            insert()
        except self._session.errors as error:
            raise self._refused(error, batch.values) from None

    def _refused(self, error: Exception, rows: list[Any]) -> ConnectorError:
        """Which row was refused: one by one it shows."""
        doing = f"the statement {self._target.statement!r}"
        if not self._session.is_passing(error):
            for row in rows:
                try:
                    with self._session.transaction(force_rollback=True):
                        self._session.execute(self._target.statement, *row)
                except self._session.errors as again:
                    return self._session.as_connector_error(again, doing, row)
        return self._session.as_connector_error(error, doing)

    def _run(self, action: Callable[[], Result], doing: str) -> Result:
        try:
            return action()
        except self._session.errors as error:
            raise self._session.as_connector_error(error, doing) from None

    def close(self) -> None:
        self._session.drop()
