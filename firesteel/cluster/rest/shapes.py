"""Parts of answers that several end points share, in Flink's shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.cluster.registry import ENDED
from firesteel.cluster.views import JobView, Vertex

__all__ = [
    "JOB_STATES",
    "TASK_STATES",
    "endpoint_of",
    "io_metrics",
    "job_overview",
    "plan_of",
    "status_counts",
    "task_state",
    "taskmanager_of",
    "vertex_times",
]

JOB_STATES = (
    "FAILED",
    "CREATED",
    "INITIALIZING",
    "FAILING",
    "RECONCILING",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RUNNING",
    "CANCELED",
    "CANCELLING",
)
TASK_STATES = (
    "FAILED",
    "INITIALIZING",
    "CANCELING",
    "FINISHED",
    "CREATED",
    "CANCELED",
    "RECONCILING",
    "SCHEDULED",
    "DEPLOYING",
    "RUNNING",
)

_TASK_STATE = {
    "CREATED": "CREATED",
    "INITIALIZING": "DEPLOYING",
    "RESTARTING": "SCHEDULED",
    "RECONCILING": "RECONCILING",
    "CANCELLING": "CANCELING",
    "CANCELED": "CANCELED",
    "FAILING": "CANCELING",
    "FAILED": "FAILED",
    "FINISHED": "FINISHED",
    "SUSPENDED": "CANCELED",
    "RUNNING": "RUNNING",
}


def task_state(view: JobView) -> str:
    """All tasks of a job are in one state: a micro-batch runs all of them, or none."""
    return _TASK_STATE.get(view.row.state, "RUNNING")


def status_counts(state: str, count: int) -> dict[str, int]:
    return {one: count if one == state else 0 for one in TASK_STATES}


def job_overview(view: JobView) -> dict[str, Any]:
    # Not by its vertices: this is asked for all jobs, all the time.
    total = sum(chain["parallelism"] for chain in view.row.plan.get("chains", ()))
    tasks = {one.lower(): count for one, count in status_counts(task_state(view), total).items()}
    return {
        "jid": view.id,
        "name": view.row.name,
        "jobType": view.row.mode,
        "schedulerType": "Default",
        "start-time": view.start_time,
        "end-time": view.end_time,
        "duration": view.duration,
        "state": view.row.state,
        "last-modification": view.row.changed,
        "tasks": {**tasks, "total": total},
        "pending-operators": 0,
    }


def io_metrics(vertices: Iterable[Vertex], subtask: int | None = None) -> dict[str, Any]:
    """What vertices, or one subtask of each, have read and written."""
    sums = dict.fromkeys(("read-bytes", "write-bytes", "read-records", "write-records"), 0)
    busy = 0.0
    for vertex in vertices:
        for place, operator in enumerate(vertex.operators):
            for one in operator.subtasks:
                if subtask is not None and one.subtask != subtask:
                    continue
                sums["read-bytes"] += one.bytes_in
                sums["write-bytes"] += one.bytes_out
                if place == 0 and not vertex.is_source:
                    sums["read-records"] += one.records_in
                if place == len(vertex.operators) - 1 and vertex.nodes[-1].get("pact") != "Data Sink":
                    sums["write-records"] += one.records_out
                busy += one.busy_ms
    found: dict[str, Any] = {}
    for name, value in sums.items():
        found[name] = value
        found[f"{name}-complete"] = True
    return {
        **found,
        "accumulated-backpressured-time": 0,
        "accumulated-idle-time": 0,
        "accumulated-busy-time": round(busy, 1),
    }


def vertex_times(view: JobView) -> dict[str, Any]:
    """When the tasks of the last attempt began and ended."""
    began = view.row.times.get("RUNNING", -1)
    ended = view.row.ended if view.row.state in ENDED and began > 0 else -1
    duration = -1 if began < 0 else max(0, (ended if ended > 0 else view.now) - began)
    return {"start-time": began, "end-time": ended, "duration": duration}


def taskmanager_of(view: JobView) -> str:
    """Each job has a driver of its own, which is its task manager."""
    return f"driver-{view.id[:12]}"


def endpoint_of(view: JobView) -> str:
    return "(unassigned)" if not view.row.pid else f"localhost:{view.row.pid}"


def plan_of(view: JobView) -> dict[str, Any]:
    nodes = []
    for vertex in reversed(view.vertices):
        node: dict[str, Any] = {
            "id": vertex.id,
            "operator": "",
            "parallelism": vertex.parallelism,
            "operator_strategy": "",
            "description": _description(vertex),
            "optimizer_properties": {},
        }
        if vertex.inputs:
            node["inputs"] = [
                {"id": before, "num": number, "exchange": "pipelined_bounded", "ship_strategy": strategy}
                for number, (before, strategy) in enumerate(vertex.inputs)
            ]
        nodes.append(node)
    return {"jid": view.id, "name": view.row.name, "type": view.row.mode, "nodes": nodes}


def _description(vertex: Vertex) -> str:
    # Flink's page takes this for HTML, and so names must not be any.
    names = [_escaped(str(node.get("type", ""))) for node in vertex.nodes]
    lines = [names[0], *(f"{'   ' * place}+- {name}" for place, name in enumerate(names[1:]))]
    return "".join(f"{line}<br/>" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
