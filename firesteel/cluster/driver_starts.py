"""What the next driver of a job is given: a number, its settings, its lease."""

from __future__ import annotations

from typing import Any

from firesteel.cluster.driver import Assignment
from firesteel.cluster.folders import ClusterFolder, JobFolder
from firesteel.cluster.job_table import JobTable
from firesteel.cluster.managed import ManagedJob, now_ms
from firesteel.cluster.program_store import StoredProgram
from firesteel.cluster.registry import JobRow, Registry

__all__ = ["DriverStarts"]


class DriverStarts:
    """Numbers drivers, and says what they are to do."""

    def __init__(self, folder: ClusterFolder, registry: Registry, table: JobTable) -> None:
        self._folder, self._registry, self._table = folder, registry, table

    def number(self, job: ManagedJob) -> JobRow:
        """Gives the next driver its number. One that no process was ever started with is used again."""
        row = job.row
        known: dict[str, Any] = {"pid": 0, "pid_started": "", "started": row.started or now_ms()}
        if row.started and not job.unstarted:
            known |= {"driver": row.driver + 1, "attempt": row.attempt + 1}
        first = not known.get("driver", row.driver)
        row = self._table.become(job, "INITIALIZING" if first else "RESTARTING", **known)
        job.reached, job.unstarted = False, True
        return row

    def task(self, row: JobRow, program: StoredProgram) -> tuple[JobFolder, Assignment, dict[str, str]]:
        """What a process needs to be this driver: its folder, its task, its settings."""
        folder = self._folder.job(row.id)
        settings = {
            **row.settings,
            "firesteel.job.id": row.id,
            "firesteel.job.attempt": str(row.attempt),
            "firesteel.job.records": str(folder.records),
            "firesteel.progress": "false",
        }
        task = Assignment(
            row.id,
            str(program.path),
            row.arguments,
            str(folder.path),
            row.driver,
            epoch=self._registry.epoch,
            lease=self._registry.assign_driver(row.id, row.driver),
        )
        return folder, task, settings
