"""A job of this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel import __version__
from firesteel.common.job_status import JobStatus
from firesteel.engine.facade.answers import (
    CheckpointStatistics,
    JobDetails,
    JobExceptions,
    JobMetrics,
    JobPlan,
    JobSnapshot,
    OperatorMetrics,
    SavepointTaken,
    SubtaskMetrics,
    TaskMetrics,
)
from firesteel.engine.facade.commands import (
    Cancel,
    Command,
    GetCheckpoints,
    GetExceptions,
    GetMetrics,
    GetPlan,
    GetSnapshot,
    GetStatus,
    Stop,
    TakeSavepoint,
)
from firesteel.engine.facade.facade import JobFacade
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
            TakeSavepoint: self._savepoint,
            Stop: self._stop,
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
        graph, progress = self._job.context.spec.graph, self._job.inbox.progress
        # Copies: the job's thread goes on counting.
        measured, tasks, sizes = dict(progress.subtasks), dict(progress.tasks), dict(progress.state_sizes)
        operators = []
        for node in graph.graph.nodes.values():
            subtasks = tuple(
                SubtaskMetrics(subtask, one.records_out, one.watermark, dict(one.values))
                for (node_id, subtask), one in sorted(measured.items(), key=lambda entry: entry[0])
                if node_id == node.id
            )
            size = sizes.get(self._job.inbox.names[node.id])
            stage = graph.stage_of(node.id)
            operators.append(OperatorMetrics(node.id, node.uid, node.name, stage, node.parallelism, size, subtasks))
        return JobMetrics(
            tuple(operators),
            tuple(TaskMetrics(*place, one.records_in, one.bytes_out) for place, one in sorted(tasks.items())),
        )

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

    def _cancel(self, command: Cancel) -> JobDetails:
        self._job.cancel()
        return self._status(command)
