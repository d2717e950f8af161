"""Jobs: ``/jobs`` and what is directly below a job."""

from __future__ import annotations

from typing import Any

from firesteel.cluster.masking import masked_settings
from firesteel.cluster.registry import ENDED
from firesteel.cluster.rest.calls import Call, Endpoints, RestError
from firesteel.cluster.rest.shapes import (
    JOB_STATES,
    TASK_STATES,
    io_metrics,
    job_overview,
    plan_of,
    status_counts,
    task_state,
    vertex_times,
)
from firesteel.cluster.views import JobView
from firesteel.common import Configuration

__all__ = ["ENDPOINTS", "exceptions_of", "job_config", "job_details"]

ENDPOINTS = Endpoints()


@ENDPOINTS.get("/jobs")
def list_ids(call: Call) -> Any:
    """The ids and states of all jobs."""
    return {"jobs": [{"id": row.id, "status": row.state} for row in call.cluster.supervisor.rows()]}


@ENDPOINTS.get("/jobs/overview")
def overview(call: Call) -> Any:
    """All jobs with their times and tasks."""
    return {"jobs": [job_overview(JobView(row)) for row in call.cluster.supervisor.rows()]}


@ENDPOINTS.post("/jobs", body={})
def submit_graph(call: Call) -> Any:
    """Refused: a job graph of Java cannot run here."""
    raise RestError(
        400,
        "A job graph of Java cannot run here. Submit a Python program with 'firesteel run -d program.py', or upload it "
        "to /jars/upload and run it with /jars/:id/run.",
    )


@ENDPOINTS.get("/jobs/{jobid}")
def details(call: Call) -> Any:
    """One job with its vertices."""
    return job_details(call.job())


def job_details(view: JobView) -> dict[str, Any]:
    state, times = task_state(view), vertex_times(view)
    return {
        "jid": view.id,
        "application-id": view.id,
        "name": view.row.name,
        "isStoppable": False,
        "state": view.row.state,
        "job-type": view.row.mode,
        "schedulerType": "Default",
        "start-time": view.start_time,
        "end-time": view.end_time,
        "duration": view.duration,
        "maxParallelism": view.row.max_parallelism,
        "now": view.now,
        "timestamps": {one: view.row.times.get(one, 0) for one in JOB_STATES},
        "vertices": [
            {
                "id": vertex.id,
                "slotSharingGroupId": view.id,
                "name": vertex.name,
                "maxParallelism": max(128, vertex.parallelism),
                "parallelism": vertex.parallelism,
                "status": state,
                **times,
                "tasks": status_counts(state, vertex.parallelism),
                "metrics": io_metrics([vertex]),
            }
            for vertex in view.vertices
        ],
        "status-counts": {one: len(view.vertices) if one == state else 0 for one in TASK_STATES},
        "plan": plan_of(view),
        "pending-operators": 0,
    }


@ENDPOINTS.get("/jobs/{jobid}/status")
def status(call: Call) -> Any:
    """The state of a job."""
    return {"status": call.cluster.supervisor.row(call.job_id).state}


@ENDPOINTS.get("/jobs/{jobid}/plan")
def plan(call: Call) -> Any:
    """The graph of a job."""
    return {"plan": plan_of(call.job())}


@ENDPOINTS.get("/jobs/{jobid}/config")
def config(call: Call) -> Any:
    """The settings of a job."""
    return job_config(call.job())


def job_config(view: JobView) -> dict[str, Any]:
    missing = "exponential-delay" if view.row.checkpointing else "none"
    strategy = Configuration.from_dict(view.row.restart).get_string("restart-strategy.type", missing)
    return {
        "jid": view.id,
        "name": view.row.name,
        "execution-config": {
            "restart-strategy": strategy,
            "job-parallelism": view.row.parallelism,
            "object-reuse-mode": False,
            "user-config": view.masker.tree(masked_settings(view.row.configuration)),
        },
    }


@ENDPOINTS.get("/jobs/{jobid}/exceptions", query={"maxExceptions": {"type": "integer"}})
def exceptions(call: Call) -> Any:
    """The failures of a job, the last one first."""
    most = call.whole("maxExceptions")
    return exceptions_of(call.job(), 100 if most is None else max(0, most))


def exceptions_of(view: JobView, most: int = 100) -> dict[str, Any]:
    entries: list[dict[str, Any]] = [
        {
            "exceptionName": one.exception or "firesteel.errors.JobExecutionError",
            "stacktrace": view.masker.text(one.message if not one.trace else f"{one.message}\n\n{one.trace}"),
            "timestamp": one.timestamp,
            "failureLabels": {},
            "taskName": None
            if one.operator is None
            else one.operator
            if one.subtask is None
            else f"{one.operator} ({one.subtask + 1})",
            "endpoint": None,
            "taskManagerId": None,
            "concurrentExceptions": [],
        }
        for one in view.failures
    ]
    return {
        "exceptionHistory": {
            "entries": entries[:most],
            "truncated": view.exceptions.truncated or len(entries) > most,
        }
    }


@ENDPOINTS.get("/jobs/{jobid}/execution-result")
def execution_result(call: Call) -> Any:
    """How a job ended, once it has."""
    view = call.job()
    if not view.ended:
        return {"status": {"id": "IN_PROGRESS"}}
    result: dict[str, Any] = {
        "id": view.id,
        "application-status": {"FINISHED": "SUCCEEDED", "CANCELED": "CANCELED"}.get(view.row.state, "FAILED"),
        "accumulator-results": {},
        "net-runtime": view.duration,
    }
    if view.row.state == "FAILED":
        text = view.masker.text(view.row.failure)
        result["failure-cause"] = {"class": "firesteel.errors.JobExecutionError", "stack-trace": text}
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result}


@ENDPOINTS.get("/jobs/{jobid}/accumulators")
def accumulators(call: Call) -> Any:
    """Accumulators, of which there are none: functions have metrics."""
    _ = call.job_id
    return {"job-accumulators": [], "user-task-accumulators": [], "serialized-user-task-accumulators": {}}


@ENDPOINTS.patch("/jobs/{jobid}", status=202, query={"mode": {"type": "string", "enum": ["cancel", "stop"]}})
def terminate(call: Call) -> Any:
    """Cancels a job."""
    mode = (call.query.get("mode") or "cancel").lower()
    if mode != "cancel":
        raise RestError(400, "Jobs are stopped with a savepoint: POST to /jobs/:id/stop.")
    cancel(call)
    return {}


@ENDPOINTS.get("/jobs/{jobid}/yarn-cancel", status=202, changes=True)
def yarn_cancel(call: Call) -> Any:
    """Cancels a job, as Flink's page asks for it."""
    cancel(call)
    return {}


def cancel(call: Call) -> None:
    row = call.cluster.supervisor.row(call.job_id)
    # One that is cancelled already was asked to be, and Flink's client may ask twice.
    if row.state == "CANCELED":
        return
    if row.state in ENDED:
        raise RestError(409, f"Job {row.id} has ended ({row.state}): there is nothing to cancel.")
    call.cluster.supervisor.cancel(row.id)


for _path in (
    "/jobs/{jobid}/rescales/{what}",
    "/jobs/{jobid}/resource-requirements",
    "/jobs/{jobid}/rescaling",
    "/datasets",
    "/jobs/{jobid}/vertices/{vertexid}/flamegraph",
    "/taskmanagers/{taskmanagerid}/profiler",
    "/jobmanager/profiler",
):

    @ENDPOINTS.get(_path)
    def missing(call: Call) -> Any:
        """Not there: Flink has this, Firesteel has not."""
        raise RestError(404, "Firesteel has nothing like this.")
