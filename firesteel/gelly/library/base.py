"""What the algorithms share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from firesteel.errors import ProgramError, TypeMismatchError, short_repr
from firesteel.gelly.failures import user_errors
from firesteel.gelly.layout import Layout, blocks_for, cores_of, lay_out
from firesteel.gelly.supersteps import BlockProgram, Checkpoints, run_supersteps

if TYPE_CHECKING:
    from firesteel.gelly.graph import Graph

__all__ = ["GraphAlgorithm", "in_blocks", "number_type", "positive", "undirected_pairs"]

EDGES_PER_BLOCK = 2_000_000
"""A block's edges take 8 bytes each, and 8 more where they have weights."""


class GraphAlgorithm(ABC):
    """What ``graph.run()`` takes. One of your own has this method."""

    _parallelism: int | None = None
    _checkpoints = Checkpoints()

    @abstractmethod
    def run(self, graph: Graph) -> Any: ...

    def set_parallelism(self, parallelism: int) -> GraphAlgorithm:
        """Into how many blocks the graph is cut, for algorithms that iterate."""
        self._parallelism = positive(parallelism, "The parallelism of an algorithm")
        return self

    def set_reliable_checkpoints(self, interval: int = 10) -> GraphAlgorithm:
        """Saves every so many supersteps in the folder of ``SparkContext.setCheckpointDir``."""
        self._checkpoints = Checkpoints(positive(interval, "The interval of checkpoints"), reliable=True)
        return self


def positive(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ProgramError(f"{what} should be a whole number from 1 on, got {short_repr(value)}.")
    return value


def in_blocks(
    algorithm: GraphAlgorithm,
    graph: Graph,
    program: BlockProgram | Callable[[int], BlockProgram],
    max_supersteps: int,
    columns: list[tuple[str, T.DataType]],
    *,
    vertex_value: bool = False,
    edge_value: bool = False,
) -> DataFrame:
    """Runs a program over a graph, or the one that a function makes of the number of vertices. The result has ids and
    these columns."""
    vertices, edges = graph.get_vertices(), graph.get_edges()
    with user_errors():
        blocks = algorithm._parallelism or blocks_for(edges.count(), EDGES_PER_BLOCK, cores_of(edges))
    layout: Layout = lay_out(vertices, edges, blocks, edge_value=edge_value, vertex_value=vertex_value)
    fields = [("id", vertices.schema["id"].dataType), *columns]
    schema = T.StructType([T.StructField(name, kind) for name, kind in fields])
    try:
        made = program if isinstance(program, BlockProgram) else program(layout.vertices)
        return run_supersteps(layout, made, max_supersteps, schema, algorithm._checkpoints)
    finally:
        layout.release()


def number_type(frame: DataFrame, what: str) -> None:
    """Refuses values that are no numbers."""
    kind = frame.schema["value"].dataType
    if not isinstance(kind, T.NumericType):
        raise TypeMismatchError(f"{what} should be numbers, got {kind.simpleString()}.")


def undirected_pairs(graph: Graph) -> DataFrame:
    """(first, second): each pair of neighbours once, the smaller id first, whatever directions edges have."""
    edges = graph.get_edges().where(F.col("source") != F.col("target"))
    pairs = edges.select(F.least("source", "target").alias("first"), F.greatest("source", "target").alias("second"))
    return pairs.distinct()
