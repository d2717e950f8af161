"""The jobs of one job manager, by their ids: those that are under way, further ones of their programs, and those that
are over. Rows change under the lock, and in the registry first."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.further_jobs import FurtherJobs
from firesteel.cluster.managed import ManagedJob, now_ms, restarts_after
from firesteel.cluster.registry import ENDED, JobRow, Registry
from firesteel.errors import JobNotFoundError, ProgramError

__all__ = ["JobTable"]


class JobTable:
    """All jobs, and what is known of each."""

    def __init__(self, folder: ClusterFolder, registry: Registry, ended: Callable[[JobRow], None]) -> None:
        """``ended`` is called with the row of each job that is over, its record in it."""
        self._folder, self._registry, self._listener = folder, registry, ended
        self.lock = threading.RLock()
        self.jobs: dict[str, ManagedJob] = {}
        """Those that have a driver, or are to have one."""
        self.further = FurtherJobs(folder, registry, self._over)
        self._ended: dict[str, JobRow] = {}
        """Jobs that are over, without their records: lists are asked for all the time, and nobody else writes rows."""

    def load(self) -> list[ManagedJob]:
        """Takes over what the registry knows; returns the jobs that are under way."""
        for row in self._registry.jobs():
            if row.parent:
                self.further.adopt(row)
            if row.state in ENDED:
                self._ended[row.id] = row
            elif not row.parent:
                self.jobs[row.id] = ManagedJob(row, restarts_after(row, self._registry.attempts(row.id)))
        return list(self.jobs.values())

    # Looking

    def rows(self) -> list[JobRow]:
        """All jobs, those that have ended, too; each with the state that it has now."""
        with self.lock:
            running = [*self.jobs.values(), *self.further.all()]
            known = [*self._ended.values(), *(self._live(job.row) for job in running)]
        return sorted(known, key=lambda row: row.submitted)

    def row(self, job_id: str) -> JobRow:
        with self.lock:
            job = self.managed(job_id)
            row = self._registry.job(job_id) if job is None else job.row
            if row is None:
                raise JobNotFoundError(f"There is no job {job_id}.")
            return self._live(row)

    def _live(self, row: JobRow) -> JobRow:
        job = self.managed(row.id)
        if job is None:
            return row
        known = job.snapshot.status if job.snapshot is not None and job.reached else None
        return replace(row, state=job.state, attempt=max(row.attempt, 0 if known is None else known.attempt))

    def managed(self, job_id: str) -> ManagedJob | None:
        """The job, if it has not ended."""
        with self.lock:
            return self.jobs.get(job_id) or self.further.get(job_id)

    # Changing

    def add(self, row: JobRow) -> None:
        """A job that was submitted."""
        with self.lock:
            self.refuse(row.id)
            self._registry.add_job(row)
            self.jobs[row.id] = ManagedJob(row, restarts_after(row, []))

    def refuse(self, job_id: str) -> None:
        """Raises ProgramError where there is a job of this id."""
        with self.lock:
            known = self._registry.job(job_id)
            if known is None:
                return
            if known.state not in ENDED and self.managed(job_id) is None:
                # It was written, though the registry did not come to say so.
                self.jobs[job_id] = ManagedJob(known, restarts_after(known, []))
            raise ProgramError(f"There is a job {job_id} already.")

    def become(self, job: ManagedJob, state: str, **changes: Any) -> JobRow:
        """Gives a job another state."""
        now = now_ms()
        with self.lock:
            times = {**job.row.times, state: now}
            job.row = self._registry.update_job(job.id, state=state, changed=now, times=times, **changes)
            return job.row

    def end(self, job: ManagedJob, state: str, failure: str, record: dict[str, Any]) -> None:
        """Ends a job for good. ``record`` is what stays known of it."""
        with self.lock:
            if job.snapshot is not None and job.snapshot.status.attempt > job.row.attempt:
                job.row = replace(job.row, attempt=job.snapshot.status.attempt)
            row = self.become(
                job, state, ended=now_ms(), failure=failure, record=record, pid=0, attempt=job.row.attempt
            )
            job.row = replace(row, record=record)
            del self.jobs[job.id]
            self._over(job.row)

    def _over(self, row: JobRow) -> None:
        with self.lock:
            self._ended[row.id] = replace(row, record={})
        self._listener(row)

    def forget_old(self, keep: int) -> None:
        """Forgets jobs that are over, with their files, but for the newest ones."""
        with self.lock:
            ended = sorted(self._ended.values(), key=lambda one: one.ended)
        for row in ended[: max(0, len(ended) - keep)]:
            self._registry.forget_job(row.id)
            with self.lock:
                self._ended.pop(row.id, None)
            shutil.rmtree(self._folder.job(row.id).path, ignore_errors=True)
