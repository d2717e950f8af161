"""Vertices of a job: ``/jobs/:id/vertices/:id`` and what is below, without metrics."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from firesteel.cluster.rest.calls import Call, Endpoints, RestError
from firesteel.cluster.rest.shapes import (
    endpoint_of,
    io_metrics,
    status_counts,
    task_state,
    taskmanager_of,
    vertex_times,
)
from firesteel.cluster.views import JobView, Vertex

__all__ = ["ENDPOINTS", "vertex_details", "vertex_taskmanagers", "vertex_times_of"]

ENDPOINTS = Endpoints()
VERTEX = "/jobs/{jobid}/vertices/{vertexid}"


def _subtask(view: JobView, vertex: Vertex, number: int) -> dict[str, Any]:
    times = vertex_times(view)
    state = task_state(view)
    return {
        "subtask": number,
        "status": state,
        "attempt": view.row.attempt,
        "endpoint": endpoint_of(view),
        **times,
        "metrics": io_metrics([vertex], number),
        "taskmanager-id": taskmanager_of(view),
        "status-duration": {
            "INITIALIZING": 0,
            "CREATED": 0,
            "SCHEDULED": 0,
            "DEPLOYING": 0,
            "RUNNING": max(0, times["duration"]),
        },
        "start_time": times["start-time"],
    }


def vertex_details(view: JobView, vertex: Vertex) -> dict[str, Any]:
    return {
        "id": vertex.id,
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "maxParallelism": max(128, vertex.parallelism),
        "now": view.now,
        "subtasks": [_subtask(view, vertex, number) for number in range(vertex.parallelism)],
        "aggregated": _aggregated(view, vertex),
    }


def _aggregated(view: JobView, vertex: Vertex) -> dict[str, Any]:
    """All subtasks, taken together."""
    parts = [io_metrics([vertex], number) for number in range(vertex.parallelism)]
    names = [name for name in parts[0] if not name.endswith("-complete")]
    duration = max(0, vertex_times(view)["duration"])
    states = ("CREATED", "RUNNING", "INITIALIZING", "SCHEDULED", "DEPLOYING")
    return {
        "metrics": {name: _spread([part[name] for part in parts]) for name in names},
        "status-duration": {one: _spread([duration if one == "RUNNING" else 0] * vertex.parallelism) for one in states},
    }


@ENDPOINTS.get(VERTEX)
def details(call: Call) -> Any:
    """One vertex with its subtasks."""
    return vertex_details(*call.vertex())


@ENDPOINTS.get(f"{VERTEX}/subtasktimes")
def subtask_times(call: Call) -> Any:
    """When the subtasks of a vertex took their states."""
    return vertex_times_of(*call.vertex())


def vertex_times_of(view: JobView, vertex: Vertex) -> dict[str, Any]:
    known = {"FAILED": "FAILED", "CANCELED": "CANCELED", "FINISHED": "FINISHED", "RUNNING": "RUNNING"}
    known |= {"CREATED": "CREATED", "CANCELING": "CANCELLING", "SCHEDULED": "INITIALIZING"}
    stamps = {one: view.row.times.get(known.get(one, ""), 0) for one in status_counts("", 0)}
    return {
        "id": vertex.id,
        "name": vertex.name,
        "now": view.now,
        "subtasks": [
            {
                "subtask": number,
                "endpoint": endpoint_of(view),
                "duration": max(0, vertex_times(view)["duration"]),
                "timestamps": stamps,
            }
            for number in range(vertex.parallelism)
        ],
    }


@ENDPOINTS.get(f"{VERTEX}/taskmanagers")
def taskmanagers(call: Call) -> Any:
    """Where the subtasks of a vertex run: all of them with the job's driver."""
    return vertex_taskmanagers(*call.vertex())


def vertex_taskmanagers(view: JobView, vertex: Vertex) -> dict[str, Any]:
    state = task_state(view)
    return {
        "id": vertex.id,
        "name": vertex.name,
        "now": view.now,
        "taskmanagers": [
            {
                "endpoint": endpoint_of(view),
                "status": state,
                **vertex_times(view),
                "metrics": io_metrics([vertex]),
                "status-counts": status_counts(state, vertex.parallelism),
                "taskmanager-id": taskmanager_of(view),
                "aggregated": _aggregated(view, vertex),
            }
        ],
    }


