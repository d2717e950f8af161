"""What a job answers: frozen records of plain data, so that each can be written as JSON and read again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel.common.checkpoint_statistics import CheckpointStatistics, CheckpointSummary
from firesteel.common.job_status import JobStatus

__all__ = [
    "BatchSummary",
    "CheckpointStatistics",
    "CheckpointSummary",
    "JobBatches",
    "JobDetails",
    "JobExceptions",
    "JobFailure",
    "JobMetrics",
    "JobPlan",
    "JobSnapshot",
    "LogLevels",
    "MetricLabels",
    "OperatorMetrics",
    "PerSecond",
    "SavepointTaken",
    "SubtaskMetrics",
    "TaskMetrics",
]


@dataclass(frozen=True)
class JobDetails:
    """What a job is, and where it is in its life. Times are in milliseconds since 1970."""

    id: str
    name: str
    status: JobStatus
    engine: str
    """``spark`` or ``memory``."""
    mode: str
    """``STREAMING`` or ``BATCH``."""
    pid: int
    """The driver's process."""
    started: int
    ended: int | None = None
    """None while it runs."""
    where: str = ""
    """A short description of where it runs: Spark's master and the address of its page."""
    parallelism: int = 1
    """That of the widest operator."""
    attempt: int = 0
    """How often it was restarted after a failure."""
    records: int = 0
    """Records that its sources gave."""
    batches: int = 0
    watermark: int | None = None
    """The smallest watermark of its last stage."""
    checkpoint_folder: str | None = None
    """Where a later start goes on from; None where nothing is kept."""
    failure: str | None = None
    """What ended it, in a line, if it failed."""
    times: dict[str, int] = field(default_factory=dict, hash=False)
    """When it took each status that it had, the last time."""
    firesteel: str = ""
    """The version that runs it."""

    def runtime(self, now: int) -> int:
        """For how long it has been running, or ran."""
        return max(0, (now if self.ended is None else self.ended) - self.started)


@dataclass(frozen=True)
class PerSecond:
    """How much of something there was a second, over about the last minute."""

    records_in: float = 0.0
    records_out: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    frames_out: float = 0.0
    busy_ms: float = 0.0
    """1000 is work without a pause."""


