"""This user's jobs on this machine, for whoever wants to look at them or steer them: those that run, in this process or
another one, and those that have ended.

    >>> import os, tempfile
    >>> os.environ["FIRESTEEL_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="fs-")  # the jobs of this example only
    >>> from firesteel.testing import memory_environment
    >>> env = memory_environment()
    >>> _ = env.from_collection([1, 2, 3]).map(lambda n: n).name("numbers").print()
    >>> _ = env.execute("example")
    1
    2
    3
    >>> job = find_job("example")
    >>> job.status().status.name, job.status().records
    ('FINISHED', 3)
    >>> [(operator.name, operator.records_out) for operator in job.metrics().operators][1]
    ('numbers', 3)
    >>> job.cancel()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    firesteel.errors.JobCommandError: Job 'example' (...) has ended (FINISHED): there is nothing to cancel.
    >>> del os.environ["FIRESTEEL_RUNTIME_DIR"]
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from firesteel.engine.control import RunningJob, ask, running_jobs
from firesteel.engine.facade.commands import Command, check_known, request_of
from firesteel.engine.facade.encoding import decoded
from firesteel.engine.facade.facade import JobFacade
from firesteel.engine.job_records import JobRecord, job_records
from firesteel.engine.run_folder import jobs_folder
from firesteel.errors import JobCommandError, JobExecutionError, JobNotFoundError

__all__ = ["FinishedJob", "RemoteJob", "chosen", "find_job", "jobs_of_process", "list_jobs", "running_job"]

AnswerT = TypeVar("AnswerT")


class RemoteJob(JobFacade):
    """A job that runs, in this process or in another one. It is asked through its control socket."""

    def __init__(self, job: RunningJob, seconds: float | None = None) -> None:
        """``seconds``: how long to wait for an answer; None waits as long as it takes."""
        self._job = job
        self._seconds = seconds

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def name(self) -> str:
        return self._job.name

    @property
    def started(self) -> float:
        return self._job.started

    def execute(self, command: Command[AnswerT]) -> AnswerT:
        reply = ask(self._job, self._seconds, **request_of(command))
        try:
            answer: AnswerT = decoded(command.answer, reply.get("answer"))
        except ValueError as error:
            raise JobExecutionError(
                f"Job {self.name!r} ({self.id}) answers what this version does not understand ({error}). Is it run by "
                "another version of Firesteel?"
            ) from error
        return answer


class FinishedJob(JobFacade):
    """A job that has ended, as far as it is still known."""

    def __init__(self, record: JobRecord) -> None:
        self._record = record

    @property
    def id(self) -> str:
        return self._record.details.id

    @property
    def name(self) -> str:
        return self._record.details.name

    def execute(self, command: Command[AnswerT]) -> AnswerT:
        check_known(command)
        status = self._record.details.status.name
        if command.changes:
            raise JobCommandError(
                f"Job {self.name!r} ({self.id}) has ended ({status}): there is nothing to {command.name}."
            )
        answers = self._record.answers
        if command.parts and all(part in answers for part in command.parts):
            snapshot: AnswerT = decoded(command.answer, {part: answers[part] for part in command.parts})
            return snapshot
        if command.name not in answers:
            raise JobCommandError(
                f"Of job {self.name!r} ({self.id}), which has ended ({status}), no {command.name} are kept."
            )
        answer: AnswerT = decoded(command.answer, answers[command.name])
        return answer


def list_jobs(seconds: float | None = 5.0) -> tuple[list[RemoteJob], list[FinishedJob]]:
    """The jobs that run, oldest first, and those that have ended, those that ended last first. ``seconds``: how long a
    running one is waited for when it is asked."""
    # In this order: what ends in between is in both lists rather than in none.
    running = [RemoteJob(job, seconds) for job in running_jobs()]
    known = {job.id for job in running}
    return running, [FinishedJob(record) for record in job_records() if record.details.id not in known]


def running_job(job_id: str, seconds: float | None = 5.0) -> RemoteJob | None:
    """The job of this id, if it runs and can be asked."""
    try:
        job = RunningJob.of_descriptor(jobs_folder() / f"{job_id}.json")
    except (OSError, ValueError):
        return None
    return RemoteJob(job, seconds)


@lru_cache(1024)
def _descriptor(path: Path, changed: int) -> RunningJob:
    """Job managers look at all of them, for each of their jobs and all the time."""
    return RunningJob.of_descriptor(path)


def jobs_of_process(pid: int, seconds: float | None = 5.0) -> list[RemoteJob]:
    """The jobs that a process of this user runs at the moment, oldest first."""
    found = []
    for path in jobs_folder().glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            job = _descriptor(path, path.stat().st_mtime_ns)
            if job.pid == pid:
                found.append(job)
    return [RemoteJob(job, seconds) for job in sorted(found, key=lambda job: job.started)]


def find_job(name: str) -> JobFacade:
    """A job by its id, the beginning of it, or its name. One that runs is preferred to those that have ended, and among
    those of one name the one that ended last is taken."""
    running, finished = list_jobs(seconds=None)
    return chosen(name, running, finished)


def chosen(name: str, running: Sequence[JobFacade], finished: Sequence[JobFacade]) -> JobFacade:
    """The one that a name means, among those that run and those that have ended, the last ones first."""
    matches = _matches(name, running)
    if len(matches) > 1:
        listed = ", ".join(f"{job.id} ({job.name})" for job in matches)
        raise JobNotFoundError(f"{name!r} could be several running jobs: {listed}. Name one by its id.")
    if matches:
        return matches[0]
    ended = _matches(name, finished)
    if ended and (len(ended) == 1 or all(job.name == name for job in ended)):
        return ended[0]
    if ended:
        listed = ", ".join(f"{job.id} ({job.name})" for job in ended[:5])
        raise JobNotFoundError(f"{name!r} could be several jobs that have ended: {listed}. Name one by its id.")
    known = ", ".join(f"{job.id[:8]} ({job.name})" for job in running) or "none"
    raise JobNotFoundError(f"No job {name!r} runs here as this user, or ran lately. Running: {known}.")


def _matches(name: str, jobs: Sequence[JobFacade]) -> list[JobFacade]:
    return [job for job in jobs if job.id == name] or [j for j in jobs if j.name == name or j.id.startswith(name)]
