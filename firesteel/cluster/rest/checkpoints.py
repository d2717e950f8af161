"""The checkpoints of a job."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from firesteel.cluster.rest.calls import Call, Endpoints, RestError
from firesteel.cluster.views import JobView, Vertex
from firesteel.common import Configuration
from firesteel.engine.facade import CheckpointSummary
from firesteel.errors import ConfigurationError

__all__ = ["ENDPOINTS", "checkpoint_config", "checkpoint_details", "checkpoints_of"]

ENDPOINTS = Endpoints()


def _summary(values: Sequence[float]) -> dict[str, Any]:
    """
    >>> _summary([1, 2, 3])["p50"], _summary([])["p50"]
    (2.0, 'NaN')
    """
    ordered = sorted(values)
    found: dict[str, Any] = {
        "min": int(ordered[0]) if ordered else 0,
        "max": int(ordered[-1]) if ordered else 0,
        "avg": int(statistics.fmean(ordered)) if ordered else 0,
    }
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)):
        found[name] = float(ordered[min(len(ordered) - 1, int(share * len(ordered)))]) if ordered else "NaN"
    return found


def _one(view: JobView, known: CheckpointSummary, tasks: dict[str, Any] | None = None) -> dict[str, Any]:
    total = sum(vertex.parallelism for vertex in view.vertices)
    found = {
        "className": "completed" if known.completed else "failed",
        "id": known.checkpoint_id,
        "status": "COMPLETED" if known.completed else "FAILED",
        "is_savepoint": False,
        "savepointFormat": None,
        "trigger_timestamp": known.trigger_timestamp,
        "latest_ack_timestamp": known.trigger_timestamp + known.duration_ms,
        "checkpointed_size": known.checkpointed_size or 0,
        "state_size": known.state_size or 0,
        "end_to_end_duration": known.duration_ms,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": total,
        "num_acknowledged_subtasks": total if known.completed else 0,
        "checkpoint_type": "CHECKPOINT",
        "tasks": tasks or {},
    }
    if known.completed:
        place = None if view.details is None else view.details.checkpoint_folder
        return {**found, "external_path": place or "<checkpoint-not-externally-addressable>", "discarded": False}
    return {
        **found,
        "failure_timestamp": known.trigger_timestamp + known.duration_ms,
        "failure_message": view.masker.text(known.failure or ""),
    }


@ENDPOINTS.get("/jobs/{jobid}/checkpoints")
def checkpoints(call: Call) -> Any:
    """How many checkpoints there were, and the last ones."""
    return checkpoints_of(call.job())


def checkpoints_of(view: JobView) -> dict[str, Any]:
    known = view.checkpoints
    done = [one for one in known.history if one.completed]
    last, failed = known.latest_completed, known.latest_failed
    return {
        "counts": {
            "restored": known.restored,
            "total": known.completed + known.failed,
            "in_progress": 0,
            "completed": known.completed,
            "failed": known.failed,
        },
        "summary": {
            "checkpointed_size": _summary([one.checkpointed_size or 0 for one in done]),
            "state_size": _summary([one.state_size or 0 for one in done]),
            "end_to_end_duration": _summary([one.duration_ms for one in done]),
            "alignment_buffered": _summary([0 for _ in done]),
            "processed_data": _summary([0 for _ in done]),
            "persisted_data": _summary([0 for _ in done]),
        },
        "latest": {
            "completed": None if last is None else _one(view, last),
            "savepoint": None,
            "failed": None if failed is None else _one(view, failed),
            "restored": None,
        },
        "history": [_one(view, one) for one in reversed(known.history)],
    }


@ENDPOINTS.get("/jobs/{jobid}/checkpoints/config")
def config(call: Call) -> Any:
    """How checkpoints are configured."""
    return checkpoint_config(call.job())


def checkpoint_config(view: JobView) -> dict[str, Any]:
    # By way of a Configuration, which finds settings under Flink's older keys.
    known = Configuration.from_dict(view.row.configuration)
    retention = known.get_string("execution.checkpointing.externalized-checkpoint-retention", "").upper()
    return {
        "mode": known.get_string("execution.checkpointing.mode", "EXACTLY_ONCE").lower(),
        "interval": _milliseconds(known, "execution.checkpointing.interval", 2**63 - 1),
        "timeout": _milliseconds(known, "execution.checkpointing.timeout", 600_000),
        # A job may set one, but it has no effect.
        "min_pause": 0,
        "max_concurrent": 1,
        "externalization": {
            "enabled": retention == "RETAIN_ON_CANCELLATION",
            "delete_on_cancellation": retention != "RETAIN_ON_CANCELLATION",
        },
        "state_backend": known.get_string("state.backend.type", "hashmap"),
        "checkpoint_storage": "FileSystemCheckpointStorage",
        "unaligned_checkpoints": False,
        "tolerable_failed_checkpoints": 0,
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
        "changelog_periodic_materialization_interval": 600_000,
        "changelog_storage": "memory",
    }


def _milliseconds(known: Configuration, key: str, missing: int) -> int:
    try:
        return known.get_duration_ms(key, missing)
    except ConfigurationError:
        # Of a job that was refused for it.
        return missing


@ENDPOINTS.get("/jobs/{jobid}/checkpoints/details/{checkpointid}")
def details(call: Call) -> Any:
    """One checkpoint with the sizes of each vertex."""
    view = call.job()
    return checkpoint_details(view, _find(view, call))


def _find(view: JobView, call: Call) -> CheckpointSummary:
    number = call.number("checkpointid", 2**63)
    for one in reversed(view.checkpoints.history):
        if one.checkpoint_id == number:
            return one
    raise RestError(404, f"Checkpoint {number} of job {view.id} is not known, or no longer.")


def checkpoint_details(view: JobView, known: CheckpointSummary) -> dict[str, Any]:
    return _one(view, known, {vertex.id: _of_vertex(vertex, known) for vertex in view.vertices})


def _of_vertex(vertex: Vertex, known: CheckpointSummary) -> dict[str, Any]:
    size = sum(known.operator_state_sizes.get(str(node.get("type")), 0) for node in vertex.nodes)
    return {
        "id": known.checkpoint_id,
        "status": "COMPLETED" if known.completed else "FAILED",
        "latest_ack_timestamp": known.trigger_timestamp + known.duration_ms,
        "checkpointed_size": size,
        "state_size": size,
        "end_to_end_duration": known.duration_ms,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": vertex.parallelism,
        "num_acknowledged_subtasks": vertex.parallelism if known.completed else 0,
    }


@ENDPOINTS.get("/jobs/{jobid}/checkpoints/details/{checkpointid}/subtasks/{vertexid}")
def subtasks(call: Call) -> Any:
    """One checkpoint of one vertex."""
    view, vertex = call.vertex()
    known = _find(view, call)
    whole = _of_vertex(vertex, known)
    spread = {name: _summary([whole[name]]) for name in ("checkpointed_size", "state_size", "end_to_end_duration")}
    none = _summary([0])
    return {
        **whole,
        "summary": {
            **spread,
            "checkpoint_duration": {"sync": none, "async": none},
            "alignment": {"buffered": none, "processed": none, "persisted": none, "duration": none},
            "start_delay": none,
        },
        "subtasks": [
            {
                "className": "completed" if known.completed else "pending",
                "index": number,
                "status": "completed" if known.completed else "pending_or_failed",
                "ack_timestamp": whole["latest_ack_timestamp"],
                "end_to_end_duration": known.duration_ms,
                "checkpointed_size": whole["checkpointed_size"] // vertex.parallelism,
                "state_size": whole["state_size"] // vertex.parallelism,
                "checkpoint": {"sync": 0, "async": 0},
                "alignment": {"buffered": 0, "processed": 0, "persisted": 0, "duration": 0},
                "start_delay": 0,
                "unaligned_checkpoint": False,
                "aborted": False,
            }
            for number in range(vertex.parallelism)
        ],
    }
