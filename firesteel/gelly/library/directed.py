"""Triangles of directed graphs, and how much neighbours know each other. Loops do not count, nor do parallel edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from firesteel.gelly.library.base import GraphAlgorithm
from firesteel.gelly.library.triangles import degrees_of, mean_score, triangles_of

if TYPE_CHECKING:
    from firesteel.gelly.graph import Graph

__all__ = [
    "FORWARD",
    "MUTUAL",
    "REVERSE",
    "AverageClusteringCoefficient",
    "LocalClusteringCoefficient",
    "TriangleListing",
]

FORWARD = 0b01
"""An edge from the smaller id to the greater one."""
REVERSE = 0b10
MUTUAL = FORWARD | REVERSE


class TriangleListing(GraphAlgorithm):
    """(vertex0, vertex1, vertex2, bitmask): each triangle once, the smallest id first.

    The bitmask has two bits for each side, the highest for vertex0 and vertex1, then vertex0 and vertex2, then vertex1
    and vertex2: ``FORWARD`` for an edge from the first to the second, ``REVERSE`` for one back, ``MUTUAL`` for both.
    """

    def run(self, graph: Graph) -> DataFrame:
        found = _triangles(graph)
        ids = (F.col("sides")[0]["first"], F.col("sides")[0]["second"], F.col("sides")[2]["second"])
        bits = sum((_mark(side) * weight for side, weight in ((1, 4), (2, 1))), _mark(0) * 16)
        named = (vertex.alias(f"vertex{place}") for place, vertex in enumerate(ids))
        return found.select(*named, bits.cast("int").alias("bitmask"))


class LocalClusteringCoefficient(GraphAlgorithm):
    """(id, degree, triangle_count, score): which share of the edges that there could be between a vertex's neighbours
    there are, each direction counted for itself.

    A neighbour counts once, whatever directions its edges have. NaN for a vertex with less than two.
    """

    def run(self, graph: Graph) -> DataFrame:
        # Opposite to each corner is the side between the other two.
        corners = (
            (F.col("sides")[0]["first"], 2),
            (F.col("sides")[0]["second"], 1),
            (F.col("sides")[2]["second"], 0),
        )
        opposite = F.array(
            *(F.struct(vertex.alias("id"), F.bit_count(_mark(side)).alias("edges")) for vertex, side in corners)
        )
        counts = _triangles(graph).select(F.inline(opposite)).groupBy("id")
        counted = counts.agg(F.sum("edges").alias("triangle_count"))
        degrees = degrees_of(_marked_pairs(graph))
        found = graph.get_vertex_ids().join(degrees, "id", "left").join(counted, "id", "left")
        found = found.fillna(0, ["degree", "triangle_count"])
        pairs = F.col("degree") * (F.col("degree") - 1)
        score = F.when(F.col("degree") > 1, F.col("triangle_count") / pairs).otherwise(float("nan"))
        return found.select("id", "degree", "triangle_count", score.alias("score"))


class AverageClusteringCoefficient(GraphAlgorithm):
    """The mean of all local clustering coefficients, where vertices with less than two neighbours count as 0."""

    def run(self, graph: Graph) -> float:
        return mean_score(LocalClusteringCoefficient().run(graph))


def _marked_pairs(graph: Graph) -> DataFrame:
    """(first, second, mark): each pair of neighbours once, the smaller id first, and which edges there are."""
    edges = graph.get_edges().where(F.col("source") != F.col("target"))
    mark = F.when(F.col("source") < F.col("target"), FORWARD).otherwise(REVERSE)
    pairs = edges.select(
        F.least("source", "target").alias("first"), F.greatest("source", "target").alias("second"), mark.alias("mark")
    )
    return pairs.groupBy("first", "second").agg(F.bit_or("mark").alias("mark"))


def _triangles(graph: Graph) -> DataFrame:
    """(sides): first, second and mark of each side, in the order of ids."""
    found = triangles_of(_marked_pairs(graph))
    sides = [_side(one, other) for one, other in (("low", "middle"), ("low", "high"), ("middle", "high"))]
    return found.select(F.sort_array(F.array(*sides)).alias("sides"))


def _side(one: str, other: str) -> Column:
    mark = F.col(f"{one}_{other}")["mark"].alias("mark")
    return F.struct(F.least(one, other).alias("first"), F.greatest(one, other).alias("second"), mark)


def _mark(side: int) -> Column:
    return F.col("sides")[side]["mark"]
