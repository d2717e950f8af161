"""What the three kinds of iterations with Python functions share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from firesteel.errors import ProgramError, short_repr
from firesteel.gelly.blocks import Block
from firesteel.gelly.configuration import IterationConfiguration
from firesteel.gelly.elements import EdgeDirection
from firesteel.gelly.failures import user_errors
from firesteel.gelly.layout import blocks_for, cores_of, lay_out
from firesteel.gelly.messages import BlockEdges, Degrees, IterationContext, IterationFunction
from firesteel.gelly.supersteps import BlockProgram, run_supersteps
from firesteel.gelly.values import from_column, to_column

if TYPE_CHECKING:
    import pyarrow as pa

    from firesteel.gelly.graph import Graph

__all__ = ["FunctionProgram", "Types", "bind", "check_iterations", "run_functions"]

_EDGES_PER_BLOCK = 500_000
"""Edges of a block become Python objects."""


@dataclass(frozen=True)
class Types:
    """Of a graph, as functions see it."""

    id: T.DataType
    vertex: T.DataType
    edge: T.DataType
    flipped: bool
    """Whether blocks have the edges in the other direction."""
    both: bool
    """Whether they have them in both, and a mark in the value of each."""
    degrees: bool = False
    """Whether blocks have, beside the value of each vertex, how many edges end and begin there."""


class FunctionProgram(BlockProgram):
    """Supersteps that call Python functions. State: the value of each vertex, and which of them are to send."""

    def __init__(self, types: Types, parameters: IterationConfiguration, vertices: int | None) -> None:
        self.types = types
        self._aggregators = parameters.new_aggregators()
        self._broadcast = parameters.collect_broadcast_sets()
        self._vertices = vertices

    def start(self, block: Block) -> Any:
        values: Any = block.values
        own = values.field(0) if self.types.degrees else values
        return from_column(own, self.types.vertex), list(range(block.size))

    def degrees(self, block: Block) -> Degrees | None:
        """Of the block's vertices, where the configuration asks for them."""
        if not self.types.degrees:
            return None
        values: Any = block.values
        return Degrees(values.field(1).to_pylist(), values.field(2).to_pylist())

    def edges(self, block: Block) -> BlockEdges:
        types = self.types
        return BlockEdges(block, types.id, types.edge, types.flipped, types.both)

    def context(self, superstep: int, shared: Any) -> IterationContext:
        for aggregator in self._aggregators.values():
            aggregator.reset()
        return IterationContext(superstep, self._aggregators, shared or {}, self._broadcast, self._vertices)

    def partial_aggregates(self) -> dict[str, Any]:
        return {name: aggregator.get_aggregate() for name, aggregator in self._aggregators.items()}

    def merge(self, stats: list[Any], superstep: int) -> tuple[Any, bool]:
        """``stats`` are pairs: partial aggregates, and whether there is anything to go on with."""
        return self.merged_aggregates([partial for partial, _ in stats]), any(more for _, more in stats)

    def merged_aggregates(self, partials: list[dict[str, Any]]) -> dict[str, Any]:
        merged = {}
        for name, aggregator in self._aggregators.items():
            aggregator.reset()
            for partial in partials:
                aggregator.aggregate(partial[name])
            merged[name] = aggregator.get_aggregate()
        return merged

    @property
    def has_aggregators(self) -> bool:
        return bool(self._aggregators)

    def results(self, block: Block, state: Any) -> list[pa.Array]:
        return [to_column(state[0], self.types.vertex, "set_new_vertex_value()")]


def check_iterations(function: Any, kind: type, maximum: int, method: str) -> None:
    """What can be said of an iteration's arguments before it runs."""
    if not isinstance(function, kind):
        raise ProgramError(f"{method}() needs a {kind.__name__}, got {short_repr(function)}.")
    if not isinstance(maximum, int) or isinstance(maximum, bool) or maximum < 1:
        raise ProgramError(f"{method}() needs a maximum of at least 1 iteration, got {short_repr(maximum)}.")


def run_functions(
    graph: Graph,
    make: Any,
    supersteps: Any,
    parameters: IterationConfiguration,
    direction: EdgeDirection = EdgeDirection.OUT,
) -> Graph:
    """Lays a graph out in blocks and runs the program that ``make(types, parameters, vertices)`` gives.

    ``supersteps`` says how many the program may take.
    """
    vertices, edges = graph.get_vertices(), graph.get_edges()
    both = direction is EdgeDirection.ALL
    flipped = direction is EdgeDirection.IN
    with user_errors():
        count = edges.count()
    laid_edges = _directed(edges, direction)
    types = Types(
        vertices.schema["id"].dataType,
        vertices.schema["value"].dataType,
        laid_edges.schema["value"].dataType,
        flipped,
        both,
        parameters.wants_degrees,
    )
    if types.degrees:
        vertices = _with_degrees(graph)
    blocks = parameters.get_parallelism() or blocks_for(count, _EDGES_PER_BLOCK, cores_of(vertices))
    layout = lay_out(vertices, laid_edges, blocks, by_source=True, edge_value=True, vertex_value=True)
    schema = T.StructType([T.StructField("id", types.id), T.StructField("value", types.vertex)])
    try:
        number = layout.vertices if parameters.wants_number_of_vertices else None
        program: FunctionProgram = make(types, parameters, number)
        result = run_supersteps(layout, program, supersteps(program), schema, parameters.checkpoints)
    finally:
        layout.release()
    return type(graph)(result, edges)


def _with_degrees(graph: Graph) -> DataFrame:
    """Vertices whose values have two fields more: how many edges end there, and how many begin."""
    incoming = graph.in_degrees().withColumnRenamed("degree", "incoming")
    outgoing = graph.out_degrees().withColumnRenamed("degree", "outgoing")
    joined = graph.get_vertices().join(incoming, "id").join(outgoing, "id")
    return joined.select("id", F.struct("value", "incoming", "outgoing").alias("value"))


def _directed(edges: DataFrame, direction: EdgeDirection) -> DataFrame:
    """Edges so that each begins at the vertex that is to see it."""
    if direction is EdgeDirection.OUT:
        return edges
    turned = edges.select(F.col("target").alias("source"), F.col("source").alias("target"), "value")
    if direction is EdgeDirection.IN:
        return turned

    def marked(frame: DataFrame, flipped: bool) -> DataFrame:
        return frame.withColumn("value", F.struct(F.col("value").alias("value"), F.lit(flipped).alias("flipped")))

    return marked(edges, False).union(marked(turned, True))


def bind(function: IterationFunction, context: IterationContext) -> None:
    function._context = context
