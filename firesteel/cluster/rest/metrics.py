"""Metrics of jobs and vertices by Flink's names. Without ``get`` an end point lists names, with it their values."""

from __future__ import annotations

import re
import socket
import statistics
from collections.abc import Mapping
from typing import Any

from firesteel.cluster.registry import ENDED
from firesteel.cluster.rest.calls import Call, Endpoints, File, RestError
from firesteel.cluster.views import JobView, Vertex
from firesteel.engine.metric_samples import job_samples
from firesteel.metrics.exposition import CONTENT_TYPE, exposition
from firesteel.metrics.samples import Sample

__all__ = ["ENDPOINTS", "job_metrics", "subtask_metrics"]

ENDPOINTS = Endpoints()
VERTEX = "/jobs/{jobid}/vertices/{vertexid}"
GET = {"get": {"type": "string", "description": "names, separated by commas"}}
NO_WATERMARK = -(2**63)


def job_metrics(view: JobView) -> dict[str, Any]:
    """The metrics of a job."""
    known, last = view.checkpoints, view.checkpoints.latest_completed
    folder = None if view.details is None else view.details.checkpoint_folder
    return {
        "uptime": view.duration if view.row.state == "RUNNING" else 0,
        "runningTime": view.duration,
        "restartingTime": 0,
        "cancellingTime": 0,
        "failingTime": 0,
        "numRestarts": view.row.attempt,
        "fullRestarts": view.row.attempt,
        "numberOfCompletedCheckpoints": known.completed,
        "numberOfFailedCheckpoints": known.failed,
        "numberOfInProgressCheckpoints": 0,
        "totalNumberOfCheckpoints": known.completed + known.failed,
        "lastCheckpointDuration": -1 if last is None else last.duration_ms,
        "lastCheckpointSize": -1 if last is None else last.checkpointed_size or 0,
        "lastCheckpointFullSize": -1 if last is None else last.state_size or 0,
        "lastCheckpointExternalPath": folder or "n/a",
        "lastCompletedCheckpointId": -1 if last is None else last.checkpoint_id,
    }


def subtask_metrics(vertex: Vertex, subtask: int) -> dict[str, Any]:
    """The metrics of one subtask of a vertex: those of the task, and of each operator with its name before them."""
    found: dict[str, Any] = {}
    task: dict[str, float] = {}
    for place, operator in enumerate(vertex.operators):
        scope = plain(operator.name)
        for one in operator.subtasks:
            if one.subtask != subtask:
                continue
            own: dict[str, Any] = {
                "numRecordsIn": one.records_in,
                "numRecordsOut": one.records_out,
                "numRecordsInPerSecond": one.per_second.records_in,
                "numRecordsOutPerSecond": one.per_second.records_out,
                "currentInputWatermark": NO_WATERMARK if one.watermark is None else one.watermark,
                "currentOutputWatermark": NO_WATERMARK if one.watermark is None else one.watermark,
                "stateSize": one.state_size,
            }
            for name, value in own.items():
                found[f"{scope}.{name}"] = value
            for name, value in one.values.items():
                found[f"{scope}.{plain(name)}"] = value if not isinstance(value, Mapping) else _first(value)
            if place == 0:
                task["numRecordsIn"] = one.records_in
                task["numRecordsInPerSecond"] = one.per_second.records_in
                task["currentInputWatermark"] = own["currentInputWatermark"]
            if place == len(vertex.operators) - 1:
                task["numRecordsOut"] = one.records_out
                task["numRecordsOutPerSecond"] = one.per_second.records_out
            for name, value in (
                ("numBytesIn", one.bytes_in),
                ("numBytesOut", one.bytes_out),
                ("numBytesInPerSecond", one.per_second.bytes_in),
                ("numBytesOutPerSecond", one.per_second.bytes_out),
                ("busyTimeMsPerSecond", one.per_second.busy_ms),
            ):
                task[name] = task.get(name, 0) + value
    if task:
        busy = min(1000.0, task.get("busyTimeMsPerSecond", 0.0))
        task["busyTimeMsPerSecond"] = busy
        task["idleTimeMsPerSecond"] = 1000.0 - busy
        task["backPressuredTimeMsPerSecond"] = 0
        task["accumulateBackPressuredTimeMs"] = 0
    return {**task, **found}


def plain(name: str) -> str:
    """
    >>> plain("Sink: Print to Std. Out")
    'Sink__Print_to_Std__Out'
    """
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _first(value: Mapping[str, Any]) -> Any:
    return next(iter(value.values()), 0)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))
    return str(value)


def _asked(call: Call, known: Mapping[str, Any]) -> Any:
    wanted = call.query.get("get")
    if not wanted:
        return [{"id": name} for name in known]
    return [{"id": name, "value": _text(known[name])} for name in wanted.split(",") if name in known]


