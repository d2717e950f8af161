"""What is known of a job, as the diagnosis wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.cluster.diagnosis import Batch, Failure, Operator, Picture, Subtask
from firesteel.cluster.job_rows import cause_of
from firesteel.engine.facade import (
    CheckpointStatistics,
    JobBatches,
    JobDetails,
    JobExceptions,
    JobFailure,
    JobMetrics,
    JobPlan,
    SubtaskMetrics,
)

__all__ = ["picture_of"]


def picture_of(
    details: JobDetails,
    metrics: JobMetrics,
    checkpoints: CheckpointStatistics,
    exceptions: JobExceptions,
    plan: JobPlan,
    batches: JobBatches,
    now: int,
) -> Picture:
    return Picture(
        status=details.status.name,
        now=now,
        started=details.started,
        operators=_operators(metrics, {node["id"]: node for node in plan.plan.get("nodes", ())}),
        batches=_batches(batches, checkpoints),
        current=_current(checkpoints),
        failures=tuple(_failure(one) for one in exceptions.failures),
        watermark=details.watermark,
    )


def _batches(batches: JobBatches, checkpoints: CheckpointStatistics) -> tuple[Batch, ...]:
    """With their parts where they are known; else they are what the checkpoints say."""
    known = [one for one in batches.batches if one.completed][-100:]
    if not known:
        history = [one for one in checkpoints.history if one.completed]
        return tuple(Batch(one.checkpoint_id, one.trigger_timestamp, one.duration_ms, one.records) for one in history)
    return tuple(
        Batch(
            one.number,
            one.started,
            int(one.duration_ms),
            one.records,
            tuple((name, int(spent)) for name, spent in one.parts.items()),
        )
        for one in known
    )


def _operators(metrics: JobMetrics, nodes: Mapping[int, Mapping[str, Any]]) -> tuple[Operator, ...]:
    found = []
    all_work = sum(each.per_second.busy_ms for one in metrics.operators for each in one.subtasks)
    for one in metrics.operators:
        before = nodes.get(one.id, {}).get("predecessors", ())
        busy = [each.per_second.busy_ms / 1000 for each in one.subtasks]
        found.append(
            Operator(
                one.name,
                tuple(_subtask(each) for each in one.subtasks),
                is_source=one.kind == "source",
                keyed=any(each.get("ship_strategy") == "HASH" for each in before),
                busy=max(busy, default=None),
                share=sum(busy) * 1000 / all_work if all_work else None,
                backlog=one.pending,
                stage=one.stage,
            )
        )
    return tuple(found)


def _subtask(one: SubtaskMetrics) -> Subtask:
    return Subtask(one.subtask, one.records_in or one.records_out, one.watermark)


def _current(checkpoints: CheckpointStatistics) -> tuple[int, int] | None:
    under_way = checkpoints.under_way
    return None if under_way is None else (under_way.checkpoint_id, under_way.trigger_timestamp)


def _failure(one: JobFailure) -> Failure:
    # File and line of "/home/me/orders.py:12 in parse: return json.loads(line)".
    place = None if one.raised_at is None else one.raised_at.partition(" in ")[0].rpartition("/")[2]
    return Failure(one.timestamp, cause_of(one), one.operator, place)
