"""What the parts of one job share."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import replace

from firesteel.engine.backends import table_factory
from firesteel.engine.batch_log import BatchLog
from firesteel.engine.cached_files import JobCache
from firesteel.engine.checkpoint_log import CheckpointLog
from firesteel.engine.checkpointing import Checkpointing
from firesteel.engine.clean_up import CleanUp
from firesteel.engine.commits import Commits
from firesteel.engine.failure_history import FailureHistory
from firesteel.engine.imports import JobFiles
from firesteel.engine.inbox import Inbox
from firesteel.engine.job_log import JobLog
from firesteel.engine.savepoints.requests import SavepointRequests
from firesteel.engine.settings import Settings
from firesteel.engine.submission import Submission
from firesteel.filesystems import StorageOptions
from firesteel.runtime.job_spec import JobSpec

__all__ = ["JobContext", "job_spec", "new_job_id"]


def job_spec(submission: Submission, job_id: str = "", processes_stay: bool = True) -> JobSpec:
    """What workers must know of a submission. ``processes_stay``: whether a subtask finds what its last batch left in
    memory."""
    settings = Settings.of(submission.configuration)
    return JobSpec(
        job_id=job_id,
        name=submission.name,
        graph=submission.graph,
        batch_mode=submission.batch_mode,
        job_parameters=submission.job_parameters,
        tables=table_factory(submission.configuration, submission.state_backend, submission.graph, processes_stay),
        frames_memory=settings.frames_memory,
        max_record=settings.max_record,
        crash_points=settings.crash_points,
        storage=StorageOptions.of(settings.spark),
        busy_time=settings.busy_time,
    )


_given: dict[str, int] = {}
"""How many jobs of this process were given an id that was set, or one made from it."""


def new_job_id(wanted: str = "") -> str:
    """A random id, or the one that was set. A process that runs several jobs gives those after the first ids made from
    it: the same ones when the program is started again.

    >>> first, second = new_job_id("00000000000000000000000000000001"), new_job_id("00000000000000000000000000000001")
    >>> first, second
    ('00000000000000000000000000000001', '7c0d7051587c12d4be751a5192292d41')
    """
    if not wanted:
        return uuid.uuid4().hex
    number = _given[wanted] = _given.get(wanted, -1) + 1
    return hashlib.sha256(f"{wanted}/{number}".encode()).hexdigest()[:32] if number else wanted


class JobContext:
    """One job: what it is, how it is set, what is known of its batches, and what is asked of it. The client's side
    (:class:`~firesteel.engine.job.EngineJob`) and the engine's side (:class:`~firesteel.engine.job_run.JobRun`) both
    work on it."""

    def __init__(self, submission: Submission, processes_stay: bool = True) -> None:
        self.submission = submission
        self.settings = Settings.of(submission.configuration)
        self.job_id = new_job_id(self.settings.job_id)
        self.spec = replace(job_spec(submission, self.job_id, processes_stay), attempt=self.settings.first_attempt)
        """Replaced by each attempt, which has a number of its own."""
        self.checkpointing = Checkpointing.of(submission.configuration, submission.name, submission.batch_mode)
        self.checkpoints = CheckpointLog()
        self.batches = BatchLog()
        self.failures = FailureHistory()
        self.log = JobLog(self.job_id, submission.name, submission.configuration.to_dict(), lambda: self.spec.attempt)
        self.commits = Commits(self.spec, lambda batch, seconds: self.batches.add_part(batch, "sink_commit", seconds))
        self.inbox = Inbox(self.spec, self.commits.log)
        self.savepoints = SavepointRequests()
        self.cancel = self.inbox.cancelled
        """Set when the job is to end at once."""
        self.suspending = False
        """Whether the job is to come to rest after the batch that is under way."""
        self.goes_on = False
        """Whether the checkpoint folder has what the job goes on from, so that no savepoint is needed any more."""
        self.at_end = CleanUp()
        """What is given back when the job has ended, whatever the end was."""
        self.at_release = CleanUp()
        """What is given back last, when it is decided what becomes of the checkpoint: others may have it then."""

    def bring(self, files: JobFiles | None) -> None:
        """Lets the job's functions find the files that it brings."""
        if files is not None:
            self.spec = replace(self.spec, files=JobCache(files))

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def cancelled(self) -> bool:
        return self.cancel.is_set()
