"""The part of the REST API that Flink does not have: what our page shows, under ``/firesteel/v1``.

| path | answer |
|---|---|
| ``/jobs`` | all jobs, each with rate, lag and last error |
| ``/jobs/:id`` | one job: details, plan, metrics, counts of checkpoints, diagnosis |
| ``/jobs/:id/batches?after=n`` | the micro-batches after that one, with their parts |
| ``/jobs/:id/checkpoints`` | counts and the last checkpoints |
| ``/jobs/:id/exceptions`` | failures, with the user's line, and how to replay the batch |
| ``/jobs/:id/diagnosis`` | why it is slow or stuck, in a sentence |
| ``/jobs/:id/processes`` | driver, JVM and Python workers with their memory |
| ``/jobs/:id/logs`` | its log files; ``/logs/:name?start=&length=`` a part of one, ``?search=`` lines with a text |
| ``/jobs/:id/state`` | the states in the last snapshot; POST takes one |
| ``/jobs/:id/state/rows?uid=&state=&key=&offset=&limit=`` | keys and values |

:func:`own_routes` makes the routes over any :class:`~firesteel.cluster.jobs_view.JobsView`. Who may ask is decided by
the server that mounts them.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from firesteel.cluster.diagnosis import diagnose
from firesteel.cluster.job_rows import JobRows, cause_of
from firesteel.cluster.jobs_view import JobsView, LogFile
from firesteel.cluster.log_reading import find_lines, read_part
from firesteel.cluster.picture import picture_of
from firesteel.cluster.process_memory import processes_of
from firesteel.cluster.state_browser import Snapshot, StateBrowser, state_rows
from firesteel.engine.facade import (
    CheckpointStatistics,
    GetBatches,
    JobBatches,
    JobDetails,
    JobExceptions,
    JobFacade,
    JobFailure,
    JobMetrics,
    JobPlan,
)
from firesteel.engine.facade.encoding import encoded
from firesteel.errors import FiresteelError, JobCommandError, JobExecutionError

__all__ = ["PREFIX", "described", "own_routes"]

PREFIX = "/firesteel/v1"

_SECONDS_LISTED = 0.8
"""For so long the list of all jobs is as it was."""

Endpoint = Callable[[Request], Any]


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class OwnApi:
    """Answers requests. Jobs are asked through sockets, so all of it may block: Starlette calls these in threads,
    as they are no coroutines."""

    def __init__(self, view: JobsView) -> None:
        self._view = view
        self._rows = JobRows(view)
        self._browser = StateBrowser()
        self._listing = threading.Lock()
        self._listed: dict[str, Any] = {}
        self._listed_at = float("-inf")

    def close(self) -> None:
        """Removes what was put on disk."""
        self._browser.close()

    def jobs(self, request: Request) -> Any:
        """All jobs, each with rate, lag and last error."""
        # However many pages ask: the rows of a hundred jobs are made once in a while.
        with self._listing:
            if time.monotonic() - self._listed_at > _SECONDS_LISTED:
                self._listed = {"now": _now(), "jobs": self._rows.rows(_now())}
                self._listed_at = time.monotonic()
            return self._listed

    def job(self, request: Request) -> Any:
        """One job: details, plan, metrics, counts of checkpoints, diagnosis."""
        job = self._job(request)
        details, metrics, checkpoints = job.status(), _or(job.metrics, JobMetrics()), _checkpoints(job)
        return {
            "now": _now(),
            "job": self._rows.row(details, metrics, checkpoints, _now()),
            "plan": _or(job.plan, JobPlan({})).plan or None,
            "metrics": encoded(metrics),
            "checkpoints": {**encoded(checkpoints), "history": None},
            "diagnosis": _diagnosis(job, details, metrics, checkpoints),
        }

    def batches(self, request: Request) -> Any:
        """The last micro-batches with their parts."""
        after = _number(request, "after", -1)
        found = _or(lambda: self._job(request).execute(GetBatches(after)), JobBatches())
        # What was kept of a job that ended has all of them.
        return {"now": _now(), "batches": encoded([one for one in found.batches if one.number > after])}

    def checkpoints(self, request: Request) -> Any:
        """Counts and the last checkpoints."""
        return {"now": _now(), **encoded(_checkpoints(self._job(request)))}

    def exceptions(self, request: Request) -> Any:
        """Failures with the user's line, and how to replay the batch."""
        job = self._job(request)
        found, details, checkpoints = _or(job.exceptions, JobExceptions()), job.status(), _checkpoints(job)
        failures = [
            {**encoded(one), "cause": cause_of(one), "replay": _replay(one, details, checkpoints)}
            for one in found.failures
        ]
        return {"now": _now(), "failures": failures, "truncated": found.truncated}

    def diagnosis(self, request: Request) -> Any:
        """Why a job is slow or stuck."""
        job = self._job(request)
        return _diagnosis(job, job.status(), _or(job.metrics, JobMetrics()), _checkpoints(job))

    def processes(self, request: Request) -> Any:
        """Driver, JVM and Python workers with their memory."""
        details = self._job(request).status()
        found = processes_of(details.pid) if details.ended is None else []
        return {"now": _now(), "where": details.where, "processes": encoded(found)}

    def logs(self, request: Request) -> Any:
        """The log files of a job."""
        files = []
        for one in self._view.logs(request.path_params["jobid"]):
            if one.path.is_file():
                info = one.path.stat()
                entry = {"name": one.name, "attempt": one.attempt, "size": info.st_size}
                files.append({**entry, "modified": int(info.st_mtime * 1000)})
        return {"now": _now(), "files": files}

    def log(self, request: Request) -> Any:
        """A part of a log file, or the lines with a text."""
        file = self._log_file(request)
        wanted = request.query_params.get("search", "").lower()
        if wanted:
            lines = [(at, file.mask(text)) for at, text in find_lines(file.path, wanted)]
            # A secret that is masked is not found either: it could be guessed letter by letter.
            return {"lines": [{"position": at, "text": text} for at, text in lines if wanted in text.lower()]}
        part = read_part(file.path, _number(request, "start", None), _number(request, "length", 64 << 10))
        return encoded(replace(part, text=file.mask(part.text)))

    def _log_file(self, request: Request) -> LogFile:
        # Looked up among the job's own files: no path is made of what a request says.
        for one in self._view.logs(request.path_params["jobid"]):
            if one.name == request.path_params["name"] and one.path.is_file():
                return one
        raise _Refused(404, "The job has no such log file.")

    def state(self, request: Request) -> Any:
        """The states in the last snapshot."""
        job = self._job(request)
        return _states(self._browser.snapshot(job.id))

    def take_state(self, request: Request) -> Any:
        """Takes a snapshot of the state to look at."""
        job = self._job(request)
        details = job.status()
        return _states(self._browser.take(job, details.ended is None, details.checkpoint_folder))

    def state_rows(self, request: Request) -> Any:
        """Keys and values of a state."""
        snapshot = self._browser.snapshot(self._job(request).id)
        if snapshot is None:
            raise _Refused(404, "No snapshot of this job's state has been taken here.")
        query = request.query_params
        offset, limit = max(0, _number(request, "offset", 0)), min(1_000, max(1, _number(request, "limit", 100)))
        uid, state = query.get("uid", ""), query.get("state", "")
        return encoded(state_rows(snapshot.savepoint, uid, state, query.get("key", ""), offset, limit))

    def _job(self, request: Request) -> JobFacade:
        return self._view.job(request.path_params["jobid"])


