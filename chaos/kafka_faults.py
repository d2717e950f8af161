"""A sink for Kafka that fails on purpose, at points of its own between those of the commit protocol.

It wraps the real one and comes by the points in the order in which the real one acts, so that a process dies there in
the middle of what it does. Where a point says ``error`` instead of ``kill``, the writer is left as a dead process
leaves it: nobody closes it, and its transaction stays open. :data:`ZOMBIES` has those writers, for tests that wake one
up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

from firesteel.connectors.kafka.committing import TransactionCommitter
from firesteel.connectors.kafka.serializing import OutgoingRecord
from firesteel.connectors.kafka.transactions import Transaction
from firesteel.connectors.kafka.writing import TransactionalWriter
from firesteel.datastream import SinkFunction
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.datastream.connectors.kafka import KafkaSink
from firesteel.runtime.crash_points import CrashPointError, CrashPoints
from firesteel.testing import CommitCrashes, CrashPoint

__all__ = ["BEFORE_COMMITS", "ZOMBIES", "FaultySink", "KafkaCrashes", "KafkaPoint"]

RECORDS_ON_THE_WAY = 3
"""So many records of a batch are on the broker when a task fails in the middle of producing."""


class KafkaPoint(StrEnum):
    """Points inside of the writer and the committer."""

    PRODUCING = "kafka-producing"
    """In a task: some records of the batch are on the broker, others are not."""
    FLUSHED = "kafka-flushed"
    """In a task: all records are on the broker, and it was not asked for the transaction's numbers yet."""
    BETWEEN_COMMITS = "kafka-between-commits"
    """In the driver: one transaction of a batch is committed, the next one is not."""
    RECOVERING = "kafka-recovering"
    """In the driver, which has fenced one of those transactions that nobody knows of."""
    REPEATING = "kafka-repeating"
    """In the driver, which has committed one transaction of those that were pending when it was started."""


class KafkaCrashes(CommitCrashes):
    """Says at which points a job with a :class:`FaultySink` fails."""

    known = (*CrashPoint, *KafkaPoint)


ZOMBIES: list[SinkWriter] = []
"""Writers that failed in this process, and that nobody has closed."""

BEFORE_COMMITS: dict[int, Callable[[TransactionCommitter, list[Any]], object]] = {}
"""What is called in this process before the first commit of a committer, the second one, …"""


class FaultySink(Sink):
    """A sink that fails where the folder of a :class:`KafkaCrashes` says so."""

    def __init__(self, sink: KafkaSink, folder: str | None = None) -> None:
        self._sink, self._points = sink, CrashPoints(folder)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        writer = self._sink.create_writer(context)
        assert isinstance(writer, TransactionalWriter)
        return _FaultyWriter(writer, self._points)

    def create_committer(self, context: CommitterContext) -> Committer:
        committer = self._sink.create_committer(context)
        assert isinstance(committer, TransactionCommitter)
        return _FaultyCommitter(committer, self._points)


class _FaultyWriter(SinkWriter):
    def __init__(self, writer: TransactionalWriter, points: CrashPoints) -> None:
        self.writer, self._points = writer, points
        self._written = 0
        self._dead = False

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self.writer.write(value, context)
        self._written += 1
        if self._written == RECORDS_ON_THE_WAY:
            self._reach(KafkaPoint.PRODUCING)

    def flush(self, end_of_input: bool) -> None:
        self.writer.flush(end_of_input)

    def prepare_commit(self) -> list[Any]:
        self._written = 0
        if self.writer._open is not None:
            self._reach(KafkaPoint.FLUSHED)
        return self.writer.prepare_commit()

    def write_on(self, record: OutgoingRecord) -> None:
        """Somebody who was thought dead sends one more record and prepares."""
        assert self.writer._open is not None
        self.writer._open.producer.send(record)
        self.writer.prepare_commit()

    def _reach(self, point: KafkaPoint) -> None:
        assert self.writer._open is not None
        self.writer._open.producer.flush()
        try:
            self._points.reach(point)
        except CrashPointError:
            self._dead = True
            ZOMBIES.append(self)
            raise

    def close(self) -> None:
        if not self._dead:
            self.writer.close()


class _FaultyCommitter(Committer):
    def __init__(self, committer: TransactionCommitter, points: CrashPoints) -> None:
        self._committer = committer
        self._reach = points.reach
        self._end, self._fence = committer._transactions.commit, committer._transactions.fence
        # The real one works with these.
        committer._transactions.commit = self._commit_each  # type: ignore[method-assign]
        committer._transactions.fence = self._fence_each  # type: ignore[method-assign]
        self._before: KafkaPoint | None = None
        self._behind: KafkaPoint | None = None
        self._ended = self._calls = 0

    def _commit_each(self, transactions: Iterable[Transaction]) -> None:
        for transaction in transactions:
            if self._ended and self._before is not None:
                self._reach(self._before)
            self._end([transaction])
            self._ended += 1
            if self._behind is KafkaPoint.REPEATING:
                self._reach(self._behind)

    def _fence_each(self, transactional_ids: Iterable[str]) -> None:
        for transactional_id in transactional_ids:
            self._fence([transactional_id])
            if self._behind is KafkaPoint.RECOVERING:
                self._reach(self._behind)

    def _enter(self, before: KafkaPoint | None, behind: KafkaPoint | None) -> None:
        self._before, self._behind, self._ended = before, behind, 0

    def commit(self, committables: list[Any]) -> None:
        self._calls += 1
        BEFORE_COMMITS.get(self._calls, lambda committer, prepared: None)(self._committer, committables)
        self._enter(KafkaPoint.BETWEEN_COMMITS, None)
        self._committer.commit(committables)

    def recover_and_commit(self, committables: list[Any]) -> None:
        self._enter(None, KafkaPoint.REPEATING)
        self._committer.recover_and_commit(committables)

    def abort(self, committables: list[Any]) -> None:
        self._enter(None, None)
        self._committer.abort(committables)

    def recover(self, pending: list[Any]) -> None:
        self._enter(None, KafkaPoint.RECOVERING)
        self._committer.recover(pending)

    def close(self) -> None:
        self._committer.close()
