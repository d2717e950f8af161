"""Communities found by labels that spread: label propagation and community detection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from firesteel.errors import TypeMismatchError
from firesteel.gelly.blocks import Array, Block
from firesteel.gelly.library.base import GraphAlgorithm, in_blocks, number_type, positive
from firesteel.gelly.supersteps import BlockProgram, Outcome

if TYPE_CHECKING:
    import pyarrow as pa

    from firesteel.gelly.graph import Graph

__all__ = ["CommunityDetection", "LabelPropagation"]


class LabelPropagation(GraphAlgorithm):
    """(id, value): each vertex takes the value that most of those have that have an edge to it, again and again.

    Of several such values it takes the largest. Values of vertices are the first labels. A vertex that gets no labels
    sends its own in the first superstep only, as in Gelly.
    """

    def __init__(self, max_iterations: int) -> None:
        self.max_iterations = positive(max_iterations, "LabelPropagation's iterations")

    def run(self, graph: Graph) -> DataFrame:
        coded, names = _coded(graph)
        columns = [("value", T.LongType())]
        rounds = self.max_iterations + 1
        program = _LabelProgram(self.max_iterations)
        return _decoded(in_blocks(self, coded, program, rounds, columns, vertex_value=True), names)


class CommunityDetection(GraphAlgorithm):
    """A graph whose vertices have the label of their community for a value.

    Labels spread with a score, which edge values multiply; each vertex takes the label with the highest sum of scores.
    ``delta`` is what a label loses of its score when it moves. Directions of edges do not count.
    """

    def __init__(self, max_iterations: int, delta: float = 0.5) -> None:
        self.max_iterations = positive(max_iterations, "CommunityDetection's iterations")
        self.delta = delta

    def run(self, graph: Graph) -> Graph:
        edges = graph.get_edges()
        if isinstance(edges.schema["value"].dataType, T.NullType):
            edges = edges.withColumn("value", F.lit(1.0))
        number_type(edges, "Values of edges for CommunityDetection")
        edges = edges.withColumn("value", F.col("value").cast("double"))
        coded, names = _coded(type(graph)(graph.get_vertices(), edges).get_undirected())
        columns = [("value", T.LongType())]
        program = _CommunityProgram(self.max_iterations, self.delta)
        rounds = self.max_iterations + 1
        found = in_blocks(self, coded, program, rounds, columns, vertex_value=True, edge_value=True)
        return type(graph)(_decoded(found, names), graph.get_edges())


def _coded(graph: Graph) -> tuple[Graph, DataFrame | None]:
    """A graph with whole numbers for labels, in the same order, and what they stand for where they were none."""
    vertices = graph.get_vertices()
    kind = vertices.schema["value"].dataType
    if isinstance(kind, T.NullType):
        raise TypeMismatchError(
            "Values of vertices are the first labels, but the graph has none; map_vertices() sets some."
        )
    if isinstance(kind, T.IntegralType):
        return type(graph)(vertices.withColumn("value", F.col("value").cast("bigint")), graph.get_edges()), None
    names = vertices.select("value").distinct()
    names = names.withColumn("label", F.row_number().over(Window.orderBy("value")).cast("bigint")).localCheckpoint()
    coded = vertices.join(names, "value").select("id", F.col("label").alias("value"))
    return type(graph)(coded, graph.get_edges()), names


def _decoded(found: DataFrame, names: DataFrame | None) -> DataFrame:
    if names is None:
        return found
    return found.withColumnRenamed("value", "label").join(names, "label").select("id", "value")


def _grouped(number: Array, label: Array) -> tuple[Array, Array, Array]:
    """An order by number and label, and where each pair begins in it."""
    order = np.lexsort((label, number))
    number, label = number[order], label[order]
    first = np.ones(len(order), bool)
    first[1:] = (number[1:] != number[:-1]) | (label[1:] != label[:-1])
    return order, np.flatnonzero(first), first


def _split(block: Block, place: Array, *columns: Array) -> dict[int, tuple[Array, ...]]:
    """Columns ordered by place, as what each block gets of them, with places in its own part of the list."""
    starts = block.adjacency.starts
    cuts = np.searchsorted(place, starts)
    return {
        number: tuple(c[cuts[number] : cuts[number + 1]] for c in (place - starts[number], *columns))
        for number in range(len(starts) - 1)
        if cuts[number] < cuts[number + 1]
    }


def _merged(block: Block, inbox: dict[int, Any]) -> tuple[Array, ...]:
    """Columns of all senders, with numbers of vertices instead of places."""
    parts = [(block.routes[sender][sent[0]], *sent[1:]) for sender, sent in sorted(inbox.items())]
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


class _LabelProgram(BlockProgram):
    """State: labels, and which vertices send theirs. Messages: labels with how often they were sent to a vertex."""

    def __init__(self, max_iterations: int) -> None:
        self.max_iterations = max_iterations

    def start(self, block: Block) -> Any:
        values = block.values
        assert values is not None
        return values.to_numpy(zero_copy_only=False).astype(np.int64), np.ones(block.size, bool)

    def step(self, block: Block, state: Any, inbox: dict[int, Any], superstep: int, shared: Any) -> Outcome:
        labels, active = state
        news = superstep == 1
        if superstep > 1:
            new, got = labels.copy(), np.zeros(block.size, bool)
            if inbox:
                number, label, count = _merged(block, inbox)
                order, begins, _ = _grouped(number, label)
                number, label = number[order][begins], label[order][begins]
                count = np.add.reduceat(count[order], begins)
                # The last of a vertex: the largest of the most frequent labels.
                best = np.lexsort((label, count, number))
                last = np.append(number[best][1:] != number[best][:-1], True)
                winner, votes, at = label[best][last], count[best][last], number[best][last]
                # Labels that came once compete with the vertex's own.
                new[at] = np.where(votes > 1, winner, np.maximum(winner, labels[at]))
                got[at] = True
            news = not np.array_equal(new, labels) or not np.array_equal(got, active)
            labels, active = new, got
        outbox: dict[int, Any] = {}
        if superstep <= self.max_iterations:
            edges = block.adjacency
            sends = active[edges.source]
            place, label = edges.place[sends], labels[edges.source[sends]]
            if len(place):
                order, begins, _ = _grouped(place, label)
                count = np.diff(np.append(begins, len(order)))
                outbox = _split(block, place[order][begins], label[order][begins], count)
        return Outcome((labels, active), outbox, news)

    def merge(self, stats: list[Any], superstep: int) -> tuple[Any, bool]:
        return None, any(stats)

    def results(self, block: Block, state: Any) -> list[pa.Array]:
        import pyarrow as pa

        return [pa.array(state[0])]


class _CommunityProgram(BlockProgram):
    """State: labels, scores, who sends. Messages: for a vertex and a label the sum and the largest of its scores."""

    def __init__(self, max_iterations: int, delta: float) -> None:
        self.max_iterations, self.delta = max_iterations, delta

    def start(self, block: Block) -> Any:
        values = block.values
        assert values is not None
        labels = values.to_numpy(zero_copy_only=False).astype(np.int64)
        return labels, np.ones(block.size), np.ones(block.size, bool)

    def step(self, block: Block, state: Any, inbox: dict[int, Any], superstep: int, shared: Any) -> Outcome:
        labels, scores, active = state
        if superstep > 1:
            active = np.zeros(block.size, bool)
            if inbox:
                number, label, total, high = _merged(block, inbox)
                order, begins, _ = _grouped(number, label)
                number, label = number[order][begins], label[order][begins]
                total, high = np.add.reduceat(total[order], begins), np.maximum.reduceat(high[order], begins)
                # The first of a vertex: the smallest of the labels with the highest sum.
                best = np.lexsort((label, -total, number))
                first = np.append(True, number[best][1:] != number[best][:-1])
                at, winner = number[best][first], label[best][first]
                moved = winner != labels[at]
                scores[at] = high[best][first] - np.where(moved, self.delta / (superstep - 1), 0.0)
                labels[at] = winner
                active[at] = True
        outbox: dict[int, Any] = {}
        if superstep <= self.max_iterations:
            edges = block.adjacency
            sends = active[edges.source]
            source, place = edges.source[sends], edges.place[sends]
            if len(place):
                assert edges.values is not None
                score = scores[source] * edges.values.to_numpy(zero_copy_only=False)[sends]
                order, begins, _ = _grouped(place, labels[source])
                total = np.add.reduceat(score[order], begins)
                high = np.maximum.reduceat(score[order], begins)
                outbox = _split(block, place[order][begins], labels[source][order][begins], total, high)
        return Outcome((labels, scores, active), outbox, bool(outbox))

    def merge(self, stats: list[Any], superstep: int) -> tuple[Any, bool]:
        return None, any(stats)

    def results(self, block: Block, state: Any) -> list[pa.Array]:
        import pyarrow as pa

        return [pa.array(state[0])]
