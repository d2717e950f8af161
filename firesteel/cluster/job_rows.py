"""Jobs as rows of a table: each with its rate, its lag and its last error."""

from __future__ import annotations

from typing import Any

from firesteel.cluster.jobs_view import JobsView
from firesteel.common.job_status import JobStatus
from firesteel.engine.facade import CheckpointStatistics, JobDetails, JobFailure, JobMetrics
from firesteel.engine.facade.encoding import encoded
from firesteel.errors import FiresteelError
from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP

__all__ = ["JobRows", "cause_of", "lag_of", "rate_of"]


class JobRows:
    """Rows of all jobs. Remembers what a job failed with: that is asked for once for each attempt."""

    def __init__(self, view: JobsView) -> None:
        self._view = view
        self._errors: dict[str, tuple[tuple[int, int | None], str | None]] = {}

    def rows(self, now: int) -> list[dict[str, Any]]:
        jobs = self._view.jobs()
        for gone in self._errors.keys() - {job.id for job in jobs}:
            self._errors.pop(gone, None)
        return [self.row(job, *self._measured(job), now) for job in jobs]

    def _measured(self, job: JobDetails) -> tuple[JobMetrics, CheckpointStatistics]:
        if job.ended is None:
            try:
                facade = self._view.job(job.id)
                return facade.metrics(), facade.checkpoints()
            except (KeyError, FiresteelError, TimeoutError):
                """It has ended just now, or does not answer."""
        return JobMetrics(), CheckpointStatistics()

    def row(self, job: JobDetails, metrics: JobMetrics, checkpoints: CheckpointStatistics, now: int) -> dict[str, Any]:
        """One job: its details, with more to show."""
        duration, running = job.runtime(now), job.ended is None
        return {
            **encoded(job),
            "duration": duration,
            "rate": rate_of(metrics, checkpoints) if running else job.records * 1000 / max(1, duration),
            "lag": lag_of(job.watermark, now) if job.status is JobStatus.RUNNING else None,
            "pending": metrics.pending if running else None,
            "lastError": self._error(job),
        }

    def _error(self, job: JobDetails) -> str | None:
        """Why a job failed, or was started again last."""
        if not job.attempt and job.failure is None:
            return None
        moment = (job.attempt, job.ended)
        known = self._errors.get(job.id)
        if known is not None and known[0] == moment:
            return known[1]
        try:
            failures = self._view.job(job.id).exceptions().failures
        except (KeyError, FiresteelError, TimeoutError):
            return job.failure
        error = cause_of(failures[0]) if failures else job.failure
        self._errors[job.id] = (moment, error)
        return error


def cause_of(failure: JobFailure) -> str:
    """What was raised, in a line: a message of several lines says at its end what, and before that where.

    >>> text = "Operator 'parse' failed in subtask 1.\\n  operator  parse\\n  ValueError: bad"
    >>> cause_of(JobFailure(0, 0, text, operator="parse"))
    'ValueError: bad'
    >>> cause_of(JobFailure(0, 0, "The checkpoint is of another job.\\nUse another folder."))
    'The checkpoint is of another job.'
    """
    lines = [line.strip() for line in failure.message.splitlines() if line.strip()] or [failure.exception]
    return lines[-1] if failure.operator is not None else lines[0]


def rate_of(metrics: JobMetrics, checkpoints: CheckpointStatistics) -> float | None:
    """Records a second that the sources give: over about the last minute, or over the micro-batches that are known.

    >>> from firesteel.engine.facade import CheckpointSummary
    >>> batches = tuple(CheckpointSummary(n, True, 1_000 * n, 500, records=200) for n in range(5))
    >>> rate_of(JobMetrics(), CheckpointStatistics(completed=5, history=batches))
    200.0
    """
    sources = [one for one in metrics.operators if one.kind == "source"]
    rates = [each.per_second.records_out for one in sources for each in one.subtasks]
    if rates:
        return sum(rates)
    done = [one for one in checkpoints.history if one.completed]
    if len(done) < 2:
        return None
    seconds = (done[-1].trigger_timestamp - done[0].trigger_timestamp) / 1000
    return sum(one.records for one in done[1:]) / seconds if seconds > 0 else None


def lag_of(watermark: int | None, now: int) -> int | None:
    """By how many milliseconds event time is behind the clock; None where it does not mean anything."""
    if watermark is None or not MIN_TIMESTAMP < watermark < MAX_WATERMARK:
        return None
    return max(0, now - watermark)
