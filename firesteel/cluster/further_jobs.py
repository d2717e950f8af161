"""Jobs that a program executes after its first one. They share its driver: they have rows of their own to look at and
to cancel, and take no slot. What becomes of the driver is decided for the first one, and they end with it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.managed import ManagedJob, now_ms, restarts_after
from firesteel.cluster.processes import Process
from firesteel.cluster.registry import ENDED, JobRow, Registry
from firesteel.engine.facade import JobDetails
from firesteel.engine.facade.encoding import decoded
from firesteel.engine.job_records import answers_of
from firesteel.errors import FiresteelError
from firesteel.jobs import jobs_of_process

__all__ = ["FurtherJobs"]


class FurtherJobs:
    """Those of all programs that run."""

    def __init__(self, folder: ClusterFolder, registry: Registry, ended: Callable[[JobRow], None]) -> None:
        """``ended`` is called with the row of each that is over, its record in it."""
        self._folder, self._registry, self._ended = folder, registry, ended
        self._lock = threading.RLock()
        self._jobs: dict[str, ManagedJob] = {}
        self._known: set[str] = set()
        """Those that have ended, too."""

    def adopt(self, row: JobRow) -> None:
        """One that an earlier job manager has listed."""
        self._known.add(row.id)
        if row.state not in ENDED:
            self._jobs[row.id] = ManagedJob(row, restarts_after(row, []))

    def all(self) -> list[ManagedJob]:
        with self._lock:
            return list(self._jobs.values())

    def get(self, job_id: str) -> ManagedJob | None:
        with self._lock:
            return self._jobs.get(job_id)

    def look(self, first: ManagedJob, process: Process) -> bool:
        """Asks those that run, and lists new ones. Some may have come and gone since the last time. Says whether there
        are any that run."""
        for remote in jobs_of_process(process.pid, 5.0):
            if remote.id == first.id:
                continue
            with contextlib.suppress(FiresteelError, OSError):
                snapshot = remote.snapshot()
                job = self.get(remote.id) or self._add(first, snapshot.status, remote.plan().plan)
                job.snapshot, job.reached, job.process = snapshot, True, process
        self._take_records(first)
        return any(job.row.parent == first.id for job in self.all())

    def driver_ended(self, first: ManagedJob, failure: str) -> None:
        self._take_records(first)
        for job in self.all():
            if job.row.parent == first.id:
                self._end(job, "FAILED", failure, {})

    def _take_records(self, first: ManagedJob) -> None:
        for path in self._folder.job(first.id).records.glob("*.json"):
            job = self.get(path.stem)
            if path.stem == first.id or (job is None and path.stem in self._known):
                continue
            record = _read(path)
            if record is None:
                continue
            details: JobDetails = decoded(JobDetails, record["status"])
            job = job or self._add(first, details, dict(record.get("plan", {}).get("plan", {})))
            self._end(job, details.status.name, details.failure or "", record)

    def _add(self, first: ManagedJob, details: JobDetails, plan: dict[str, Any]) -> ManagedJob:
        row = replace(
            first.row,
            id=details.id,
            name=details.name,
            parent=first.id,
            state="RUNNING",
            mode=details.mode,
            parallelism=details.parallelism,
            plan=plan,
            submitted=details.started,
            started=details.started,
            changed=now_ms(),
            ended=0,
            failure="",
            attempt=details.attempt,
            times={"RUNNING": details.started},
            record={},
        )
        with self._lock:
            self._registry.add_job(row)
            self._known.add(row.id)
            self._jobs[row.id] = ManagedJob(row, restarts_after(row, []))
            return self._jobs[row.id]

    def _end(self, job: ManagedJob, state: str, failure: str, record: dict[str, Any]) -> None:
        now = now_ms()
        with self._lock:
            changes = {"ended": now, "changed": now, "failure": failure, "pid": 0, "record": record}
            shown = state if state in ENDED else "FAILED"
            times = {**job.row.times, shown: now}
            row = self._registry.update_job(job.id, state=shown, times=times, **changes)
            self._jobs.pop(job.id, None)
        self._ended(replace(row, record=record))


def _read(path: Path) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError):
        known = answers_of(json.loads(path.read_bytes()))
        if isinstance(known.get("status"), dict):
            return known
    return None