_WHOLE = {"type": "integer"}
_TEXT = {"type": "string"}
_JOB = f"{PREFIX}/jobs/{{jobid}}"
_OPERATIONS: tuple[tuple[str, str, Callable[[OwnApi, Request], Any], dict[str, dict[str, str]]], ...] = (
    ("GET", f"{PREFIX}/jobs", OwnApi.jobs, {}),
    ("GET", _JOB, OwnApi.job, {}),
    ("GET", f"{_JOB}/batches", OwnApi.batches, {"after": _WHOLE}),
    ("GET", f"{_JOB}/checkpoints", OwnApi.checkpoints, {}),
    ("GET", f"{_JOB}/exceptions", OwnApi.exceptions, {}),
    ("GET", f"{_JOB}/diagnosis", OwnApi.diagnosis, {}),
    ("GET", f"{_JOB}/processes", OwnApi.processes, {}),
    ("GET", f"{_JOB}/logs", OwnApi.logs, {}),
    ("GET", f"{_JOB}/logs/{{name}}", OwnApi.log, {"start": _WHOLE, "length": _WHOLE, "search": _TEXT}),
    (
        "GET",
        f"{_JOB}/state/rows",
        OwnApi.state_rows,
        {"uid": _TEXT, "state": _TEXT, "key": _TEXT, "offset": _WHOLE, "limit": _WHOLE},
    ),
    ("GET", f"{_JOB}/state", OwnApi.state, {}),
    ("POST", f"{_JOB}/state", OwnApi.take_state, {}),
)


