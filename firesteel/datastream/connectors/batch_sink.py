"""The small contract of sinks: one method that takes a batch.

At least once, the tasks call it. Exactly once, the records wait in the checkpoint folder (write-ahead):

1. **Convert** (task). Each record becomes what ``write`` will get. What the system would refuse is refused here, before
   the batch is logged: a commit that can never succeed would be the end of the job.
2. **Prepare** (task). The records themselves are the committables, which the driver logs in the checkpoint folder.
   *Crash here:* there is nothing to clean up.
3. **Commit** (driver, when the batch is logged). ``write`` gets the records in portions. Each has a number that grows,
   and the same number with the same records if it comes again. *Crash after it:* a sink that remembers the number in
   the same transaction as the records says so in ``last_written``, and nothing is written twice.
"""

from __future__ import annotations

import copy
import pickle
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from firesteel.connectors.retrying import retried
from firesteel.datastream.connectors.base import (
    Committer,
    CommitterContext,
    DeliveryGuarantee,
    Sink,
    SinkWriter,
    WriterContext,
)
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import ProgramError, short_repr

__all__ = ["BatchSink", "SinkBatch"]

_PORTIONS_PER_CHECKPOINT = 1 << 20


@dataclass(frozen=True)
class SinkBatch:
    """Some records of one subtask in a row."""

    values: list[Any]
    timestamps: list[int | None] | None = None
    """The event times of the records in milliseconds, where they have some."""
    sink: str = ""
    """A name that this sink of this job has over all restarts, and no other one has."""
    number: int | None = None
    """Exactly once: greater than that of every batch before. A batch that comes again has the same number and the same
    records. None where the tasks write."""


