"""Sources whose records go to a log before they count, because nobody could read them a second time.

A thread receives: it asks the system for more, and appends what comes to a log in the job's directory. Positions are
numbers of records in the log, so a batch that is repeated reads what it read before. Tasks get their records with their
share, and need no access to the log.
"""

from __future__ import annotations

import itertools
import logging
import threading
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, TypeVar

from firesteel.connectors.blocks import blocks
from firesteel.connectors.piece_log import Part, PieceLog, records_of
from firesteel.connectors.source import CHUNK_RECORDS, Position, Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.errors import CheckpointError

__all__ = ["LoggedEnumerator", "LoggedReader"]

logger = logging.getLogger("firesteel.connectors")

MOST_WAITING = 200_000
"""So many records may wait in the log; then nothing is received until they are read."""
RETRY_SECONDS = 0.5

T = TypeVar("T")
Logged = list[Part]
"""A share: pieces of the log, of which its task makes records."""


class LoggedEnumerator(SplitEnumerator[Logged]):
    """Receives, logs and plans. A subclass says in ``receive`` how it gets at records."""

    keeps_files = True
    bounded = False

    def __getstate__(self) -> dict[str, Any]:
        # What start() made belongs to the process that runs the source.
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_live_")}

    @abstractmethod
    def receive(self, log: PieceLog, stopping: threading.Event) -> None:
        """Appends records to the log, through :meth:`keep`, until ``stopping`` is set or there are no more. It runs in
        a thread of its own; what it raises fails the job."""

    def acknowledge(self, position: int) -> None:
        """A checkpoint has all records before this position. Called by the thread that plans."""

    def start(self, directory: str) -> None:
        self._live_log = PieceLog(directory)
        self._live_offered = self._live_log.end
        """No position of this log lies behind this."""
        self._live_read = self._live_checkpointed = 0
        self._live_room = threading.Condition()
        self._live_stopping = threading.Event()
        self._live_thread: threading.Thread | None = None
        self._live_failure: BaseException | None = None
        self._live_over = False

    def stop(self) -> None:
        if not hasattr(self, "_live_stopping"):
            return
        self._live_stopping.set()
        with self._live_room:
            self._live_room.notify_all()
        if self._live_thread is not None:
            self._live_thread.join(2)
        self._live_log.close()

    def keep(self, records: list[Any], cursor: Any) -> bool:
        """Appends a piece when there is room for it. False if the source was stopped before."""
        log, room = self._live_log, self._live_room
        with room:
            room.wait_for(lambda: self._live_stopping.is_set() or log.end - self._live_read < MOST_WAITING)
        while not self._live_stopping.is_set():
            try:
                log.append(records, cursor)
                return True
            except OSError as error:
                # A disk that is full is no fault of the system that is read: nothing is lost while this waits.
                logger.warning("What is received cannot be written to the job's folder yet: %s", error)
                self._live_stopping.wait(RETRY_SECONDS)
        return False

    def _receive(self) -> None:
        try:
            self.receive(self._live_log, self._live_stopping)
            self._live_over = not self._live_stopping.is_set()
        except BaseException as error:
            self._live_failure = error

    def _check(self, position: int) -> None:
        """Raises if the log does not have what a position says was received."""
        if position > self._live_offered:
            raise CheckpointError(
                f"The job's position is {position}, but the log of what was received, {self._live_log.directory}, has "
                f"{self._live_offered} records. It was cut off, or is not that of this checkpoint or savepoint. Put it "
                "back to go on, or start the job without its checkpoint or savepoint."
            )

    def initial(self) -> Position:
        return 0

    def latest(self, position: int, max_records: int) -> Position:
        self._check(position)
        if self._live_failure is not None:
            # Whoever restarts the job asks again, and then it is tried again.
            failure, self._live_failure, self._live_thread = self._live_failure, None, None
            raise failure
        with self._live_room:
            self._live_read = max(self._live_read, position)
            self._live_room.notify_all()
        # Here, and not when the checkpoint is complete: nothing vanishes while a savepoint is being taken.
        self._live_log.forget(min(position, self._live_checkpointed))
        if self._live_thread is None and not self._live_stopping.is_set():
            # It receives when it is asked for more than it has: whoever only repeats a batch receives nothing.
            self._live_thread = threading.Thread(target=self._receive, name="firesteel-receive", daemon=True)
            self._live_thread.start()
        end = min(self._live_log.end, position + max_records)
        self._live_offered = max(self._live_offered, end)
        return end

    def ended(self, position: int) -> bool:
        self._check(position)
        return self._live_over and position >= self._live_log.end

    def count(self, start: int, end: int) -> int:
        return end - start

    def size(self, start: int, end: int) -> int | None:
        return self._live_log.size(start, end)

    def pending(self, position: int) -> int | None:
        return max(0, self._live_log.end - position)

    def plan(self, start: int, end: int, parallelism: int) -> list[list[SplitRange[Logged]]]:
        self._check(end)
        ranges = [share or (end, end) for share in blocks(start, end, parallelism)]
        shares = self._live_log.shares(ranges)
        return [
            [SplitRange(parts, 0, high - low)] if parts else []
            for parts, (low, high) in zip(shares, ranges, strict=True)
        ]

    @property
    def learns_of_checkpoints(self) -> bool:
        return True

    def committed(self, position: int) -> None:
        if hasattr(self, "_live_log"):
            self._live_checkpointed = max(self._live_checkpointed, position)
            self.acknowledge(position)


class LoggedReader(SourceReader[Logged, T]):
    """Hands over what a share holds."""

    def read(self, split: Logged, start: int, end: int) -> Iterator[Records[T]]:
        records = itertools.islice(itertools.chain.from_iterable(map(records_of, split)), start, end)
        while chunk := list(itertools.islice(records, CHUNK_RECORDS)):
            yield self.records(chunk)

    def records(self, logged: list[Any]) -> Records[T]:
        """What was logged as records."""
        return Records(logged)
