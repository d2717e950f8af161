"""Programs: uploaded, listed, planned, run, deleted. Flink calls them JARs."""

from __future__ import annotations

import shlex
from typing import Any

from firesteel.cluster.program_store import StoredProgram
from firesteel.cluster.registry import JobRow
from firesteel.cluster.rest.calls import Call, Endpoints, RestError
from firesteel.cluster.rest.shapes import plan_of
from firesteel.cluster.views import JobView
from firesteel.common.job_id import JobID
from firesteel.errors import ProgramError

__all__ = ["ENDPOINTS"]

ENDPOINTS = Endpoints()
TEXT = {"type": "string", "nullable": True}
RUN = {
    "programArgsList": {"type": "array", "items": {"type": "string"}, "nullable": True},
    "programArgs": TEXT,
    "parallelism": {"type": "integer", "nullable": True},
    "jobId": TEXT,
    "savepointPath": TEXT,
    "allowNonRestoredState": {"type": "boolean", "nullable": True},
    "flinkConfiguration": {"type": "object", "additionalProperties": {"type": "string"}, "nullable": True},
    "entryClass": TEXT,
    "claimMode": TEXT,
    "restoreMode": TEXT,
}
ARGUMENTS = 1000
"""So many arguments of a program at most."""


@ENDPOINTS.get("/jars")
def listed(call: Call) -> Any:
    """All programs that were uploaded, the last ones first."""
    files = [
        {
            "id": one.id,
            "name": one.name,
            "uploaded": one.uploaded,
            "entry": [{"name": "__main__", "description": None}],
        }
        for one in call.cluster.programs.all()
    ]
    return {"address": call.base, "files": files}


@ENDPOINTS.post("/jars/upload", upload=True)
def upload(call: Call) -> Any:
    """Stores a program: a Python file, or a zip file with a __main__.py."""
    if len(call.uploads) != 1:
        raise RestError(400, f"One file is uploaded at a time, got {len(call.uploads)}.")
    one = call.uploads[0]
    if len(one.content) > call.cluster.settings.max_upload:
        raise RestError(413, f"A program has at most {call.cluster.settings.max_upload:,} bytes.")
    stored = call.cluster.programs.put(one.name, one.content)
    return {"filename": f"/programs/{stored.id}", "status": "success"}


def _program(call: Call) -> StoredProgram:
    found = call.cluster.programs.find(call.path["jarid"])
    if found is None:
        raise RestError(404, f"There is no program {call.path['jarid'][:140]!r}.")
    return found


@ENDPOINTS.delete("/jars/{jarid}")
def delete(call: Call) -> Any:
    """Deletes a program. Jobs that need it keep it from being deleted."""
    program = _program(call)
    users = [row for row in call.cluster.supervisor.rows() if row.program == program.id and not JobView(row).ended]
    if users:
        raise RestError(409, f"Job {users[0].name!r} ({users[0].id}) needs this program.")
    call.cluster.programs.delete(program.id)
    return {}


def _arguments(call: Call) -> tuple[str, ...]:
    given = call.body.get("programArgsList")
    if given is not None:
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise RestError(400, "programArgsList should be a list of texts.")
        found = list(given)
    else:
        text = call.text("programArgs", "programArg", "program-args") or ""
        try:
            found = shlex.split(text)
        except ValueError as error:
            raise RestError(400, f"programArgs cannot be split into arguments: {error}.") from None
    if len(found) > ARGUMENTS or any("\x00" in one for one in found):
        raise RestError(400, f"A program takes at most {ARGUMENTS} arguments, and no NUL in them.")
    return tuple(found)


def _settings(call: Call) -> dict[str, str]:
    """The settings of a submission. Where the query has a savepoint and the body has none, a body that says anything
    else of how to run wins: Flink's page puts arguments into the query's savepointPath."""
    given = call.body.get("flinkConfiguration")
    given = {} if given is None else given
    if not isinstance(given, dict) or not all(isinstance(value, str | int | float | bool) for value in given.values()):
        raise RestError(400, "flinkConfiguration should have texts by key.")
    settings = {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}
    if any("\x1f" in f"{key}{value}" or "\x00" in f"{key}{value}" or "=" in key for key, value in settings.items()):
        raise RestError(400, "A setting has a character that cannot be part of one.")
    parallelism = call.whole("parallelism")
    if parallelism is not None:
        if not 0 < parallelism <= 32768:
            raise RestError(400, "parallelism should lie between 1 and 32768.")
        settings["parallelism.default"] = str(parallelism)
    savepoint = call.body.get("savepointPath")
    if savepoint is None and not call.body:
        savepoint = call.query.get("savepointPath")
    if savepoint is not None and not isinstance(savepoint, str):
        raise RestError(400, "savepointPath should be a text.")
    if savepoint:
        if "\x1f" in savepoint or "\x00" in savepoint:
            raise RestError(400, "savepointPath has a character that cannot be part of a path.")
        settings["execution.state-recovery.path"] = savepoint
    if call.flag("allowNonRestoredState"):
        settings["execution.state-recovery.ignore-unclaimed-state"] = "true"
    return settings


@ENDPOINTS.post("/jars/{jarid}/run", body=RUN)
def run(call: Call) -> Any:
    """Runs a program as a job."""
    program, arguments, settings = _program(call), _arguments(call), _settings(call)
    wanted = call.text("jobId")
    try:
        job_id = None if wanted is None else JobID(wanted).to_hex_string()
    except ProgramError as error:
        raise RestError(400, str(error)) from None
    row = call.cluster.supervisor.submit(program, arguments, settings, job_id)
    return {"jobid": row.id, "applicationId": row.id}


@ENDPOINTS.post("/jars/{jarid}/run-application", body=RUN, status=202)
def run_application(call: Call) -> Any:
    """Runs a program as a job, as newer clients of Flink ask for it."""
    return {"applicationid": run(call)["jobid"]}


@ENDPOINTS.post("/jars/{jarid}/plan", body=RUN)
def plan(call: Call) -> Any:
    """The graph that a program would run. The program runs up to its execute() for it."""
    program = _program(call)
    found = call.cluster.supervisor.plan(program, _arguments(call), _settings(call))
    row = JobRow("0" * 32, found.name, program.id, mode=found.mode, plan=found.plan)
    return {"plan": plan_of(JobView(row)), "firesteel": found.plan}


@ENDPOINTS.get("/jars/{jarid}/plan", changes=True)
def plan_by_get(call: Call) -> Any:
    """The graph that a program would run, as Flink's page asks for it. It runs the program, so it takes the token."""
    return plan(call)