class BatchSink(Sink):
    """A sink that is one method over a batch.

    >>> class Lines(BatchSink):
    ...     def write(self, batch):
    ...         print(batch.values)
    >>> from firesteel.testing import memory_environment
    >>> env = memory_environment()
    >>> _ = env.from_collection(["a", "b", "c"]).sink_to(Lines())
    >>> _ = env.execute()
    ['a', 'b', 'c']

    An exception fails the job, and its restart strategy decides. But a
    :class:`~firesteel.errors.ConnectorError` that may pass is tried again with back-off, and a
    :class:`~firesteel.errors.BackPressureError` after the time that it names, for ``retry_seconds``.

    With ``guarantee = DeliveryGuarantee.EXACTLY_ONCE`` the driver writes, when the checkpoint with the records is
    complete. A crash in the middle repeats a batch, with the same number and the same records. Either ``write`` makes
    of the number something that can be there only once (a file's name, an idempotency key), or it stores the number in
    the same transaction as the records, and ``last_written`` finds it there.
    """

    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE
    max_records: int = 10_000
    """How many records a batch may have."""
    retry_seconds: float = 60
    """For how long what may pass is tried again before the job fails."""

    def open(self, context: CommitterContext) -> None:
        """Called once before anything is written, where ``write`` is called: in each task, or in the driver."""

    def convert(self, value: Any) -> Any:
        """What ``write`` gets for a record, in the task that has it. The place to refuse what would be refused."""
        return value

    @abstractmethod
    def write(self, batch: SinkBatch) -> None:
        """Writes a batch. When it returns, the records must be safe."""

    def last_written(self, sink: str) -> int | None:
        """Exactly once: the number of the last batch that the system has from this sink; None if there is none."""
        return None

    def close(self) -> None:
        """Called once at the end, also after a failure."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self._exactly_once():
            return _WriteAheadWriter(self)
        return _DirectWriter(self, context)

    def create_committer(self, context: CommitterContext) -> Committer | None:
        if not self._exactly_once():
            return None
        # A copy: what it opens must not travel to the tasks.
        return _Committer(copy.deepcopy(self), context)

    def _exactly_once(self) -> bool:
        if not isinstance(self.guarantee, DeliveryGuarantee):
            # A text would be at least once, and nobody would know.
            raise ProgramError(
                f"guarantee of {type(self).__name__} must be a DeliveryGuarantee, such as "
                f"DeliveryGuarantee.EXACTLY_ONCE, got {short_repr(self.guarantee, 80)}."
            )
        return self.guarantee is DeliveryGuarantee.EXACTLY_ONCE


class _Buffer(SinkWriter):
    """Keeps what comes, converted."""

    def __init__(self, sink: BatchSink) -> None:
        self._sink = sink
        self._converts = type(sink).convert is not BatchSink.convert
        self._values: list[Any] = []
        self._timestamps: list[int | None] | None = None

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        moment = context.timestamp()
        self.write_all(iter((value,)), None if moment is None else [moment])

    def write_all(self, values: Iterator[Any], timestamps: list[int] | None) -> None:
        # Before anything is taken: an error in what is sent now is not about a record that comes now.
        if len(self._values) >= self._sink.max_records:
            self.send(whole=True)
        if self._converts:
            self._values.extend(map(self._sink.convert, values))
        else:
            self._values.extend(values)
        if timestamps is not None:
            if self._timestamps is None:
                self._timestamps = [None] * (len(self._values) - len(timestamps))
            self._timestamps.extend(timestamps)
        elif self._timestamps is not None:
            self._timestamps.extend(repeat(None, len(self._values) - len(self._timestamps)))

    def send(self, whole: bool) -> None:
        """Lets go of what is there; with ``whole`` only of portions that are full."""
        size = max(1, self._sink.max_records)
        end = len(self._values) // size * size if whole else len(self._values)
        for start in range(0, end, size):
            times = self._timestamps
            self.send_portion(
                self._values[start : min(start + size, end)],
                None if times is None else times[start : min(start + size, end)],
            )
        self._values = self._values[end:]
        self._timestamps = None if self._timestamps is None else self._timestamps[end:]

    @abstractmethod
    def send_portion(self, values: list[Any], timestamps: list[int | None] | None) -> None:
        """Takes some of it."""

    def flush(self, end_of_input: bool) -> None:
        self.send(whole=False)


class _DirectWriter(_Buffer):
    """The task writes."""

    def __init__(self, sink: BatchSink, context: WriterContext) -> None:
        super().__init__(sink)
        self._name = context.name_prefix()
        sink.open(context)

    def send_portion(self, values: list[Any], timestamps: list[int | None] | None) -> None:
        batch = SinkBatch(values, timestamps, self._name)
        retried(lambda: self._sink.write(batch), self._sink.retry_seconds, _doing(self._sink))

    def close(self) -> None:
        self._sink.close()


class _WriteAheadWriter(_Buffer):
    """The task keeps records for the driver."""

    def __init__(self, sink: BatchSink) -> None:
        super().__init__(sink)
        self._portions: list[bytes] = []

    def send_portion(self, values: list[Any], timestamps: list[int | None] | None) -> None:
        self._portions.append(pickle.dumps((values, timestamps), protocol=5))

    def prepare_commit(self) -> list[Any]:
        portions, self._portions = self._portions, []
        return list(portions)


class _Committer(Committer):
    """The driver writes."""

    def __init__(self, sink: BatchSink, context: CommitterContext) -> None:
        self._sink, self._context = sink, context
        self._opened = False
        self._last: int | None = None

    def commit(self, committables: list[Any]) -> None:
        name = self._context.name_prefix()
        if not self._opened:
            self._sink.open(self._context)
            self._opened = True
            self._last = self._retried(lambda: self._sink.last_written(name))
        first = self._context.checkpoint_id() * _PORTIONS_PER_CHECKPOINT
        for number, portion in enumerate(committables, first):
            if self._last is None or number > self._last:
                values, timestamps = pickle.loads(portion)
                batch = SinkBatch(values, timestamps, name, number)
                self._retried(lambda batch=batch: self._sink.write(batch))
                self._last = number

    def _retried(self, action: Any) -> Any:
        return retried(action, self._sink.retry_seconds, _doing(self._sink))

    def close(self) -> None:
        if self._opened:
            self._sink.close()


def _doing(sink: BatchSink) -> str:
    return f"a batch for {type(sink).__name__}"