def _spread(values: Sequence[float]) -> dict[str, int]:
    """
    >>> _spread([1, 3])
    {'p25': 1, 'min': 1, 'avg': 2, 'median': 2, 'max': 3, 'sum': 4, 'p95': 3, 'p75': 3}
    """
    ordered = sorted(values)

    def at(share: float) -> int:
        return int(ordered[min(len(ordered) - 1, int(share * len(ordered)))])

    return {
        "p25": at(0.25),
        "min": int(ordered[0]),
        "avg": int(statistics.fmean(ordered)),
        "median": int(statistics.median(ordered)),
        "max": int(ordered[-1]),
        "sum": int(sum(ordered)),
        "p95": at(0.95),
        "p75": at(0.75),
    }


@ENDPOINTS.get(f"{VERTEX}/accumulators")
def accumulators(call: Call) -> Any:
    """Accumulators, of which there are none."""
    _, vertex = call.vertex()
    return {"id": vertex.id, "user-accumulators": []}


@ENDPOINTS.get(f"{VERTEX}/subtasks/accumulators")
def subtask_accumulators(call: Call) -> Any:
    """Accumulators by subtask, of which there are none."""
    view, vertex = call.vertex()
    known = {"attempt": view.row.attempt, "endpoint": endpoint_of(view), "user-accumulators": []}
    subtasks = [{"subtask": number, **known} for number in range(vertex.parallelism)]
    return {"id": vertex.id, "parallelism": vertex.parallelism, "subtasks": subtasks}


@ENDPOINTS.get(f"{VERTEX}/backpressure")
def backpressure(call: Call) -> Any:
    """Always none: a micro-batch takes in what it can work through. What waits is the sources' backlog."""
    view, vertex = call.vertex()
    subtasks = []
    for number in range(vertex.parallelism):
        busy = sum(
            one.per_second.busy_ms
            for operator in vertex.operators
            for one in operator.subtasks
            if one.subtask == number
        )
        share = round(min(1.0, busy / 1000), 3)
        subtasks.append(
            {
                "subtask": number,
                "backpressureLevel": "ok",
                "ratio": 0.0,
                "idleRatio": round(1.0 - share, 3),
                "busyRatio": share,
                "backpressure-level": "ok",
            }
        )
    return {
        "status": "ok",
        "backpressureLevel": "ok",
        "end-timestamp": view.now,
        "subtasks": subtasks,
        "backpressure-level": "ok",
    }


@ENDPOINTS.get(f"{VERTEX}/subtasks/{{subtask}}")
def subtask(call: Call) -> Any:
    """One subtask of a vertex."""
    view, vertex = call.vertex()
    return _subtask(view, vertex, _number(call, vertex))


@ENDPOINTS.get(f"{VERTEX}/subtasks/{{subtask}}/attempts/{{attempt}}")
def attempt(call: Call) -> Any:
    """One subtask, in the attempt that runs or ran last."""
    view, vertex = call.vertex()
    number = _number(call, vertex)
    if call.number("attempt") != view.row.attempt:
        raise RestError(404, f"Of job {view.id} attempt {view.row.attempt} is known only.")
    return _subtask(view, vertex, number)


@ENDPOINTS.get(f"{VERTEX}/subtasks/{{subtask}}/attempts/{{attempt}}/accumulators")
def attempt_accumulators(call: Call) -> Any:
    """Accumulators of one attempt, of which there are none."""
    view, vertex = call.vertex()
    number = _number(call, vertex)
    tried = call.number("attempt")
    known = f"{view.id}_{vertex.id}_{number}_{tried}"
    return {"subtask": number, "attempt": tried, "id": known, "user-accumulators": []}


def _number(call: Call, vertex: Vertex) -> int:
    number = call.number("subtask")
    if number >= vertex.parallelism:
        raise RestError(404, f"Vertex {vertex.id} has {vertex.parallelism} subtasks: there is no {number}.")
    return number
