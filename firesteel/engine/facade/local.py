"""A job of this process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel import __version__
from firesteel.common.job_status import JobStatus
from firesteel.engine.facade.answers import (
    CheckpointStatistics,
    JobBatches,
    JobDetails,
    JobExceptions,
    JobMetrics,
    JobPlan,
    JobSnapshot,
    LogLevels,
    SavepointTaken,
)
from firesteel.engine.facade.commands import (
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
)
from firesteel.engine.facade.facade import JobFacade
from firesteel.engine.facade.measured import operator_metrics, task_metrics
from firesteel.errors import JobCommandError
from firesteel.graph.plan import plan_json

if TYPE_CHECKING:
    from firesteel.engine.job import EngineJob

__all__ = ["LocalJob"]

AnswerT = TypeVar("AnswerT")


class LocalJob(JobFacade):
    """Asks the job itself."""

    def __init__(self, job: EngineJob) -> None:
        self._job = job
        self._handlers: dict[type[Command[Any]], Callable[[Any], Any]] = {
            GetStatus: self._status,
            GetMetrics: self._metrics,
            GetPlan: self._plan,
            GetCheckpoints: self._checkpoints,
            GetExceptions: self._exceptions,
            GetSnapshot: self._snapshot,
            GetBatches: self._batches,
            TakeSavepoint: self._savepoint,
            Stop: self._stop,
            SetLogLevel: self._set_log_level,
            Cancel: self._cancel,
        }

    @property
    def id(self) -> str:
        return self._job.job_id

    @property
    def name(self) -> str:
        return self._job.context.name

    def execute(self, command: Command[AnswerT]) -> AnswerT:
        handler = self._handlers.get(type(command))
        if handler is None:
            raise JobCommandError(f"A job does not know the command {type(command).__name__}.")
        answer: AnswerT = handler(command)
        return answer

    def _status(self, command: Command[Any]) -> JobDetails:
        job, context = self._job, self._job.context
        status, times, progress = job.life.status, job.life.times, context.inbox.progress
        ended = status.is_terminal_state()
        return JobDetails(
            id=self.id,
            name=self.name,
            status=status,
            engine=job.engine.name,
            mode="BATCH" if context.spec.batch_mode else "STREAMING",
            pid=os.getpid(),
            started=times[JobStatus.CREATED.name],
            ended=times[status.name] if ended else None,
            where=job.where,
            parallelism=context.spec.graph.parallelism,
            attempt=context.spec.attempt,
            records=progress.records,
            batches=progress.batches,
            watermark=progress.watermark,
            checkpoint_folder=context.checkpointing.folder,
            failure=context.failures.last if status is JobStatus.FAILED else None,
            times=times,
            firesteel=__version__,
        )

    def _metrics(self, command: GetMetrics) -> JobMetrics:
        job = self._job
        graph, progress, life = job.context.spec.graph, job.inbox.progress, job.life
        operators = operator_metrics(graph, progress, job.inbox.names)
        waiting = [one.pending for one in operators if one.pending is not None]
        times, now = life.times, int(time.time() * 1000)
        # Of a job that has ended, the time of its last status is its end.
        until = now if life.alive else max(times.values())
        restarting = life.status is JobStatus.RESTARTING
        return JobMetrics(
            operators,
            task_metrics(progress),
            uptime_ms=0 if restarting or "RUNNING" not in times else max(0, until - times["RUNNING"]),
            downtime_ms=max(0, now - times["RESTARTING"]) if restarting else 0,
            restarts=job.context.spec.attempt,
            pending=sum(waiting) if waiting else None,
        )

    def _batches(self, command: GetBatches) -> JobBatches:
        self._job.update_statistics()
        found: JobBatches = self._job.context.batches.batches(command.after)
        return found

    def _plan(self, command: GetPlan) -> JobPlan:
        return JobPlan(json.loads(plan_json(self._job.context.spec.graph)))

    def _checkpoints(self, command: GetCheckpoints) -> CheckpointStatistics:
        return self._job.get_checkpoint_statistics().result()

    def _exceptions(self, command: GetExceptions) -> JobExceptions:
        return self._job.context.failures.history()

    def _snapshot(self, command: GetSnapshot) -> JobSnapshot:
        return JobSnapshot(self.status(), self.metrics(), self.checkpoints(), self.exceptions())

    def _savepoint(self, command: TakeSavepoint) -> SavepointTaken:
        return SavepointTaken(self._job.trigger_savepoint(command.directory).result())

    def _stop(self, command: Stop) -> SavepointTaken:
        return SavepointTaken(self._job.stop_with_savepoint(command.drain, command.directory).result())

    def _set_log_level(self, command: SetLogLevel) -> LogLevels:
        return LogLevels(self._job.context.log.set_level(command.level, command.logger))

    def _cancel(self, command: Cancel) -> JobDetails:
        self._job.cancel()
        return self._status(command)
