"""Jobs as rows of a table: each with its rate, its lag and its last error."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from firesteel.cluster.jobs_view import JobsView
from firesteel.common.job_status import JobStatus
from firesteel.engine.facade import CheckpointStatistics, JobDetails
from firesteel.engine.facade.encoding import encoded
from firesteel.errors import FiresteelError
from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP

__all__ = ["JobRows", "lag_of", "rate_of_history"]

_WINDOW = 30.0
"""Seconds over which a rate is told."""


@dataclass
class _Seen:
    """What was seen of a job before."""

    samples: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=64))
    attempt: int = 0
    error: str | None = None


class JobRows:
    """Remembers how many records a job had, so that rates can be told."""

    def __init__(self, view: JobsView) -> None:
        self._view = view
        self._seen: dict[str, _Seen] = {}
        self._lock = threading.Lock()

    def rows(self) -> list[dict[str, Any]]:
        """All jobs."""
        jobs = self._view.jobs()
        with self._lock:
            for gone in self._seen.keys() - {job.id for job in jobs}:
                del self._seen[gone]
        return [self.row(job) for job in jobs]

    def row(self, job: JobDetails) -> dict[str, Any]:
        """One job: its details, with what is told besides."""
        now = time.time()
        return {
            **encoded(job),
            "duration": job.runtime(int(now * 1000)),
            "rate": self._rate(job, now),
            "lag": lag_of(job, int(now * 1000)),
            "lastError": job.failure or self._error(job),
        }

    def _rate(self, job: JobDetails, now: float) -> float | None:
        if job.ended is not None:
            return None if job.ended <= job.started else job.records * 1000 / (job.ended - job.started)
        with self._lock:
            seen = self._seen.setdefault(job.id, _Seen())
            samples = seen.samples
            if samples and job.records < samples[-1][1]:
                # Another driver runs it now, which began to count anew.
                samples.clear()
            if not samples or now - samples[-1][0] > 0.5:
                samples.append((now, job.records))
            while len(samples) > 2 and now - samples[1][0] > _WINDOW:
                samples.popleft()
            (first, before), (last, after) = samples[0], samples[-1]
        if last - first >= 1:
            return (after - before) / (last - first)
        try:
            return rate_of_history(self._view.job(job.id).checkpoints())
        except (KeyError, FiresteelError):
            return None

    def _error(self, job: JobDetails) -> str | None:
        """Why a job that goes on was started again last."""
        if not job.attempt:
            return None
        with self._lock:
            seen = self._seen.setdefault(job.id, _Seen())
            if seen.attempt == job.attempt:
                return seen.error
        try:
            failures = self._view.job(job.id).exceptions().failures
        except (KeyError, FiresteelError):
            return None
        with self._lock:
            seen.attempt, seen.error = job.attempt, failures[0].message if failures else None
            return seen.error


def rate_of_history(checkpoints: CheckpointStatistics) -> float | None:
    """Records a second over the micro-batches that are remembered.

    >>> from firesteel.engine.facade import CheckpointSummary
    >>> batches = tuple(CheckpointSummary(n, True, 1_000 * n, 500, records=200) for n in range(5))
    >>> rate_of_history(CheckpointStatistics(completed=5, history=batches))
    200.0
    """
    done = [one for one in checkpoints.history if one.completed]
    if len(done) < 2:
        return None
    seconds = (done[-1].trigger_timestamp - done[0].trigger_timestamp) / 1000
    return sum(one.records for one in done[1:]) / seconds if seconds > 0 else None


def lag_of(job: JobDetails, now: int) -> int | None:
    """By how many milliseconds event time is behind the clock; None where it does not mean anything."""
    if job.watermark is None or not MIN_TIMESTAMP < job.watermark < MAX_WATERMARK:
        return None
    if job.status is not JobStatus.RUNNING:
        return None
    return max(0, now - job.watermark)
