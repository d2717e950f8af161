"""What the driver has counted of a job's operators and tasks, as answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from firesteel.engine.facade.answers import MetricLabels, OperatorMetrics, PerSecond, SubtaskMetrics, TaskMetrics
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.specs import SourceSpec
from firesteel.graph.stream_graph import StreamNode

if TYPE_CHECKING:
    from firesteel.engine.inbox import Progress

__all__ = ["operator_metrics", "task_metrics"]


def operator_metrics(graph: JobGraph, progress: Progress, names: Mapping[int, str]) -> tuple[OperatorMetrics, ...]:
    """``names``: what sizes of state are known by."""
    # Copies: the job's thread goes on counting.
    measured, sizes, pending = dict(progress.subtasks), dict(progress.state_sizes), dict(progress.pending)
    rates = progress.rates.of(progress.counts())
    chains = {node_id: vertex.nodes[0] for vertex in graph.vertices for node_id in vertex.nodes}
    subtasks: dict[int, list[SubtaskMetrics]] = {node_id: [] for node_id in graph.graph.nodes}
    for (node_id, subtask), one in sorted(measured.items(), key=lambda entry: entry[0]):
        subtasks[node_id].append(
            SubtaskMetrics(
                subtask,
                one.records_out,
                one.watermark,
                dict(one.values),
                one.records_in,
                one.bytes_in,
                one.bytes_out,
                one.frames_in,
                one.frames_out,
                round(one.busy * 1000, 3),
                one.state_size,
                one.state_entries,
                PerSecond(*(round(rate, 3) for rate in rates.get((node_id, subtask), ()))),
                {identifier: MetricLabels(*found) for identifier, found in one.labels.items()},
            )
        )
    return tuple(
        OperatorMetrics(
            node.id,
            node.uid,
            node.name,
            graph.stage_of(node.id),
            node.parallelism,
            sizes.get(names[node.id]),
            tuple(subtasks[node.id]),
            _kind(node),
            chains[node.id],
            pending.get(node.id),
        )
        for node in graph.graph.nodes.values()
    )


def _kind(node: StreamNode) -> str:
    return "source" if isinstance(node.spec, SourceSpec) else "sink" if node.spec.is_sink else "operator"


def task_metrics(progress: Progress) -> tuple[TaskMetrics, ...]:
    return tuple(
        TaskMetrics(*place, one.records_in, one.bytes_out, round(one.busy * 1000, 3))
        for place, one in sorted(dict(progress.tasks).items())
    )
