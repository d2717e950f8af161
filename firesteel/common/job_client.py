"""The handle on a job that runs in the background."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.common.checkpoint_statistics import CheckpointStatistics
from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus

__all__ = ["JobClient"]


class JobClient(ABC):
    """Watches and steers one job, as returned by ``execute_async()``."""

    @abstractmethod
    def get_job_id(self) -> JobID:
        """The job's ID."""

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Where the job is in its life."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Stops the job without a savepoint."""

    @abstractmethod
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stops the job after a savepoint, whose path is the result.

        Advancing to the end of event time fires all timers and windows, so that nothing is left to resume.
        """

    @abstractmethod
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Takes a savepoint of the running job, whose path is the result."""

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The job's accumulators by name, as they are now."""

    @abstractmethod
    def get_checkpoint_statistics(self) -> CompletableFuture[CheckpointStatistics]:
        """How many checkpoints were completed and failed so far, and the last ones with duration and size."""

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result, which is there once the job has finished."""
