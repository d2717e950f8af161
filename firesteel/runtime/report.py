"""A task's report of a batch to the driver: what it did, and what must be known before the next one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from firesteel.metrics.metricbase import Metric, MetricValue

__all__ = ["OperatorReport", "TaskBatchReport"]


class OperatorReport(NamedTuple):
    """What one operator did in a batch of a task."""

    records_in: int = 0
    bytes_in: int = 0
    """Of the frames that it got from other tasks."""
    frames_in: int = 0
    bytes_out: int = 0
    """Of the frames that it sent to other tasks."""
    frames_out: int = 0
    busy: float = 0.0
    """For how many seconds it worked."""
    state_entries: int = 0
    """About how many entries of keyed state it has."""


@dataclass(frozen=True)
class TaskBatchReport:
    """A task's report of a batch to the driver."""

    stage: int
    subtask: int
    records_in: int
    records_out: dict[int, int]
    watermark: int | None
    next_timer: int | None
    metrics: dict[int, dict[str, tuple[type[Metric], MetricValue]]]
    """What the users' metrics measured in this batch, by operator and identifier."""
    last: bool
    """Whether the batch ended the job's input."""
    state_sizes: dict[int, int] = field(default_factory=dict)
    """About how many bytes of keyed state each operator had in the store when the batch began."""
    union_lists: bool = False
    """Whether an operator has union list state: then a restart needs to merge what the subtasks have."""
    kept: dict[int, dict[str, Any]] = field(default_factory=dict)
    """In stage 0, which has no store: what operators that make event time must remember."""
    bytes_out: int = 0
    """What it sent to later stages and to the driver."""
    watermarks: dict[int, int] = field(default_factory=dict)
    """Event time of each operator after the batch."""
    operators: dict[int, OperatorReport] = field(default_factory=dict)
    busy: float = 0.0
    """For how many seconds the task worked: it neither waited for its input nor for somebody to take its frames."""
    pending: dict[int, int] = field(default_factory=dict)
    """By source how many records wait behind the batch."""
    labels: dict[int, dict[str, tuple[str, dict[str, str]]]] = field(default_factory=dict)
    """By operator, of metrics in groups with values: see :meth:`~firesteel.metrics.MetricGroup.labels`."""