def own_routes(view: JobsView) -> list[BaseRoute]:
    """The routes, with their whole paths."""
    api = OwnApi(view)
    return [Route(path, _answering(partial(answer, api)), methods=[method]) for method, path, answer, _ in _OPERATIONS]


def described() -> list[tuple[str, str, str, dict[str, dict[str, str]]]]:
    """Method, path, summary and query of each, for the description of the API."""
    return [(method, path, (answer.__doc__ or "").strip(), query) for method, path, answer, query in _OPERATIONS]


def _answering(endpoint: Endpoint) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        try:
            return JSONResponse(endpoint(request))
        except _Refused as refused:
            return _errors(refused.status, str(refused))
        except KeyError:
            return _errors(404, f"Job {request.path_params.get('jobid')} is not known.")
        except JobCommandError as error:
            return _errors(409, str(error))
        except (JobExecutionError, TimeoutError) as error:
            return _errors(503, str(error) or "The job does not answer.")
        except FiresteelError as error:
            return _errors(409, str(error))

    return answer


def _errors(status: int, message: str) -> Response:
    return JSONResponse({"errors": [message]}, status)


def _number(request: Request, name: str, default: Any) -> Any:
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise _Refused(400, f"{name} is a whole number, not {text[:40]!r}.") from None


AnswerT = TypeVar("AnswerT")


def _or(ask: Callable[[], AnswerT], missing: AnswerT) -> AnswerT:
    """An answer; something else where a job that ended kept none, or does not answer just now."""
    try:
        return ask()
    except (FiresteelError, TimeoutError):
        return missing


def _checkpoints(job: JobFacade) -> CheckpointStatistics:
    return _or(job.checkpoints, CheckpointStatistics())


def _diagnosis(job: JobFacade, details: JobDetails, metrics: JobMetrics, checkpoints: CheckpointStatistics) -> Any:
    failures = _or(job.exceptions, JobExceptions())
    # Where it runs: what has ended is not slow any more.
    running = details.ended is None
    batches = _or(lambda: job.execute(GetBatches()), JobBatches()) if running else JobBatches()
    plan = _or(job.plan, JobPlan({}))
    return encoded(diagnose(picture_of(details, metrics, checkpoints, failures, plan, batches, _now())))


def _states(snapshot: Snapshot | None) -> Any:
    if snapshot is None:
        return {"now": _now(), "taken": None, "states": []}
    return {"now": _now(), "taken": snapshot.taken, "states": encoded(snapshot.savepoint.states())}


def _replay(failure: JobFailure, job: JobDetails, checkpoints: CheckpointStatistics) -> str | None:
    """The command that runs the batch again that failed. Only what runs on Spark logs what a batch read."""
    if job.engine != "spark" or job.checkpoint_folder is None:
        return None
    failed = [one for one in checkpoints.history if not one.completed and one.trigger_timestamp <= failure.timestamp]
    batch = f"--batch {failed[-1].checkpoint_id} " if failed else ""
    return f"firesteel replay --pdb {batch}{shlex.quote(job.checkpoint_folder)}"


def _now() -> int:
    return int(time.time() * 1000)
