"""The stream graph: the program's transformations with every open question answered.

Parallelism (operator over environment), maximum parallelism, operator ids, and the way each edge ships are settled
here, and what cannot run is refused.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.source import SplitEnumerator
from firesteel.errors import Location, ProgramError
from firesteel.graph.specs import OperatorSpec, SourceSpec, UnionSpec
from firesteel.graph.transformations import Chaining, Edge, Partitioning, Program, Ship, Transformation

__all__ = ["StreamEdge", "StreamGraph", "StreamNode", "build_stream_graph"]

MAX_PARALLELISM_LIMIT = 32768


@dataclass(frozen=True)
class StreamEdge:
    source: int
    target: int
    partitioning: Partitioning
    tag: str | None = None
    ordinal: int = 0
    """Which input of the target it feeds (see :class:`~firesteel.graph.transformations.Edge`)."""


@dataclass(frozen=True)
class StreamNode:
    """An operator, ready to be placed."""

    id: int
    uid: str
    name: str
    spec: OperatorSpec
    parallelism: int
    max_parallelism: int
    built_at: Location
    output_type: TypeInformation | None
    chaining: Chaining
    slot_sharing_group: str
    description: str


@dataclass(frozen=True)
class StreamGraph:
    """Operators in topological order and the edges between them."""

    nodes: dict[int, StreamNode]
    edges: tuple[StreamEdge, ...]

    def inputs(self, node_id: int) -> list[StreamEdge]:
        return [edge for edge in self.edges if edge.target == node_id]

    def outputs(self, node_id: int) -> list[StreamEdge]:
        return [edge for edge in self.edges if edge.source == node_id]

    @property
    def enumerators(self) -> dict[int, SplitEnumerator[Any]]:
        """What plans the batches of each source, by its node. Tasks have none."""
        specs = ((node.id, node.spec) for node in self.nodes.values())
        return {n: spec.enumerator for n, spec in specs if isinstance(spec, SourceSpec) and spec.enumerator is not None}

    @property
    def bounded(self) -> bool:
        return all(enumerator.bounded for enumerator in self.enumerators.values())


def default_max_parallelism(parallelism: int) -> int:
    """Flink's rule: one and a half times the parallelism, rounded up to a power of two, at least 128.

    >>> default_max_parallelism(2), default_max_parallelism(100)
    (128, 256)
    """
    wanted = parallelism + parallelism // 2
    return min(max(128, 1 << max(0, wanted - 1).bit_length()), MAX_PARALLELISM_LIMIT)


def build_stream_graph(
    program: Program,
    parallelism: int,
    max_parallelism: int | None = None,
    chaining: bool = True,
    to_look_at: bool = False,
) -> StreamGraph:
    """Resolves a program, following every sink back to its sources.

    A program ``to_look_at`` need not be complete: where it has no sinks yet, all of it is taken.
    """
    every = {node.id: node for node in program.nodes()}
    sinks = [node for node in every.values() if node.spec.is_sink]
    if to_look_at and not sinks:
        sinks = list(every.values())
    if not sinks:
        raise ProgramError(
            "The program has no sinks, so nothing would run. End a stream with print(), add_sink(), sink_to() or "
            "execute_and_collect()."
        )
    reachable = _reachable(every, sinks)
    _resolve_unions(reachable)
    order = sorted(reachable.values(), key=lambda node: node.id)
    resolved: dict[int, StreamNode] = {}
    edges: list[StreamEdge] = []
    uids: dict[str, Transformation] = {}
    for node in order:
        own = node.parallelism or (_unasked_parallelism(node, resolved, parallelism) if node.parallel else 1)
        if not node.parallel and own != 1:
            raise ProgramError(f"{node.name!r} (built at {node.built_at}) cannot have parallelism {own}, only 1.")
        limit = node.max_parallelism or max_parallelism or default_max_parallelism(own)
        if own > limit:
            raise ProgramError(
                f"{node.name!r} (built at {node.built_at}) has parallelism {own}, more than its maximum "
                f"parallelism of {limit}. Raise it with set_max_parallelism()."
            )
        uid = node.uid or _generated_uid(node, resolved)
        if uid in uids:
            raise ProgramError(
                f"Two operators have the uid {uid!r}: {uids[uid].name!r} at {uids[uid].built_at} and {node.name!r} "
                f"at {node.built_at}. Give each its own."
            )
        uids[uid] = node
        resolved[node.id] = StreamNode(
            id=node.id,
            uid=uid,
            name=node.name,
            spec=node.spec,
            parallelism=own,
            max_parallelism=limit,
            built_at=node.built_at,
            output_type=node.output_type,
            chaining=node.chaining if chaining else Chaining.NEVER,
            slot_sharing_group=node.slot_sharing_group or "default",
            description=node.description or node.name,
        )
        edges.extend(_edge(edge, node, resolved) for edge in node.inputs)
    return StreamGraph(resolved, tuple(edges))


def _unasked_parallelism(node: Transformation, resolved: dict[int, StreamNode], default: int) -> int:
    """That of the program. Where rows of a table go straight on, that of the operator before: another one would deal
    them out, and a row could be taken back before it has come."""
    sources = [resolved[edge.source] for edge in node.inputs]
    straight = all(edge.partitioning == Partitioning() for edge in node.inputs)
    types = [node.output_type, *(source.output_type for source in sources)]
    if not sources or not straight or not any(one is not None and one.columnar for one in types):
        return default
    return max(source.parallelism for source in sources)


def _reachable(every: dict[int, Transformation], sinks: list[Transformation]) -> dict[int, Transformation]:
    found: dict[int, Transformation] = {}
    waiting = list(sinks)
    while waiting:
        node = waiting.pop()
        if node.id not in found:
            found[node.id] = node
            waiting.extend(every[edge.source] for edge in node.inputs)
    return found


def _resolve_unions(nodes: dict[int, Transformation]) -> None:
    """A union is no operator: whoever reads it reads each of its inputs, shipped as the reader asks."""
    for node_id in sorted(nodes):
        node = nodes[node_id]
        inputs: list[Edge] = []
        for edge in node.inputs:
            upstream = nodes[edge.source]
            if isinstance(upstream.spec, UnionSpec):
                inputs.extend(_through(edge, inner) for inner in upstream.inputs)
            else:
                inputs.append(edge)
        nodes[node_id] = replace(node, inputs=tuple(inputs))
    for node_id in [n for n in nodes if isinstance(nodes[n].spec, UnionSpec)]:
        del nodes[node_id]


def _through(outer: Edge, inner: Edge) -> Edge:
    asked = outer.partitioning if outer.partitioning.explicit else inner.partitioning
    return Edge(inner.source, asked, inner.tag, outer.ordinal)


def _edge(edge: Edge, node: Transformation, resolved: dict[int, StreamNode]) -> StreamEdge:
    source, target = resolved[edge.source], resolved[node.id]
    partitioning = edge.partitioning
    if partitioning.ship is Ship.FORWARD and source.parallelism != target.parallelism:
        if partitioning.explicit:
            raise ProgramError(
                f"forward() from {source.name!r} (parallelism {source.parallelism}) to {target.name!r} (parallelism "
                f"{target.parallelism}, built at {target.built_at}) needs the same parallelism on both sides. "
                "Use rebalance() or rescale()."
            )
        partitioning = replace(partitioning, ship=Ship.REBALANCE)
    return StreamEdge(edge.source, node.id, partitioning, edge.tag, edge.ordinal)


def _generated_uid(node: Transformation, resolved: dict[int, StreamNode]) -> str:
    """An id from the operator's place in the program, the same for every build of an unchanged program."""
    place = [node.spec.kind, str(len(resolved))]
    place += [_origin(edge, resolved[edge.source]) for edge in node.inputs]
    return hashlib.blake2b("|".join(place).encode(), digest_size=16).hexdigest()


def _origin(edge: Edge, source: StreamNode) -> str:
    """One input as part of a generated id. A first input is not numbered: ids from before there were two stay."""
    text = f"{source.uid}:{edge.partitioning.ship.name}:{edge.tag}"
    return f"{text}:{edge.ordinal}" if edge.ordinal else text
