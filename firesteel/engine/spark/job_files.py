"""The files by which the driver hands a job to the processes of its source.

Light: every process that Spark starts for a source imports it.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.common.private_files import open_private
from firesteel.engine.payload import JobPayload
from firesteel.errors import SetupError

if TYPE_CHECKING:
    from firesteel.engine.savepoints.restoring import Restore
    from firesteel.engine.settings import Settings
    from firesteel.runtime.snapshots.saved import StateChunk

__all__ = ["CoordinatorJob", "job_for_coordinator", "job_for_tasks", "write_job"]

FOR_TASKS = "job-for-tasks.pkl"
FOR_COORDINATOR = "job-for-coordinator.pkl"


@dataclass(frozen=True)
class CoordinatorJob:
    """What the coordinator needs to plan a job's batches."""

    payload: JobPayload
    """The whole job, with what its sources hold."""
    settings: Settings
    sources: str
    """Where sources keep files of their own."""
    restore: Restore | None = None
    """The savepoint that the job begins with."""
    union_lists: Sequence[StateChunk] = ()
    """What union lists hold in the checkpoint that the job goes on from."""


def write_job(directory: str, for_tasks: JobPayload, for_coordinator: CoordinatorJob) -> None:
    """Leaves a job where the source's processes find it."""
    # What is Spark's may hold secrets, and the coordinator does not need it.
    for_coordinator = replace(for_coordinator, settings=replace(for_coordinator.settings, spark={}))
    for name, content in ((FOR_TASKS, for_tasks), (FOR_COORDINATOR, for_coordinator)):
        try:
            with open_private(os.path.join(directory, name), "wb") as file:
                pickle.dump(content, file, pickle.HIGHEST_PROTOCOL)
        except OSError as error:
            raise SetupError(
                f"The job cannot be handed to Spark: {directory} cannot be written ({error.strerror}). "
                "Make room there, or choose another folder for temporary files (TMPDIR)."
            ) from None


def job_for_tasks(directory: str) -> JobPayload:
    payload: JobPayload = _load(directory, FOR_TASKS)
    return payload


def job_for_coordinator(directory: str) -> CoordinatorJob:
    job: CoordinatorJob = _load(directory, FOR_COORDINATOR)
    return job


def _load(directory: str, name: str) -> Any:
    with open(os.path.join(directory, name), "rb") as file:
        return pickle.load(file)
