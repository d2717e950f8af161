"""The execution plan as JSON, in the form that Flink's plan visualizer reads."""

from __future__ import annotations

import json
from typing import Any

from firesteel.graph.job_graph import JobGraph
from firesteel.graph.specs import SourceSpec
from firesteel.graph.stream_graph import StreamEdge

__all__ = ["plan_json"]


def plan_json(job: JobGraph) -> str:
    """All operators with what feeds them, and (beyond Flink's plan) the stages they are placed on."""
    graph = job.graph
    stage_of = {node_id: stage.index for stage in job.stages for node_id in stage.nodes}
    nodes = []
    for node in graph.nodes.values():
        spec = node.spec
        kind = "Data Source" if isinstance(spec, SourceSpec) else "Data Sink" if spec.is_sink else "Operator"
        entry = {
            "id": node.id,
            "type": node.name,
            "pact": kind,
            "contents": node.description,
            "parallelism": node.parallelism,
            "uid": node.uid,
            "stage": stage_of[node.id],
        }
        inputs = graph.inputs(node.id)
        if inputs:
            entry["predecessors"] = [_predecessor(edge, any(e.ordinal for e in inputs)) for edge in inputs]
        nodes.append(entry)
    chains = [{"name": v.name, "nodes": list(v.nodes), "parallelism": v.parallelism} for v in job.vertices]
    return json.dumps({"nodes": nodes, "chains": chains, "stages": len(job.stages)}, indent=2)


def _predecessor(edge: StreamEdge, two_inputs: bool) -> dict[str, Any]:
    # Flink's plan calls every side "second"; which of two inputs an edge feeds is said beside it.
    entry = {"id": edge.source, "ship_strategy": edge.partitioning.ship.name, "side": "second"}
    return {**entry, "input": edge.ordinal + 1} if two_inputs else entry
