"""Savepoints, stops and checkpoints: asked for with POST, looked at with GET until they are done."""

from __future__ import annotations

from typing import Any

from firesteel.cluster.registry import ENDED, OperationRow
from firesteel.cluster.rest.calls import Call, Endpoints, RestError
from firesteel.cluster.rest.java_throwable import serialized_throwable

__all__ = ["ENDPOINTS"]

ENDPOINTS = Endpoints()
TEXT = {"type": "string", "nullable": True}
FLAG = {"type": "boolean", "nullable": True}


def _running(call: Call) -> str:
    row = call.cluster.supervisor.row(call.job_id)
    trigger = call.text("triggerId")
    if row.state in ENDED and (trigger is None or call.cluster.operations.find(trigger) is None):
        raise RestError(409, f"Job {row.id} has ended ({row.state}).")
    return row.id


@ENDPOINTS.post(
    "/jobs/{jobid}/savepoints",
    status=202,
    body={"target-directory": TEXT, "cancel-job": FLAG, "formatType": TEXT, "triggerId": TEXT},
)
def savepoint(call: Call) -> Any:
    """Takes a savepoint, and cancels the job then if asked to."""
    row = call.cluster.operations.savepoint(
        _running(call), call.text("target-directory"), call.flag("cancel-job"), call.text("triggerId")
    )
    return {"request-id": row.id}


@ENDPOINTS.post(
    "/jobs/{jobid}/stop",
    status=202,
    body={"targetDirectory": TEXT, "drain": FLAG, "formatType": TEXT, "triggerId": TEXT},
)
def stop(call: Call) -> Any:
    """Stops a job with a savepoint."""
    row = call.cluster.operations.stop(
        _running(call), call.text("targetDirectory", "target-directory"), call.flag("drain"), call.text("triggerId")
    )
    return {"request-id": row.id}


@ENDPOINTS.post("/jobs/{jobid}/checkpoints", status=202, body={"checkpointType": TEXT, "triggerId": TEXT})
def checkpoint(call: Call) -> Any:
    """Answers with the last checkpoint: there is one after each micro-batch."""
    return {"request-id": call.cluster.operations.checkpoint(_running(call), call.text("triggerId")).id}


@ENDPOINTS.post("/savepoint-disposal", status=202, body={"savepoint-path": TEXT})
def dispose(call: Call) -> Any:
    """Deletes a savepoint."""
    path = call.text("savepoint-path")
    if path is None:
        raise RestError(400, "savepoint-path should say which savepoint to delete.")
    return {"request-id": call.cluster.operations.dispose(path).id}


def _found(call: Call, kinds: tuple[str, ...], job: str) -> OperationRow:
    row = call.cluster.operations.find(call.path["triggerid"])
    if row is None or row.kind not in kinds or row.job != job:
        raise RestError(404, f"There is no operation {call.path['triggerid'][:40]!r} of this kind.")
    return row


def _failure(text: str) -> dict[str, Any]:
    name = "firesteel.errors.FiresteelError"
    return {"class": name, "stack-trace": text, "serialized-throwable": serialized_throwable(name, text)}


def _answer(row: OperationRow, result: dict[str, Any]) -> dict[str, Any]:
    if not row.done:
        return {"status": {"id": "IN_PROGRESS"}, "operation": None}
    return {
        "status": {"id": "COMPLETED"},
        "operation": {"failure-cause": _failure(row.failure)} if row.failure else result,
    }


@ENDPOINTS.get("/jobs/{jobid}/savepoints/{triggerid}")
def savepoint_status(call: Call) -> Any:
    """How far a savepoint or a stop has come."""
    row = _found(call, ("savepoint", "stop"), call.job_id)
    return _answer(row, {"location": row.result})


@ENDPOINTS.get("/jobs/{jobid}/checkpoints/{triggerid}")
def checkpoint_status(call: Call) -> Any:
    """How far a checkpoint has come."""
    row = _found(call, ("checkpoint",), call.job_id)
    return _answer(row, {"checkpointId": int(row.result or 0)})


@ENDPOINTS.get("/savepoint-disposal/{triggerid}")
def disposal_status(call: Call) -> Any:
    """How far a disposal has come."""
    return _answer(_found(call, ("dispose",), ""), {})
