"""What the command line asks the job manager, below ``/firesteel/v1/manager``, and ``/healthz``. What the page asks is
in :mod:`firesteel.cluster.own_api`."""

from __future__ import annotations

from typing import Any

from firesteel import __version__
from firesteel.cluster.log_files import last_lines, log_files, read_range
from firesteel.cluster.masking import masked_settings
from firesteel.cluster.registry import ENDED
from firesteel.cluster.rest.calls import Call, Endpoints, File, RestError, inside
from firesteel.cluster.views import JobView
from firesteel.engine.facade.encoding import encoded

__all__ = ["ENDPOINTS"]

ENDPOINTS = Endpoints()
OWN = "/firesteel/v1/manager"
MAX_RANGE = 4 << 20


@ENDPOINTS.get("/healthz", own=True)
def healthz(call: Call) -> Any:
    """Whether the job manager answers."""
    return {"status": "ok"}


@ENDPOINTS.get(OWN, own=True)
def cluster(call: Call) -> Any:
    """The job manager: version, slots, since when it runs."""
    known = call.cluster
    return {
        "firesteel": __version__,
        "started": known.started,
        "epoch": known.supervisor.registry.epoch,
        "slots": known.settings.slots,
        "slotsAvailable": known.supervisor.free_slots,
        "warmDrivers": known.supervisor.warm_drivers,
        "folder": str(known.folder.path),
    }


@ENDPOINTS.delete(OWN, own=True, status=202, query={"leaveJobs": {"type": "boolean"}})
def stop(call: Call) -> Any:
    """Ends the job manager. Its jobs are suspended and go on when it is started again, or they run on."""
    call.cluster.stop(call.flag("leaveJobs"))
    return {}


def _job(view: JobView) -> dict[str, Any]:
    row, details = view.row, view.details
    last = view.failures[0] if view.failures else None
    return {
        "id": row.id,
        "name": row.name,
        "state": row.state,
        "mode": row.mode,
        "parallelism": row.parallelism,
        "program": row.program,
        "submitted": row.submitted,
        "started": row.started or None,
        "ended": row.ended if row.state in ENDED else None,
        "attempt": row.attempt,
        "drivers": row.driver + 1 if row.started else 0,
        "pid": row.pid or None,
        "records": 0 if details is None else details.records,
        "batches": 0 if details is None else details.batches,
        "watermark": None if details is None else details.watermark,
        "checkpointFolder": None if details is None else details.checkpoint_folder,
        "engine": None if details is None else details.engine,
        "where": None if details is None else view.masker.text(details.where),
        "failure": view.masker.text(row.failure) or None,
        "lastFailure": None
        if last is None
        else {"timestamp": last.timestamp, "message": view.masker.text(last.message)},
    }


@ENDPOINTS.get(f"{OWN}/jobs", own=True)
def jobs(call: Call) -> Any:
    """All jobs with what matters of each."""
    return {"jobs": [_job(call.cluster.view(row.id)) for row in call.cluster.supervisor.rows()]}


@ENDPOINTS.get(f"{OWN}/jobs/{{jobid}}", own=True)
def job(call: Call) -> Any:
    """One job: status, settings, attempts."""
    view = call.job()
    return {
        **_job(view),
        "arguments": view.masker.tree(list(view.row.arguments)),
        "settings": view.masker.tree(masked_settings(view.row.settings)),
        "times": view.row.times,
        "attempts": [
            {
                "number": one.number,
                "pid": one.pid,
                "started": one.started,
                "ended": one.ended or None,
                "outcome": one.outcome or None,
                "message": view.masker.text(one.message) or None,
            }
            for one in view.attempts
        ],
    }


@ENDPOINTS.get(f"{OWN}/jobs/{{jobid}}/answers/{{what}}", own=True)
def answers(call: Call) -> Any:
    """What a job answers to a command that changes nothing: status, metrics, plan, checkpoints, exceptions."""
    view, what = call.job(), call.path["what"]
    if what == "plan":
        return {"answer": {"plan": view.row.plan}}
    if what == "exceptions":
        known = {"failures": [encoded(one) for one in view.failures], "truncated": view.exceptions.truncated}
        return {"answer": view.masker.tree(known)}
    parts = {"status": view.details, "metrics": view.metrics, "checkpoints": view.checkpoints}
    if what not in parts:
        raise RestError(404, f"A job does not answer {what[:40]!r}.")
    if parts[what] is None:
        raise RestError(409, f"Job {view.row.name!r} ({view.id}) has not answered yet: it is {view.row.state}.")
    found = encoded(parts[what])
    if what == "status":
        # What the job manager knows is newer than the last answer of a driver, which may be gone.
        found = {**found, "status": _status(view.row.state), "attempt": view.row.attempt}
    return {"answer": view.masker.tree(found)}


def _status(state: str) -> str:
    return "CREATED" if state == "INITIALIZING" else state


@ENDPOINTS.get(f"{OWN}/jobs/{{jobid}}/logs", own=True)
def logs(call: Call) -> Any:
    """The log files of a job, by attempt."""
    found = log_files(call.cluster.folder.job(call.job_id).logs)
    return {"logs": [{"name": one.name, "size": one.size, "mtime": one.changed} for one in found]}


RANGE = {
    "start": {"type": "integer", "description": "the first byte; from the end if it is negative"},
    "bytes": {"type": "integer", "minimum": 1},
    "lines": {"type": "integer", "minimum": 1, "description": "the last lines instead of a range"},
}


@ENDPOINTS.get(f"{OWN}/jobs/{{jobid}}/logs/{{name}}", own=True, query=RANGE)
def log(call: Call) -> Any:
    """A part of a log file. Where it ends in the file says the header Firesteel-Log-End."""
    view = call.job()
    path = inside(call.cluster.folder.job(view.id).logs, call.path["name"])
    if path is None:
        raise RestError(404, "There is no such log file.")
    lines = call.whole("lines")
    if lines is not None:
        content = last_lines(path, max(0, lines), MAX_RANGE)
        end = path.stat().st_size
    else:
        start, most = call.whole("start") or 0, call.whole("bytes") or MAX_RANGE
        content = read_range(path, start, max(0, min(most, MAX_RANGE)))
        size = path.stat().st_size
        end = (max(0, size + start) if start < 0 else min(start, size)) + len(content)
    text = view.masker.text(content.decode(errors="replace"))
    return File(text.encode(), headers={"Firesteel-Log-End": str(end)})