@dataclass(frozen=True)
class MetricLabels:
    """The name of a metric without the values of its groups, and these."""

    name: str
    variables: dict[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class SubtaskMetrics:
    """One subtask of an operator."""

    subtask: int
    records_out: int = 0
    """Records that it has put out."""
    watermark: int | None = None
    """Its event time after the last batch; None before the first one."""
    values: dict[str, Any] = field(default_factory=dict, hash=False)
    """The metrics that the user's function registered, by identifier: a number, or the parts of a meter or of a
    distribution. Windows count records that they dropped as late here, too, under Flink's name
    ``numLateRecordsDropped``."""
    records_in: int = 0
    bytes_in: int = 0
    """Of the frames that came from other tasks."""
    bytes_out: int = 0
    """Of the frames that went to other tasks."""
    frames_in: int = 0
    frames_out: int = 0
    busy_ms: float = 0.0
    """How long it worked, without the operators that it calls."""
    state_size: int = 0
    """About how many bytes of keyed state it had when the last batch began."""
    state_entries: int = 0
    """About how many entries they are."""
    per_second: PerSecond = PerSecond()
    labels: dict[str, MetricLabels] = field(default_factory=dict, hash=False)
    """Of the user's metrics in groups that have a value, by identifier: what systems with labels call them."""


@dataclass(frozen=True)
class OperatorMetrics:
    """One operator. ``stage`` says which tasks it is part of."""

    id: int
    uid: str
    name: str
    stage: int
    parallelism: int
    state_size: int | None = None
    """About how many bytes of keyed state it had when the last batch began."""
    subtasks: tuple[SubtaskMetrics, ...] = ()
    kind: str = "operator"
    """``source``, ``sink`` or ``operator``."""
    chain: int = -1
    """The number of the first operator of its chain, which is what Flink calls a task."""
    pending: int | None = None
    """A source: how many records waited behind the last batch, where it knows."""

    @property
    def records_in(self) -> int:
        return sum(one.records_in for one in self.subtasks)

    @property
    def records_out(self) -> int:
        return sum(one.records_out for one in self.subtasks)


@dataclass(frozen=True)
class TaskMetrics:
    """One task: a subtask of all operators of a stage that are chained together."""

    stage: int
    subtask: int
    records_in: int = 0
    bytes_out: int = 0
    """What it has sent to later stages and to the driver."""
    busy_ms: float = 0.0
    """How long it worked: it neither waited for its input nor for somebody to take its results."""


@dataclass(frozen=True)
class JobMetrics:
    """What tasks have reported since the job was started here."""

    operators: tuple[OperatorMetrics, ...] = ()
    tasks: tuple[TaskMetrics, ...] = ()
    uptime_ms: int = 0
    """For how long the job has been running without a break, or ran at its end."""
    downtime_ms: int = 0
    """For how long it has been about to restart; 0 while it runs."""
    restarts: int = 0
    pending: int | None = None
    """How many records waited behind the last batch, in all sources that know it."""


@dataclass(frozen=True)
class BatchSummary:
    """One micro-batch."""

    number: int
    """The same as that of its checkpoint. One that failed is repeated under the same number."""
    started: int
    """In milliseconds since 1970."""
    duration_ms: float = 0.0
    attempt: int = 0
    completed: bool = False
    """False if it failed."""
    records: int = 0
    """Records that the sources gave to it."""
    bytes: int = 0
    """Bytes that its tasks sent to later stages and to the driver."""
    watermark: int | None = None
    """The smallest watermark of the job's last stage after it."""
    pending: int | None = None
    """Records that waited behind it, where the sources know."""
    parts: dict[str, float] = field(default_factory=dict, hash=False)
    """What it spent its time on, in milliseconds. ``latest_offset``, ``planning`` and ``wal_commit`` come before its
    tasks, ``tasks`` are all of them, ``results`` is what the driver does with what they gave, ``commit_offsets`` logs
    the batch, and ``sink_commit`` makes visible what sinks have written; ``add_batch`` is what else Spark needs to run
    the tasks. An engine has those parts that it knows."""


@dataclass(frozen=True)
class JobBatches:
    """The last micro-batches, oldest first."""

    batches: tuple[BatchSummary, ...] = ()


@dataclass(frozen=True)
class JobPlan:
    """The job as a graph: operators, what feeds them, how they are chained and placed on stages."""

    plan: dict[str, Any] = field(hash=False)
    """As ``firesteel plan`` prints it, in the form that Flink's plan visualizer reads."""


@dataclass(frozen=True)
class JobFailure:
    """One failure of a job. What is known of it depends on where it happened."""

    timestamp: int
    """In milliseconds since 1970."""
    attempt: int
    """The attempt that failed; the first one is 0."""
    message: str
    """The message for people."""
    exception: str = ""
    """The class of what was raised, with its module."""
    restarted: bool = False
    """Whether the job was started again after it."""
    operator: str | None = None
    subtask: int | None = None
    built_at: str | None = None
    """The user's line that added the operator to the program."""
    raised_at: str | None = None
    """The user's line that failed."""
    element: str | None = None
    """The record that it failed on, shortened."""
    trace: str = ""
    """The whole trace, shortened from its beginning."""


@dataclass(frozen=True)
class JobExceptions:
    """The failures of a job, newest first."""

    failures: tuple[JobFailure, ...] = ()
    truncated: bool = False
    """Whether there were more, which are forgotten."""


@dataclass(frozen=True)
class JobSnapshot:
    """All that changes while a job runs, in one answer: for those who ask again and again."""

    status: JobDetails
    metrics: JobMetrics
    checkpoints: CheckpointStatistics
    exceptions: JobExceptions


@dataclass(frozen=True)
class LogLevels:
    """The levels that a job has set."""

    levels: dict[str, str] = field(default_factory=dict, hash=False)
    """By logger; the root logger has no name."""


@dataclass(frozen=True)
class SavepointTaken:
    """Where a savepoint is."""

    path: str
