"""Shortest paths from one vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from firesteel.errors import ProgramError, short_repr
from firesteel.gelly.blocks import Block
from firesteel.gelly.failures import user_errors
from firesteel.gelly.library.base import GraphAlgorithm, in_blocks, number_type, positive
from firesteel.gelly.supersteps import BlockProgram, Outcome

if TYPE_CHECKING:
    import pyarrow as pa

    from firesteel.gelly.graph import Graph

__all__ = ["SingleSourceShortestPaths"]


class SingleSourceShortestPaths(GraphAlgorithm):
    """(id, value): how far each vertex is from one, along edges whose values are lengths (1 for edges without values).

    Vertices that cannot be reached, or not with ``max_iterations`` edges, are infinitely far.
    """

    def __init__(self, src_vertex_id: Any, max_iterations: int) -> None:
        self.source = src_vertex_id
        self.max_iterations = positive(max_iterations, "SingleSourceShortestPaths' iterations")

    def run(self, graph: Graph) -> DataFrame:
        edges = graph.get_edges()
        if isinstance(edges.schema["value"].dataType, T.NullType):
            edges = edges.withColumn("value", F.lit(1.0))
        number_type(edges, "Values of edges for SingleSourceShortestPaths")
        with user_errors():
            if graph.get_vertices().where(F.col("id") == F.lit(self.source)).isEmpty():
                raise ProgramError(
                    f"SingleSourceShortestPaths begins at {short_repr(self.source)}, but there is no such vertex."
                )
        # Blocks compare ids as Spark has them.
        begin = F.when(F.col("id") == F.lit(self.source), 0.0).otherwise(float("inf"))
        vertices = graph.get_vertices().withColumn("value", begin)
        weighted = type(graph)(vertices, edges.withColumn("value", F.col("value").cast("double")))
        columns = [("value", T.DoubleType())]
        rounds = self.max_iterations + 1
        program = _PathProgram(self.max_iterations)
        return in_blocks(self, weighted, program, rounds, columns, vertex_value=True, edge_value=True)


class _PathProgram(BlockProgram):
    """State: distances, and which of them are new. Messages: the smallest distance over the edges of a block."""

    def __init__(self, max_iterations: int) -> None:
        self.max_iterations = max_iterations

    def start(self, block: Block) -> Any:
        assert block.values is not None
        distance = block.values.to_numpy(zero_copy_only=False).astype(float)
        return distance, np.isfinite(distance)

    def step(self, block: Block, state: Any, inbox: dict[int, Any], superstep: int, shared: Any) -> Outcome:
        distance, new = state
        if superstep > 1:
            offered = block.received_min(inbox)
            new = offered < distance
            distance = np.where(new, offered, distance)
        outbox = {}
        if superstep <= self.max_iterations and new.any():
            edges = block.adjacency
            assert edges.values is not None
            length = edges.values.to_numpy(zero_copy_only=False)
            outbox = block.push_min(np.where(new[edges.source], distance[edges.source] + length, np.inf))
        return Outcome((distance, new), outbox, bool(outbox))

    def merge(self, stats: list[Any], superstep: int) -> tuple[Any, bool]:
        return None, any(stats)

    def results(self, block: Block, state: Any) -> list[pa.Array]:
        import pyarrow as pa

        return [pa.array(state[0])]