def _aggregated(call: Call, parts: list[dict[str, Any]]) -> Any:
    """The same metrics of several, taken together."""
    names = list(dict.fromkeys(name for part in parts for name in part))
    wanted = call.query.get("get")
    if not wanted:
        return [{"id": name} for name in names]
    kinds = [kind for kind in call.query.get("agg", "").split(",") if kind] or ["min", "max", "avg", "sum", "skew"]
    found = []
    for name in wanted.split(","):
        values = [part[name] for part in parts if isinstance(part.get(name), int | float)]
        if values:
            computed = _aggregates(values)
            unknown = [kind for kind in kinds if kind not in computed]
            if unknown:
                raise RestError(400, f"agg is one or more of {', '.join(computed)}, got {unknown[0][:40]!r}.")
            found.append({"id": name, **{kind: computed[kind] for kind in kinds}})
    return found


def _aggregates(values: list[float]) -> dict[str, float]:
    """
    >>> _aggregates([1, 3])
    {'min': 1.0, 'max': 3.0, 'avg': 2.0, 'sum': 4.0, 'skew': 50.0}
    """
    mean = statistics.fmean(values)
    distance = statistics.fmean(abs(value - mean) for value in values)
    return {
        "min": float(min(values)),
        "max": float(max(values)),
        "avg": mean,
        "sum": float(sum(values)),
        # As Flink has it: how far subtasks are from the average, in percent of it.
        "skew": min(100.0, 100.0 * distance / mean) if mean else 0.0,
    }


@ENDPOINTS.get("/jobs/metrics", query={**GET, "agg": {"type": "string"}, "jobs": {"type": "string"}})
def of_jobs(call: Call) -> Any:
    """The metrics of all running jobs, taken together."""
    wanted = [one for one in call.query.get("jobs", "").split(",") if one]
    running = [row.id for row in call.cluster.supervisor.rows() if row.state == "RUNNING"]
    chosen = [one for one in running if not wanted or one in wanted]
    return _aggregated(call, [job_metrics(call.cluster.view(one)) for one in chosen])


@ENDPOINTS.get("/jobs/{jobid}/metrics", query=GET)
def of_job(call: Call) -> Any:
    """The metrics of a job."""
    return _asked(call, job_metrics(call.job()))


def _of_subtasks(vertex: Vertex) -> list[dict[str, Any]]:
    return [subtask_metrics(vertex, number) for number in range(vertex.parallelism)]


@ENDPOINTS.get(f"{VERTEX}/metrics", query=GET)
def of_vertex(call: Call) -> Any:
    """The metrics of a vertex, by subtask."""
    _, vertex = call.vertex()
    parts = _of_subtasks(vertex)
    return _asked(
        call, {f"{number}.{name}": value for number, part in enumerate(parts) for name, value in part.items()}
    )


@ENDPOINTS.get(f"{VERTEX}/subtasks/metrics", query={**GET, "agg": {"type": "string"}, "subtasks": {"type": "string"}})
def of_subtasks(call: Call) -> Any:
    """The metrics of a vertex, all subtasks taken together."""
    _, vertex = call.vertex()
    return _aggregated(call, _of_subtasks(vertex))


@ENDPOINTS.get(f"{VERTEX}/subtasks/{{subtask}}/metrics", query=GET)
def of_subtask(call: Call) -> Any:
    """The metrics of one subtask."""
    _, vertex = call.vertex()
    number = call.number("subtask")
    if number >= vertex.parallelism:
        raise RestError(404, f"Vertex {vertex.id} has {vertex.parallelism} subtasks.")
    return _asked(call, subtask_metrics(vertex, number))


@ENDPOINTS.get(f"{VERTEX}/jm-operator-metrics")
def of_coordinators(call: Call) -> Any:
    """Metrics of coordinators, of which there are none."""
    call.vertex()
    return []


@ENDPOINTS.get(f"{VERTEX}/watermarks")
def watermarks(call: Call) -> Any:
    """The watermark of each subtask."""
    _, vertex = call.vertex()
    return [
        {"id": f"{number}.currentInputWatermark", "value": str(part.get("currentInputWatermark", NO_WATERMARK))}
        for number, part in enumerate(_of_subtasks(vertex))
    ]


@ENDPOINTS.get("/metrics", own=True)
def scraped(call: Call) -> Any:
    """The metrics of the job manager and of all jobs that have not ended, for Prometheus."""
    supervisor, host = call.cluster.supervisor, socket.gethostname()
    rows = [row for row in supervisor.rows() if row.state not in ENDED]
    own = {
        "numRunningJobs": sum(row.state == "RUNNING" for row in rows),
        "numRegisteredTaskManagers": sum(row.pid != 0 for row in rows),
        "taskSlotsTotal": call.cluster.settings.slots,
        "taskSlotsAvailable": supervisor.free_slots,
    }
    samples = [Sample("jobmanager", name, value, variables={"host": host}) for name, value in own.items()]
    for row in rows:
        managed = supervisor.managed(row.id)
        known = None if managed is None else managed.snapshot
        if known is not None:
            samples += job_samples(known.status, known.metrics, known.checkpoints, None, host)
    return File(exposition(samples).encode(), CONTENT_TYPE)
