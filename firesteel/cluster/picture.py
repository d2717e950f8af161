"""What a job answers, as the diagnosis wants it."""

from __future__ import annotations

from typing import Any

from firesteel.cluster.diagnosis import Batch, Failure, Operator, Picture, Subtask
from firesteel.engine.facade import CheckpointStatistics, JobDetails, JobExceptions, JobMetrics, JobPlan

__all__ = ["picture_of"]


def picture_of(
    details: JobDetails,
    metrics: JobMetrics | None,
    checkpoints: CheckpointStatistics | None,
    exceptions: JobExceptions | None,
    plan: JobPlan | None,
    now: int,
) -> Picture:
    """What is known of a job. None stands for what it did not answer."""
    return Picture(
        status=details.status.name,
        now=now,
        started=details.started,
        attempt=details.attempt,
        operators=() if metrics is None else _operators(metrics, _nodes(plan)),
        batches=() if checkpoints is None else _batches(checkpoints),
        failures=() if exceptions is None else _failures(exceptions),
        watermark=details.watermark,
    )


def _nodes(plan: JobPlan | None) -> dict[int, dict[str, Any]]:
    return {} if plan is None else {node["id"]: node for node in plan.plan["nodes"]}


def _operators(metrics: JobMetrics, nodes: dict[int, dict[str, Any]]) -> tuple[Operator, ...]:
    came = {(task.stage, task.subtask): task.records_in for task in metrics.tasks}
    found = []
    for one in metrics.operators:
        node = nodes.get(one.id, {})
        keyed = any(each.get("ship_strategy") == "HASH" for each in node.get("predecessors", ()))
        # What came into a task came into its first operators: those that other stages send to.
        subtasks = tuple(
            Subtask(each.subtask, came.get((one.stage, each.subtask), 0) if keyed else each.records_out, each.watermark)
            for each in one.subtasks
        )
        source = node.get("pact") == "Data Source"
        found.append(Operator(one.name, subtasks, is_source=source, keyed=keyed, stage=one.stage))
    return tuple(found)


def _batches(checkpoints: CheckpointStatistics) -> tuple[Batch, ...]:
    return tuple(
        Batch(one.checkpoint_id, one.trigger_timestamp, one.duration_ms, one.records)
        for one in checkpoints.history
        if one.completed
    )


def _failures(exceptions: JobExceptions) -> tuple[Failure, ...]:
    return tuple(Failure(one.timestamp, one.message, one.operator, one.raised_at) for one in exceptions.failures)
