"""Rows into a table, as they come: what every writer to a database does, and the writer that does no more."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, tee
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo
from firesteel.connectors.jdbc.address import DatabaseAddress
from firesteel.connectors.jdbc.dialect import Dialect
from firesteel.datastream.connectors.base import SinkWriter, WriterContext
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ConnectorError, FailureKind, short_repr

__all__ = ["RowWriter", "Target", "TransactionWriting", "Writing"]


@dataclass(frozen=True)
class Target:
    """What is written where, and in which portions."""

    dialect: Dialect
    address: DatabaseAddress
    statement: str
    """With the driver's own marks for parameters."""
    declared: RowTypeInfo | TupleTypeInfo
    batch_size: int = 5000
    """Rows that are sent together; 0: as many as come."""
    interval_ms: int = 0
    """Rows wait no longer for others, 0: until there are enough, or the micro-batch ends."""
    retries: int = 3


class Writing(SinkWriter):
    """Collects rows and sends them together. Subclasses say in what transaction."""

    def __init__(self, target: Target, name: str) -> None:
        self._target = target
        self._session = target.dialect.session(target.address, name)
        self._row = target.dialect.rows(target.declared).row
        self._most = target.batch_size or 1_000_000
        self._values: list[Any] = []
        self._rows: list[tuple[Any, ...]] = []
        self._since = 0.0

    @property
    def doing(self) -> str:
        """What is said to be tried when it fails."""
        return f"the statement {short_repr(self._target.statement, 300)}"

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._keep(value)

    def _keep(self, value: Any) -> None:
        row = self._row(value)
        if not self._rows:
            self._since = time.monotonic()
        self._values.append(value)
        self._rows.append(row)
        if len(self._rows) >= self._most or self._waited():
            self.send()

    def _keep_all(self, values: Iterator[Any]) -> None:
        """The same for many: record by record, so that an error is known to be about the last one that was taken, but
        without a step of Python's own for each."""
        while True:
            before = len(self._values)
            one, other = tee(islice(values, self._most - before))
            self._rows.extend(map(self._row, one))
            self._values.extend(other)
            if len(self._values) == before:
                return
            if len(self._rows) >= self._most:
                self.send()

    def _waited(self) -> bool:
        interval = self._target.interval_ms
        return interval > 0 and (time.monotonic() - self._since) * 1000 >= interval

    @abstractmethod
    def send(self) -> None:
        """Sends what is buffered."""

    def flush(self, end_of_input: bool) -> None:
        if self._rows:
            self.send()

    def _sent(self) -> None:
        self._values, self._rows = [], []

    def _together(self) -> None:
        """All rows or none: in a transaction of their own, or in a part of the one that is open."""
        with self._session.transaction():
            self._session.executemany(self._target.statement, self._rows)

    def _refused(self, error: Exception) -> ConnectorError:
        """Rows were sent together, so the server did not say which of them it refused. One by one it does."""
        session = self._session
        if session.is_passing(error):
            return session.as_connector_error(error, self.doing)
        for value, row in zip(self._values, self._rows, strict=True):
            try:
                with session.transaction(force_rollback=True):
                    session.execute(self._target.statement, *row)
            except session.errors as again:
                if session.is_passing(again):
                    break
                return session.as_connector_error(again, self.doing, value)
        return session.as_connector_error(error, self.doing)

    def close(self) -> None:
        self._session.drop()


class RowWriter(Writing):
    """Each portion is a transaction. A batch that comes again writes its rows again, so the statement should bear that.

    The rows of a batch are in the table before the batch is logged.
    """

    def write_all(self, values: Iterator[Any], timestamps: list[int] | None) -> None:
        if self._target.interval_ms:
            for value in values:
                self._keep(value)
            return
        self._keep_all(values)

    def send(self) -> None:
        try:
            self._session.retried(self._together, self._target.retries)
        except self._session.errors as error:
            raise self._refused(error) from None
        self._sent()


class TransactionWriting(Writing):
    """One transaction for each batch, with a name that the batch gives it again if it comes again. Where that one is
    prepared already, by a task that was thought dead, the batch writes nothing."""

    def __init__(self, target: Target, context: WriterContext) -> None:
        super().__init__(target, f"firesteel {context.job_name()}"[:63])
        self._sink_prefix = f"{context.name_prefix()}-"
        self._prefix = f"{self._sink_prefix}{context.subtask()}"
        self._open: Any | None = None
        """The transaction that is open: its name, or what the database calls it."""
        self._taken_over = False
        self._last_time, self._same_time = -1, 0

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        if self._open is None:
            self._begin(self._name(context.current_processing_time()))
        if not self._taken_over:
            super().write(value, context)

    def _name(self, batch_time: int) -> str:
        # Batches may follow each other within a millisecond; what was prepared for one must not pass for the other's.
        self._same_time = self._same_time + 1 if batch_time == self._last_time else 0
        self._last_time = batch_time
        return f"{self._prefix}-{batch_time}-{self._same_time}"

    def _send_to_transaction(self) -> None:
        """Sends what is buffered into the open transaction. Rows that somebody else has locked are waited for, ``1 +
        retries`` times as long as one statement waits: most transactions are short. But what another subtask of this
        sink has prepared stays locked until the batch is complete, which waits for this one."""
        for left in range(self._target.retries, -1, -1):
            try:
                self._together()
                return
            except self._session.errors as error:
                if not self._is_locked(error):
                    raise
                prepared = self._has_conflicting_transaction()
                if left and not prepared:
                    continue
                refusal = self._session.as_connector_error(error, self.doing)
                holder = (
                    "Another subtask of this sink has changed the same row, in a transaction that ends with the batch."
                    if prepared
                    else "Another transaction, maybe of another sink or program, has changed the same row and not "
                    "ended in time."
                )
                raise ConnectorError(
                    f"{refusal} {holder} Rows must reach the subtask that changes them: key_by(…) the row's key in "
                    "front of the sink, or set_parallelism(1) on it.",
                    kind=FailureKind.PERMANENT,
                ) from None

    @abstractmethod
    def _begin(self, name: str) -> None:
        """Opens a transaction, or takes over the one that is prepared under this name."""

    @abstractmethod
    def _is_locked(self, error: Exception) -> bool:
        """Whether a statement waited for a lock for as long as it may."""

    @abstractmethod
    def _has_conflicting_transaction(self) -> bool:
        """Whether other subtasks of this sink have prepared transactions."""
