"""The jobs of the job manager, for the page's own API: asked through one facade, secrets masked in every answer."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.jobs_view import LogFile
from firesteel.cluster.log_files import log_files
from firesteel.cluster.registry import ENDED
from firesteel.cluster.supervisor import Supervisor
from firesteel.cluster.views import JobView, view_of
from firesteel.common.job_status import JobStatus
from firesteel.engine.facade import (
    Cancel,
    Command,
    JobDetails,
    JobExceptions,
    JobFacade,
    JobPlan,
)
from firesteel.engine.facade.encoding import decoded, encoded
from firesteel.errors import JobCommandError, JobNotFoundError

__all__ = ["ManagedFacade", "ManagedJobs", "details_of"]

AnswerT = TypeVar("AnswerT")

_KNOWN = set(JobStatus.__members__)


def details_of(view: JobView) -> JobDetails:
    """What the driver said last, with what the job manager knows better."""
    row, said = view.row, view.details
    state = JobStatus[row.state] if row.state in _KNOWN else JobStatus.CREATED
    known: dict[str, Any] = {} if said is None else encoded(said)
    known |= {
        "id": row.id,
        "name": row.name,
        "status": state.name,
        "engine": known.get("engine", "spark"),
        "mode": row.mode,
        "pid": row.pid,
        "started": view.start_time,
        "ended": row.ended if row.state in ENDED else None,
        "parallelism": row.parallelism,
        "attempt": row.attempt,
        "failure": row.failure or None,
        "times": {**known.get("times", {}), **row.times},
    }
    details: JobDetails = decoded(JobDetails, view.masker.tree(known))
    return details


class ManagedFacade(JobFacade):
    """One job of the job manager."""

    def __init__(self, supervisor: Supervisor, view: JobView) -> None:
        self._supervisor, self._view = supervisor, view

    @property
    def id(self) -> str:
        return self._view.id

    @property
    def name(self) -> str:
        return self._view.row.name

    def execute(self, command: Command[AnswerT]) -> AnswerT:
        if isinstance(command, Cancel):
            self._supervisor.cancel(self.id)
            return details_of(view_of(self._supervisor, self.id))  # type: ignore[return-value]
        if command.changes:
            changed: AnswerT = self._supervisor.ask(self.id, command)
            return changed
        known = self._view.masker.tree(self._answer(command))
        answer: AnswerT = decoded(command.answer, known)
        return answer

    def _answer(self, command: Command[Any]) -> Any:
        view = self._view
        parts: dict[str, Any] = {
            "status": details_of(view),
            "metrics": view.metrics,
            "plan": JobPlan(view.row.plan),
            "checkpoints": view.checkpoints,
            "exceptions": JobExceptions(view.failures, view.exceptions.truncated),
        }
        if command.name in parts:
            return encoded(parts[command.name])
        if command.parts:
            return {part: encoded(parts[part]) for part in command.parts}
        if view.ended:
            if command.name in view.row.record:
                return view.row.record[command.name]
            raise JobCommandError(f"Of job {self.name!r} ({self.id}), which has ended, no {command.name} are kept.")
        return encoded(self._supervisor.ask(self.id, command, 10.0))


class ManagedJobs:
    """All of them."""

    def __init__(self, supervisor: Supervisor, folder: ClusterFolder, tokens: tuple[str, ...]) -> None:
        self._supervisor, self._folder, self._tokens = supervisor, folder, tokens

    def jobs(self) -> list[JobDetails]:
        found = [details_of(view_of(self._supervisor, row.id, self._tokens)) for row in self._supervisor.rows()]
        return sorted(found, key=lambda job: job.started, reverse=True)

    def job(self, job_id: str) -> JobFacade:
        return ManagedFacade(self._supervisor, self._view(job_id))

    def _view(self, job_id: str) -> JobView:
        try:
            return view_of(self._supervisor, job_id, self._tokens)
        except JobNotFoundError:
            raise KeyError(job_id) from None

    def logs(self, job_id: str) -> list[LogFile]:
        view = self._view(job_id)
        folder, mask = self._folder.job(view.id).logs, view.masker.text
        found = []
        for one in log_files(folder):
            match = re.fullmatch(r"attempt-(\d+)\.log(?:\.(\d+))?", one.name)
            if match:
                # Older parts of a file have larger numbers.
                file = LogFile(one.name, folder / one.name, int(match[1]), mask)
                found.append((int(match[1]), -int(match[2] or 0), file))
        return [file for _, _, file in sorted(found, key=lambda entry: entry[:2])]
