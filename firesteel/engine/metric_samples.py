"""A job's answers as metrics with Flink's names and scopes, for reporters.

What Flink has no name for is in the group ``firesteel``, of the job or of an operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from firesteel.common.operator_ids import operator_id
from firesteel.engine.facade.answers import (
    BatchSummary,
    CheckpointStatistics,
    JobDetails,
    JobMetrics,
    MetricLabels,
    OperatorMetrics,
    PerSecond,
    SubtaskMetrics,
)
from firesteel.metrics.samples import COUNTER, GAUGE, HISTOGRAM, METER, Sample
from firesteel.metrics.scopes import ScopeFormats
from firesteel.runtime.watermarks import MIN_TIMESTAMP

__all__ = ["JOB", "OPERATOR", "TASK", "job_samples"]

JOB, TASK, OPERATOR = "jobmanager.job", "taskmanager.job.task", "taskmanager.job.task.operator"

Number = int | float


def job_samples(
    details: JobDetails,
    metrics: JobMetrics,
    checkpoints: CheckpointStatistics,
    batch: BatchSummary | None,
    host: str,
    formats: ScopeFormats | None = None,
) -> list[Sample]:
    """All metrics of a job at one moment. ``batch`` is the last one."""
    formats = formats or ScopeFormats()
    job = {"host": host, "job_id": details.id, "job_name": details.name}
    place = _Place(JOB, job, formats)
    found = [*place.samples(_of_job(details, metrics, checkpoints, batch))]
    task_manager = {**job, "tm_id": f"{host}:{details.pid}"}
    chains: dict[int, list[OperatorMetrics]] = {}
    for operator in metrics.operators:
        chains.setdefault(operator.chain, []).append(operator)
    for chain in chains.values():
        found += _of_chain(chain, task_manager, details, formats)
    return found


class _Place:
    """A scope and what it is of."""

    def __init__(self, scope: str, variables: Mapping[str, str], formats: ScopeFormats) -> None:
        self._scope = scope
        self._variables = variables
        self._prefix = formats.prefix(scope, variables)

    def samples(self, found: Iterator[tuple[str, Number, str]]) -> Iterator[Sample]:
        for name, value, kind in found:
            yield Sample(self._scope, name, value, kind, self._variables, self._prefix)

    def users(self, identifier: str, value: Any, labels: MetricLabels | None) -> Sample | None:
        """A metric of the user's; none if it is no number."""
        name = identifier if labels is None else labels.name
        variables = self._variables if labels is None else {**self._variables, **labels.variables}
        full = "" if labels is None else identifier
        if isinstance(value, Mapping):
            kind, main = (METER, "rate") if "rate" in value else (HISTOGRAM, "mean")
            number = value.get(main, 0)
            return Sample(self._scope, name, number, kind, variables, self._prefix, dict(value), full)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return Sample(self._scope, name, value, GAUGE, variables, self._prefix, full_name=full)


def _of_job(
    details: JobDetails, metrics: JobMetrics, checkpoints: CheckpointStatistics, batch: BatchSummary | None
) -> Iterator[tuple[str, Number, str]]:
    running = details.status.name == "RUNNING"
    yield "uptime", metrics.uptime_ms, GAUGE
    yield "runningTime", metrics.uptime_ms if running else 0, GAUGE
    yield "downtime", metrics.downtime_ms, GAUGE
    yield "restartingTime", metrics.downtime_ms, GAUGE
    yield "numRestarts", metrics.restarts, GAUGE
    under_way = 1 if running and batch is not None else 0
    yield "numberOfCompletedCheckpoints", checkpoints.completed, GAUGE
    yield "numberOfFailedCheckpoints", checkpoints.failed, GAUGE
    yield "numberOfInProgressCheckpoints", under_way, GAUGE
    yield "totalNumberOfCheckpoints", checkpoints.completed + checkpoints.failed + under_way, GAUGE
    last = checkpoints.latest_completed
    # As in Flink, -1 says that there is none.
    yield "lastCheckpointDuration", -1 if last is None else last.duration_ms, GAUGE
    yield "lastCheckpointSize", -1 if last is None else last.checkpointed_size or 0, GAUGE
    yield "lastCheckpointFullSize", -1 if last is None else last.state_size or last.checkpointed_size or 0, GAUGE
    yield "lastCompletedCheckpointId", -1 if last is None else last.checkpoint_id, GAUGE
    ended = -1 if last is None else last.trigger_timestamp + last.duration_ms
    yield "lastCheckpointCompletedTimestamp", ended, GAUGE
    yield "firesteel.records", details.records, COUNTER
    yield "firesteel.batches", details.batches, COUNTER
    if metrics.pending is not None:
        yield "firesteel.pendingRecords", metrics.pending, GAUGE
    if batch is not None:
        yield "firesteel.lastBatchDuration", batch.duration_ms, GAUGE
        yield "firesteel.lastBatchRecords", batch.records, GAUGE
        for part, spent in batch.parts.items():
            yield f"firesteel.lastBatch.{part}", spent, GAUGE


