"""The job graph: operators chained into vertices, and vertices placed on a line of stages.

Flink runs every vertex as tasks of its own. Here operators of the same depth share one physical *stage*: task *i* of
a stage runs subtask *i* of each of its operators, and calls from one to the next directly. Where an edge repartitions
(or skips a stage) records travel in frames. So any DAG becomes a line of stages, which is one Spark query.
"""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.errors import ProgramError
from firesteel.graph.specs import SourceSpec
from firesteel.graph.stream_graph import StreamEdge, StreamGraph, StreamNode
from firesteel.graph.transformations import Chaining, Ship

__all__ = ["Exchange", "JobGraph", "JobVertex", "Stage", "build_job_graph"]


@dataclass(frozen=True)
class Exchange:
    """An edge that crosses stages."""

    id: int
    edge: StreamEdge
    from_stage: int
    to_stage: int
    senders: int
    receivers: int


@dataclass(frozen=True)
class Stage:
    """Operators of one depth, in topological order."""

    index: int
    nodes: tuple[int, ...]
    parallelism: int


@dataclass(frozen=True)
class JobVertex:
    """A chain of operators, the unit that plans and metrics show."""

    nodes: tuple[int, ...]
    name: str
    parallelism: int


@dataclass(frozen=True)
class JobGraph:
    """All that a worker must know of a job's shape."""

    graph: StreamGraph
    stages: tuple[Stage, ...]
    exchanges: tuple[Exchange, ...]
    vertices: tuple[JobVertex, ...]
    source_parallelism: dict[int, int]
    """Tasks that read a source. A source of one subtask that feeds more reads in as many blocks at once."""

    @property
    def parallelism(self) -> int:
        """The widest stage: the number of Spark partitions of every stage."""
        return max(stage.parallelism for stage in self.stages)

    def stage_of(self, node_id: int) -> int:
        return next(stage.index for stage in self.stages if node_id in stage.nodes)


def build_job_graph(graph: StreamGraph) -> JobGraph:
    width = {node.id: node.parallelism for node in graph.nodes.values()}
    sources = _widen_sources(graph, width)
    depth: dict[int, int] = {}
    for node_id in graph.nodes:
        inputs = graph.inputs(node_id)
        # What must be kept between batches has its place from stage 1 on.
        least = int(graph.nodes[node_id].spec.needs_store)
        depth[node_id] = max([least, *(depth[e.source] + (not _direct(graph, e, width)) for e in inputs)])
    exchanges: list[Exchange] = []
    # A subtask takes its frames in the order of their exchanges.
    in_turn = sorted(graph.edges, key=lambda edge: not graph.nodes[edge.target].spec.comes_first(edge.ordinal))
    for edge in in_turn:
        here, there = depth[edge.source], depth[edge.target]
        if here == there and _direct(graph, edge, width):
            continue
        exchanges.append(
            Exchange(
                id=len(exchanges),
                edge=edge,
                from_stage=here,
                to_stage=there,
                senders=width[edge.source],
                receivers=width[edge.target],
            )
        )
    stages = []
    for index in range(max(depth.values()) + 1):
        nodes = tuple(node_id for node_id in graph.nodes if depth[node_id] == index)
        stages.append(Stage(index, nodes, max(width[node_id] for node_id in nodes)))
    if len(stages) > 0xFE or len(exchanges) > 0xFFFF:
        raise ProgramError(f"The program has {len(stages)} stages in a row; at most 254 are possible.")
    return JobGraph(graph, tuple(stages), tuple(exchanges), _vertices(graph), sources)


def _widen_sources(graph: StreamGraph, width: dict[int, int]) -> dict[int, int]:
    """Lets a source of one subtask read in as many blocks as its readers have subtasks.

    Flink would rebalance record by record. Reading block by block keeps the order of the input and saves a shuffle.
    """
    found = {}
    for node in graph.nodes.values():
        if not isinstance(node.spec, SourceSpec):
            continue
        found[node.id] = node.parallelism
        if node.parallelism != 1 or not _splittable(node.spec) or node.spec.strategy is not None:
            # One generator of watermarks was asked for, not one per block.
            continue
        chain = _implicit_readers(graph, node)
        if chain is not None:
            found[node.id] = width[node.id] = chain
    return found


def _splittable(spec: SourceSpec) -> bool:
    return spec.enumerator is not None and spec.enumerator.splittable


def _implicit_readers(graph: StreamGraph, node: StreamNode) -> int | None:
    outputs = graph.outputs(node.id)
    implicit = all(e.partitioning.ship is Ship.REBALANCE and not e.partitioning.explicit for e in outputs)
    widths = {graph.nodes[e.target].parallelism for e in outputs}
    return widths.pop() if implicit and len(widths) == 1 else None


def _direct(graph: StreamGraph, edge: StreamEdge, width: dict[int, int]) -> bool:
    """Whether both ends may run in one task: record by record to the subtask of the same number."""
    if width[edge.source] != width[edge.target]:
        return False
    if edge.partitioning.ship is Ship.FORWARD:
        return True
    widened = width[edge.source] != graph.nodes[edge.source].parallelism
    return widened and edge.partitioning.ship is Ship.REBALANCE and not edge.partitioning.explicit


def _chainable(graph: StreamGraph, edge: StreamEdge) -> bool:
    """Flink's rule for chaining, which the plan shows."""
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    return (
        edge.partitioning.ship is Ship.FORWARD
        and edge.tag is None
        and source.parallelism == target.parallelism
        and len(graph.inputs(target.id)) == 1
        and target.chaining is Chaining.ALWAYS
        and source.chaining is not Chaining.NEVER
        and source.slot_sharing_group == target.slot_sharing_group
    )


def _vertices(graph: StreamGraph) -> tuple[JobVertex, ...]:
    chains: dict[int, list[int]] = {}
    head: dict[int, int] = {}
    for node_id in graph.nodes:
        chained = [e for e in graph.inputs(node_id) if _chainable(graph, e)]
        head[node_id] = head[chained[0].source] if chained else node_id
        chains.setdefault(head[node_id], []).append(node_id)
    return tuple(
        JobVertex(
            nodes=tuple(nodes),
            name=" -> ".join(graph.nodes[n].name for n in nodes),
            parallelism=graph.nodes[nodes[0]].parallelism,
        )
        for nodes in chains.values()
    )
