"""How the operators of a task are placed and connected, which follows from the job's graph alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from firesteel.graph.job_graph import Exchange, JobGraph
from firesteel.graph.specs import SourceSpec, TimestampsSpec
from firesteel.graph.stream_graph import StreamEdge
from firesteel.runtime.job_spec import JobSpec
from firesteel.runtime.operators import Placement

__all__ = ["Wiring"]


class Wiring:
    """One subtask of one stage."""

    def __init__(self, job: JobSpec, stage: int, subtask: int) -> None:
        self._job, self._stage, self._subtask = job, stage, subtask
        self.inputs = {exchange.id: exchange for exchange in job.graph.exchanges if exchange.to_stage == stage}
        """By number, the exchanges that feed the stage."""
        self.origins = _origins(job.graph)
        """For each operator the operators whose watermarks leave it (see :mod:`firesteel.runtime.watermarks`)."""

    def placements(self, to_driver: Callable[[str, int, Any], None]) -> Iterator[Placement]:
        """Of all operators that have this subtask, in the order of the graph."""
        job, graph = self._job, self._job.graph.graph
        for node_id in job.graph.stages[self._stage].nodes:
            node = graph.nodes[node_id]
            if self._subtask >= self._width(node_id):
                continue
            key_types = (edge.partitioning.key_type for edge in graph.inputs(node_id) if edge.partitioning.key_type)
            yield Placement(
                node=node,
                subtask=self._subtask,
                attempt=job.attempt,
                job_parameters=job.job_parameters,
                channels=tuple(self._channels(node_id)) if self._stage else (),
                origins=self._incoming(node_id),
                batch_mode=job.batch_mode,
                to_driver=to_driver,
                tables=job.tables,
                key_type=next(key_types, None),
                identity=job.identity_of(node),
                crash_points=job.crash_points,
                storage=job.storage,
                files=job.files,
            )

    def exchange_of(self, edge: StreamEdge) -> Exchange | None:
        """What an edge goes through on its way to another stage; None within a stage."""
        return next((e for e in self._job.graph.exchanges if e.edge is edge), None)

    def _width(self, node_id: int) -> int:
        graph = self._job.graph
        if node_id in graph.source_parallelism:
            return graph.source_parallelism[node_id]
        return graph.graph.nodes[node_id].parallelism

    def _incoming(self, node_id: int) -> frozenset[int]:
        edges = self._job.graph.graph.inputs(node_id)
        return frozenset().union(*(self.origins[edge.source] for edge in edges))

    def _channels(self, node_id: int) -> Iterator[tuple[int, int, int]]:
        for edge in self._job.graph.graph.inputs(node_id):
            exchange = self.exchange_of(edge)
            for origin in sorted(self.origins[edge.source]):
                if exchange is None:
                    yield (-1 - edge.source, 0, origin)
                else:
                    for upstream in range(exchange.senders):
                        yield (exchange.id, upstream, origin)


def _origins(job: JobGraph) -> dict[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    for node_id, node in job.graph.nodes.items():
        makes_own = isinstance(node.spec, SourceSpec | TimestampsSpec) or job.stage_of(node_id) > 0
        if makes_own:
            found[node_id] = frozenset((node_id,))
        else:
            edges = job.graph.inputs(node_id)
            found[node_id] = frozenset().union(*(found[edge.source] for edge in edges))
    return found
