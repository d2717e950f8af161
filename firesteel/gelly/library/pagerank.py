"""PageRank and HITS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from firesteel.errors import ProgramError
from firesteel.gelly.blocks import Array, Block
from firesteel.gelly.library.base import GraphAlgorithm, in_blocks, positive
from firesteel.gelly.supersteps import BlockProgram, Outcome

if TYPE_CHECKING:
    import pyarrow as pa

    from firesteel.gelly.graph import Graph

__all__ = ["HITS", "PageRank"]

_UNLIMITED = 1_000_000


class PageRank(GraphAlgorithm):
    """(id, score): how likely a random surfer is at a vertex; all scores add up to 1.

    The surfer follows an edge with probability ``damping_factor`` and goes to any vertex otherwise, also from a vertex
    without edges. It ends after ``iterations``, or when all scores together change by no more than
    ``convergence_threshold``.
    """

    def __init__(
        self, damping_factor: float = 0.85, iterations: int | None = None, convergence_threshold: float | None = None
    ) -> None:
        if not 0 < damping_factor < 1:
            raise ProgramError(f"PageRank's damping factor should be between 0 and 1, got {damping_factor}.")
        self.damping_factor = damping_factor
        self.iterations, self.threshold = _limits(iterations, convergence_threshold, "PageRank")

    def run(self, graph: Graph) -> DataFrame:
        def program(vertices: int) -> BlockProgram:
            return _PageRankProgram(self.damping_factor, self.iterations, self.threshold, vertices)

        return in_blocks(self, graph, program, self.iterations + 1, [("score", T.DoubleType())])


class HITS(GraphAlgorithm):
    """(id, hub, authority): a good hub links to good authorities, which good hubs link to.

    The squares of hub scores add up to 1, and those of authority scores, too.
    """

    def __init__(self, iterations: int | None = None, convergence_threshold: float | None = None) -> None:
        self.iterations, self.threshold = _limits(iterations, convergence_threshold, "HITS")

    def run(self, graph: Graph) -> DataFrame:
        columns = [("hub", T.DoubleType()), ("authority", T.DoubleType())]
        program = _HITSProgram(self.threshold)
        return in_blocks(self, graph, program, 2 * self.iterations + 1, columns)


def _limits(iterations: int | None, threshold: float | None, name: str) -> tuple[int, float]:
    if iterations is None and threshold is None:
        raise ProgramError(f"{name} needs a number of iterations or a convergence threshold.")
    if threshold is not None and threshold < 0:
        raise ProgramError(f"{name}'s convergence threshold should not be negative, got {threshold}.")
    limit = _UNLIMITED if iterations is None else positive(iterations, f"{name}'s iterations")
    return limit, -1.0 if threshold is None else threshold


class _PageRankProgram(BlockProgram):
    """State: the score of each vertex. Messages: the sum of what a vertex gets from each block."""

    def __init__(self, damping: float, iterations: int, threshold: float, vertices: int) -> None:
        self.damping, self.iterations, self.threshold, self.vertices = damping, iterations, threshold, vertices

    def start(self, block: Block) -> Array:
        return np.full(block.size, 1.0 / self.vertices)

    def step(self, block: Block, state: Array, inbox: dict[int, Any], superstep: int, shared: Any) -> Outcome:
        change = 0.0
        if superstep > 1:
            # What vertices without edges have is spread over all.
            spread = (1 - self.damping + self.damping * shared) / self.vertices
            scores = spread + self.damping * block.received_sum(inbox)
            change = float(np.abs(scores - state).sum())
            state = scores
        edges = block.adjacency
        degree = np.bincount(edges.source, minlength=block.size)
        dangling = float(state[degree == 0].sum())
        share = state / np.maximum(degree, 1)
        outbox = block.push_sum(share[edges.source]) if superstep <= self.iterations else {}
        return Outcome(state, outbox, (dangling, change))

    def merge(self, stats: list[Any], superstep: int) -> tuple[Any, bool]:
        dangling, change = (sum(column) for column in zip(*stats, strict=True)) if stats else (0.0, 0.0)
        return dangling, superstep == 1 or change > self.threshold

    def results(self, block: Block, state: Array) -> list[pa.Array]:
        import pyarrow as pa

        return [pa.array(state)]


class _HITSProgram(BlockProgram):
    """State: hub and authority scores. In odd supersteps hubs are sent along edges, in even ones authorities back.

    Scores are divided by their length one superstep after they were added up, when all blocks know it.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def start(self, block: Block) -> tuple[Array, Array, Array]:
        return np.ones(block.size), np.zeros(block.size), np.zeros(block.size)

    def step(self, block: Block, state: Any, inbox: dict[int, Any], superstep: int, shared: Any) -> Outcome:
        hub, authority, before = state
        if superstep % 2 == 0:
            authority = block.received_sum(inbox)
            outbox = block.pull(authority)
            stats = (float((authority**2).sum()), 0.0)
        else:
            if superstep > 1:
                length = shared or 1.0
                authority = authority / length
                edges = block.adjacency
                hub = np.bincount(edges.source, weights=block.pulled(inbox), minlength=block.size) / length
            outbox = block.push_sum(hub[block.adjacency.source])
            change = float(np.abs(authority - before).sum())
            stats = (float((hub**2).sum()), change)
            before = authority
        return Outcome((hub, authority, before), outbox, stats)

    def merge(self, stats: list[Any], superstep: int) -> tuple[Any, bool]:
        squares, change = (sum(column) for column in zip(*stats, strict=True)) if stats else (0.0, 0.0)
        self.hub_length = squares**0.5 or 1.0
        if superstep % 2 == 0:
            return squares**0.5, True
        return None, superstep == 1 or change > self.threshold

    def results(self, block: Block, state: Any) -> list[pa.Array]:
        import pyarrow as pa

        hub, authority, _ = state
        return [pa.array(hub / self.hub_length), pa.array(authority)]
