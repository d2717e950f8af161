"""Triangles, and how much neighbours know each other. Directions of edges do not count, nor do loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from firesteel.gelly.failures import user_errors
from firesteel.gelly.library.base import GraphAlgorithm, undirected_pairs

if TYPE_CHECKING:
    from firesteel.gelly.graph import Graph

__all__ = [
    "AverageClusteringCoefficient",
    "GlobalClusteringCoefficient",
    "LocalClusteringCoefficient",
    "TriangleCount",
    "TriangleListing",
    "degrees_of",
    "mean_score",
    "triangles_of",
]


class TriangleListing(GraphAlgorithm):
    """(vertex0, vertex1, vertex2): each triangle once, the smallest id first."""

    def run(self, graph: Graph) -> DataFrame:
        ids = F.sort_array(F.array("low", "middle", "high"))
        return _triangles(graph).select(*(ids[place].alias(f"vertex{place}") for place in range(3)))


class TriangleCount(GraphAlgorithm):
    """How many triangles there are."""

    def run(self, graph: Graph) -> int:
        with user_errors():
            return int(_triangles(graph).count())


class LocalClusteringCoefficient(GraphAlgorithm):
    """(id, degree, triangle_count, score): which share of the pairs of a vertex's neighbours are neighbours.

    NaN for a vertex with less than two.
    """

    def run(self, graph: Graph) -> DataFrame:
        corners = _triangles(graph).select(F.explode(F.array("low", "middle", "high")).alias("id"))
        counts = corners.groupBy("id").agg(F.count("*").alias("triangle_count"))
        degrees = degrees_of(undirected_pairs(graph))
        found = graph.get_vertex_ids().join(degrees, "id", "left").join(counts, "id", "left")
        found = found.fillna(0, ["degree", "triangle_count"])
        pairs = F.col("degree") * (F.col("degree") - 1) / 2
        score = F.when(F.col("degree") > 1, F.col("triangle_count") / pairs).otherwise(float("nan"))
        return found.select("id", "degree", "triangle_count", score.alias("score"))


class GlobalClustering(NamedTuple):
    """What :class:`GlobalClusteringCoefficient` gives."""

    triplet_count: int
    triangle_count: int
    score: float


class GlobalClusteringCoefficient(GraphAlgorithm):
    """Which share of all triplets (a vertex and two of its neighbours) are closed; NaN without triplets."""

    def run(self, graph: Graph) -> GlobalClustering:
        degrees = degrees_of(undirected_pairs(graph))
        with user_errors():
            triplets = degrees.agg(F.sum(F.col("degree") * (F.col("degree") - 1) / 2)).collect()[0][0] or 0
        triangles = TriangleCount().run(graph)
        return GlobalClustering(int(triplets), triangles, 3 * triangles / triplets if triplets else float("nan"))


class AverageClusteringCoefficient(GraphAlgorithm):
    """The mean of all local clustering coefficients, where vertices with less than two neighbours count as 0."""

    def run(self, graph: Graph) -> float:
        return mean_score(LocalClusteringCoefficient().run(graph))


def mean_score(scores: DataFrame) -> float:
    """The mean of a column ``score``, where what is no number counts as 0; NaN of no rows."""
    score = F.nanvl("score", F.lit(0.0))
    with user_errors():
        mean = scores.agg(F.avg(score)).collect()[0][0]
    return float("nan") if mean is None else float(mean)


def degrees_of(pairs: DataFrame) -> DataFrame:
    ends = pairs.select(F.col("first").alias("id")).union(pairs.select("second"))
    return ends.groupBy("id").agg(F.count("*").alias("degree"))


def _triangles(graph: Graph) -> DataFrame:
    return triangles_of(undirected_pairs(graph)).select("low", "middle", "high")


def triangles_of(pairs: DataFrame) -> DataFrame:
    """(low, middle, high), by degree and then id: each vertex has few neighbours above it, however many it has. What
    else the pairs have, ``low_middle``, ``low_high`` and ``middle_high`` have of each side."""
    others = [name for name in pairs.columns if name not in ("first", "second")]
    side = F.struct(*others) if others else F.lit(None).cast("int")
    pairs = pairs.select("first", "second", side.alias("side"))
    degrees = degrees_of(pairs)
    for end in ("first", "second"):
        renamed = degrees.select(F.col("id").alias(end), F.struct("degree", "id").alias(f"{end}_rank"))
        pairs = pairs.join(renamed, end)
    low, high = F.least("first_rank", "second_rank"), F.greatest("first_rank", "second_rank")
    upward = pairs.select(low["id"].alias("low"), high.alias("high"), "side").localCheckpoint(eager=False)

    def ends(name: str, side: str) -> DataFrame:
        return upward.select("low", F.col("high").alias(name), F.col("side").alias(side))

    open_ones = ends("a", "low_middle").join(ends("b", "low_high"), "low").where(_below("a", "b"))
    middle, high_end = F.col("a")["id"].alias("middle"), F.col("b")["id"].alias("high")
    open_ones = open_ones.select("low", middle, high_end, "low_middle", "low_high")
    closing = upward.select(
        F.col("low").alias("middle"), F.col("high")["id"].alias("high"), F.col("side").alias("middle_high")
    )
    return open_ones.join(closing, ["middle", "high"])


def _below(one: str, other: str) -> Column:
    return F.col(one) < F.col(other)
