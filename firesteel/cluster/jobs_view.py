"""What the page's own API asks for. The job manager answers from its registry; :class:`JobsOfUser` from what this user
has started by hand on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from firesteel.engine.facade import JobDetails, JobFacade
from firesteel.errors import FiresteelError
from firesteel.jobs import list_jobs

__all__ = ["JobsOfUser", "JobsView", "LogFile"]


@dataclass(frozen=True)
class LogFile:
    """A file with lines of a job's log."""

    name: str
    """What it is called on the page, and in addresses: unique within its job."""
    path: Path
    attempt: int | None = None
    """The attempt whose driver wrote it, where that is known."""
    mask: Callable[[str], str] = str
    """Takes secrets out of its text."""


class JobsView(Protocol):
    """All jobs that a server knows."""

    def jobs(self) -> list[JobDetails]:
        """Those that run and those that ended, the one that started last first."""

    def job(self, job_id: str) -> JobFacade:
        """One of them. Raises KeyError where there is none."""

    def logs(self, job_id: str) -> list[LogFile]:
        """Its log files, oldest first. Raises KeyError where there is no such job."""


class JobsOfUser:
    """The jobs that this user runs on this machine, or ran lately: see :mod:`firesteel.jobs`."""

    def __init__(self, seconds: float = 5.0) -> None:
        """``seconds``: how long a job is waited for."""
        self._seconds = seconds

    def jobs(self) -> list[JobDetails]:
        running, ended = list_jobs(self._seconds)
        known = {job.id: job.status() for job in ended}
        gone = []
        for job in running:
            try:
                known[job.id] = job.status()
            except (FiresteelError, TimeoutError):
                gone.append(job.id)
        if gone:
            # It has ended just now, and says so where ended jobs do; or it is busy, and is listed the next time.
            known.update((job.id, job.status()) for job in list_jobs(self._seconds)[1] if job.id in gone)
        return sorted(known.values(), key=lambda job: job.started, reverse=True)

    def job(self, job_id: str) -> JobFacade:
        running, ended = list_jobs(None)
        return {job.id: job for job in [*ended, *running]}[job_id]

    def logs(self, job_id: str) -> list[LogFile]:
        self.job(job_id)
        return []