def _of_chain(
    chain: list[OperatorMetrics], task_manager: Mapping[str, str], details: JobDetails, formats: ScopeFormats
) -> Iterator[Sample]:
    head = chain[0]
    task_id = operator_id(head.uid)
    task_name = " -> ".join(operator.name for operator in chain)
    for first in head.subtasks:
        task = {
            **task_manager,
            "task_id": task_id,
            "task_name": task_name,
            "subtask_index": str(first.subtask),
            "task_attempt_num": str(details.attempt),
            "task_attempt_id": f"{details.id}_{task_id}_{first.subtask}_{details.attempt}",
        }
        members = [(one, subtask) for one in chain for subtask in one.subtasks if subtask.subtask == first.subtask]
        yield from _Place(TASK, task, formats).samples(_of_task(head, [subtask for _, subtask in members]))
        for operator, subtask in members:
            variables = {**task, "operator_id": operator_id(operator.uid), "operator_name": operator.name}
            place = _Place(OPERATOR, variables, formats)
            yield from place.samples(_of_operator(operator, subtask))
            for identifier, value in subtask.values.items():
                sample = place.users(identifier, value, subtask.labels.get(identifier))
                if sample is not None:
                    yield sample


def _of_task(head: OperatorMetrics, members: list[SubtaskMetrics]) -> Iterator[tuple[str, Number, str]]:
    first, last = members[0], members[-1]
    bytes_in, bytes_out = sum(one.bytes_in for one in members), sum(one.bytes_out for one in members)
    per_second = [one.per_second for one in members]
    yield from _flow(first.records_in, last.records_out, bytes_in, bytes_out, per_second[0], per_second[-1], per_second)
    yield "numBuffersOut", sum(one.frames_out for one in members), COUNTER
    yield "numBuffersOutPerSecond", sum(one.frames_out for one in per_second), METER
    busy = min(1000.0, sum(one.busy_ms for one in per_second))
    yield "busyTimeMsPerSecond", busy, GAUGE
    yield "idleTimeMsPerSecond", 1000.0 - busy, GAUGE
    # Tasks never wait for those behind them: a batch's frames go through Spark.
    yield "backPressuredTimeMsPerSecond", 0, GAUGE
    yield "isBackPressured", 0, GAUGE
    yield "accumulateBusyTimeMs", sum(one.busy_ms for one in members), GAUGE
    if head.kind != "source":
        yield "currentInputWatermark", _mark(first), GAUGE


def _of_operator(operator: OperatorMetrics, one: SubtaskMetrics) -> Iterator[tuple[str, Number, str]]:
    rates = one.per_second
    yield from _flow(one.records_in, one.records_out, one.bytes_in, one.bytes_out, rates, rates, [rates])
    if operator.kind != "source":
        yield "currentInputWatermark", _mark(one), GAUGE
    yield "currentOutputWatermark", _mark(one), GAUGE
    if operator.pending is not None and one.subtask == 0:
        yield "pendingRecords", operator.pending, GAUGE
    yield "firesteel.busyTimeMsPerSecond", rates.busy_ms, GAUGE
    yield "firesteel.accumulateBusyTimeMs", one.busy_ms, GAUGE
    if operator.state_size is not None:
        yield "firesteel.stateSize", one.state_size, GAUGE
        yield "firesteel.stateEntries", one.state_entries, GAUGE


def _flow(
    records_in: int,
    records_out: int,
    bytes_in: int,
    bytes_out: int,
    first: PerSecond,
    last: PerSecond,
    all_: list[PerSecond],
) -> Iterator[tuple[str, Number, str]]:
    yield "numRecordsIn", records_in, COUNTER
    yield "numRecordsInPerSecond", first.records_in, METER
    yield "numRecordsOut", records_out, COUNTER
    yield "numRecordsOutPerSecond", last.records_out, METER
    yield "numBytesIn", bytes_in, COUNTER
    yield "numBytesInPerSecond", sum(one.bytes_in for one in all_), METER
    yield "numBytesOut", bytes_out, COUNTER
    yield "numBytesOutPerSecond", sum(one.bytes_out for one in all_), METER


def _mark(one: SubtaskMetrics) -> int:
    return MIN_TIMESTAMP if one.watermark is None else one.watermark
