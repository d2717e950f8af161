"""Tells readers of a partitioned table that a partition is complete: a file ``_SUCCESS`` in its folder.

How it fits the file sink (:mod:`firesteel.connectors.files`):

1. A subtask's writer remembers the partitions that it has written to, and from when on each is *complete*: a time of
   the watermark, or of the clock.
2. When a batch ends, parts in progress of complete partitions are finished, whatever the rolling policy says. Besides
   its parts the writer hands over a *report*: how far its time has come, and which partitions it has written to.
3. The committer makes the parts visible first. Then it writes the file into each partition that is complete for *all*
   subtasks and has no part that readers do not see yet. What is complete later it writes down, in a small hidden file
   of the sink (:mod:`.partition_committer`).

A crash at any point repeats a file ``_SUCCESS`` at worst. Rows that come after it make the partition complete again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.rolling import PartFileInfo, RollingPolicy
from firesteel.connectors.files.writer import FileSinkSettings, FileWriter
from firesteel.connectors.table.partition_committer import PartitionCommitter
from firesteel.connectors.table.partition_folders import FolderBatch
from firesteel.connectors.table.partition_report import PartitionReport
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.datastream.functions import SinkFunction

__all__ = [
    "SUCCESS_FILE",
    "CommitTrigger",
    "PartitionCommittingSink",
    "PartitionTimeTrigger",
    "ProcessTimeTrigger",
]

SUCCESS_FILE = "_SUCCESS"


class CommitTrigger(ABC):
    """When a partition is complete."""

    @abstractmethod
    def complete_after(self, folder: str, now: int) -> int:
        """The time after which it is, for a partition that is written to now."""

    @abstractmethod
    def time(self, context: WriterContext) -> int:
        """How far that time has come."""

    def wake_at(self, complete_after: Collection[int]) -> int | None:
        """When a writer has to look again though no records come."""
        return None


@dataclass(frozen=True)
class ProcessTimeTrigger(CommitTrigger):
    """Some milliseconds after the first row; without a delay, when the batch ends.

    >>> ProcessTimeTrigger(1000).complete_after("day=2024-01-01", now=5000)
    6000
    """

    delay: int = 0

    def complete_after(self, folder: str, now: int) -> int:
        return now + self.delay if self.delay else now - 1

    def time(self, context: WriterContext) -> int:
        return context.current_processing_time()

    def wake_at(self, complete_after: Collection[int]) -> int | None:
        return min(complete_after) + 1 if complete_after else None


@dataclass(frozen=True)
class PartitionTimeTrigger(CommitTrigger):
    """When the watermark has passed the time that the partition's folder says, and a delay.

    >>> PartitionTimeTrigger(lambda folder: 10 * int(folder[2:]), delay=5).complete_after("n=3", now=0)
    35
    """

    time_of: Callable[[str], int]
    """The milliseconds of a folder."""
    delay: int = 0

    def complete_after(self, folder: str, now: int) -> int:
        return self.time_of(folder) + self.delay

    def time(self, context: WriterContext) -> int:
        return context.current_watermark()


class _ClosingPolicy(RollingPolicy):
    """Ends the parts of complete partitions; for the rest another policy decides."""

    def __init__(self, inner: RollingPolicy) -> None:
        self._inner = inner
        self.complete: Collection[str] = ()

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        return part.bucket_id in self.complete or self._inner.should_roll_on_checkpoint(part)

    def should_roll_on_event(self, part: PartFileInfo, element: Any) -> bool:
        return self._inner.should_roll_on_event(part, element)

    def should_roll_on_processing_time(self, part: PartFileInfo, current_time: int) -> bool:
        return self._inner.should_roll_on_processing_time(part, current_time)


class _Writer(SinkWriter):
    """Steps 1 and 2."""

    def __init__(self, settings: FileSinkSettings, trigger: CommitTrigger, context: WriterContext) -> None:
        self._policy = _ClosingPolicy(settings.policy)
        self._inner = FileWriter(replace(settings, policy=self._policy), context)
        self._trigger, self._context = trigger, context
        self._open: dict[str, int] = {}
        """The partitions that are not complete, each with the time after which it is."""
        self._written: dict[str, int] = {}
        self._ended = False

    def write(self, value: FolderBatch, context: SinkFunction.Context) -> None:
        folder = value.folder
        if folder not in self._written:
            if folder not in self._open:
                now = self._context.current_processing_time()
                self._open[folder] = self._trigger.complete_after(folder, now)
            self._written[folder] = self._open[folder]
        self._inner.write(value, context)

    def flush(self, end_of_input: bool) -> None:
        self._ended = end_of_input
        now = self._trigger.time(self._context)
        complete = {folder for folder, after in self._open.items() if end_of_input or now > after}
        self._policy.complete = complete
        self._inner.flush(end_of_input)
        for folder in complete:
            del self._open[folder]

    def prepare_commit(self) -> list[Any]:
        context, written = self._context, self._written
        self._written = {}
        time = self._trigger.time(context)
        report = PartitionReport(context.subtask(), context.parallelism(), time, self._ended, written)
        return [*self._inner.prepare_commit(), report]

    def wake_at(self) -> int | None:
        moments = (self._inner.wake_at(), self._trigger.wake_at(self._open.values()))
        return min((each for each in moments if each is not None), default=None)

    def close(self) -> None:
        self._inner.close()


class PartitionCommittingSink(Sink):
    """A file sink of :class:`~.partition_folders.FolderBatch` whose partitions are marked when they are complete."""

    def __init__(self, settings: FileSinkSettings, trigger: CommitTrigger, success_file: str = SUCCESS_FILE) -> None:
        self._settings, self._trigger, self._success_file = settings, trigger, success_file

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(self._settings, self._trigger, context)

    def create_committer(self, context: CommitterContext) -> Committer:
        settings = self._settings
        inner = FileCommitter(settings.base, context, settings.compaction, settings.check_interval / 1000)
        return PartitionCommitter(inner, settings.base, self._success_file, context)
