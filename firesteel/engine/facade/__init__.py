"""Jobs as others see them: one facade for the control socket, the command line and servers.

A command (``GetStatus``, ``Stop``, …) is a frozen record with a typed answer. A job of this process takes it
(:class:`~firesteel.engine.facade.local.LocalJob`), and so do a job of another process and one that has ended: see
:mod:`firesteel.jobs`, where all that users need is found.
"""

from __future__ import annotations

from firesteel.engine.facade.answers import (
    BatchSummary,
    CheckpointStatistics,
    CheckpointSummary,
    JobBatches,
    JobDetails,
    JobExceptions,
    JobFailure,
    JobMetrics,
    JobPlan,
    JobSnapshot,
    LogLevels,
    MetricLabels,
    OperatorMetrics,
    PerSecond,
    SavepointTaken,
    SubtaskMetrics,
    TaskMetrics,
)
from firesteel.engine.facade.commands import (
    COMMANDS,
    Cancel,
    Command,
    GetBatches,
    GetCheckpoints,
    GetExceptions,
    GetMetrics,
    GetPlan,
    GetSnapshot,
    GetStatus,
    SetLogLevel,
    Stop,
    TakeSavepoint,
    command_of,
    request_of,
)
from firesteel.engine.facade.facade import JobFacade

__all__ = [
    "COMMANDS",
    "BatchSummary",
    "Cancel",
    "CheckpointStatistics",
    "CheckpointSummary",
    "Command",
    "GetBatches",
    "GetCheckpoints",
    "GetExceptions",
    "GetMetrics",
    "GetPlan",
    "GetSnapshot",
    "GetStatus",
    "JobBatches",
    "JobDetails",
    "JobExceptions",
    "JobFacade",
    "JobFailure",
    "JobMetrics",
    "JobPlan",
    "JobSnapshot",
    "LogLevels",
    "MetricLabels",
    "OperatorMetrics",
    "PerSecond",
    "SavepointTaken",
    "SetLogLevel",
    "Stop",
    "SubtaskMetrics",
    "TakeSavepoint",
    "TaskMetrics",
    "command_of",
    "request_of",
]
