"""What the writers of a partitioned table tell its committer."""

from __future__ import annotations

import copyreg
from dataclasses import dataclass
from typing import Any

from firesteel.durable.names import stored_as

__all__ = ["PartitionReport"]


@dataclass(frozen=True)
class PartitionReport:
    """What a subtask says at the end of a batch."""

    subtask: int
    parallelism: int
    time: int
    """How far the trigger's time has come here."""
    ended: bool
    """Whether no records will come any more."""
    written: dict[str, int]
    """The partitions that were written to, each with the time after which it is complete."""


@stored_as("partition_report")
def _report(subtask: int, parallelism: int, time: int, ended: bool, written: dict[str, int]) -> PartitionReport:
    return PartitionReport(subtask, parallelism, time, ended, written)


def _reduce_report(report: PartitionReport) -> tuple[Any, ...]:
    return _report, (report.subtask, report.parallelism, report.time, report.ended, report.written)


# The driver logs them until they are committed.
copyreg.pickle(PartitionReport, _reduce_report)
