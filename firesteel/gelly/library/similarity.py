"""How similar vertices are by their neighbours. Directions of edges do not count, nor do loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firesteel.gelly.library.base import GraphAlgorithm, undirected_pairs

if TYPE_CHECKING:
    from firesteel.gelly.graph import Graph

__all__ = ["AdamicAdar", "JaccardIndex"]


class JaccardIndex(GraphAlgorithm):
    """(vertex0, vertex1, shared, distinct, score): how many neighbours two vertices have in common, of how many.

    Pairs without any, or with a score below ``minimum_score``, have no row. The work grows with the square of the
    largest degree.
    """

    def __init__(self, minimum_score: float = 0.0) -> None:
        self.minimum_score = minimum_score

    def run(self, graph: Graph) -> DataFrame:
        neighbors, degrees = _neighbors(graph)
        shared = _shared(neighbors).groupBy("vertex0", "vertex1").agg(F.count("*").alias("shared"))
        for end in ("0", "1"):
            shared = shared.join(
                degrees.select(F.col("vertex").alias(f"vertex{end}"), F.col("degree").alias(f"d{end}")), f"vertex{end}"
            )
        distinct = F.col("d0") + F.col("d1") - F.col("shared")
        found = shared.select("vertex0", "vertex1", "shared", distinct.alias("distinct"))
        found = found.withColumn("score", F.col("shared") / F.col("distinct"))
        return found.where(F.col("score") >= self.minimum_score)


class AdamicAdar(GraphAlgorithm):
    """(vertex0, vertex1, score): the sum of 1 / ln(degree) over the neighbours that two vertices have in common."""

    def __init__(self, minimum_score: float = 0.0) -> None:
        self.minimum_score = minimum_score

    def run(self, graph: Graph) -> DataFrame:
        neighbors, degrees = _neighbors(graph)
        # Nobody shares a neighbour with one neighbour, whose logarithm would be 0.
        common = degrees.where(F.col("degree") > 1)
        weight = F.try_divide(F.lit(1.0), F.log("degree"))
        weights = common.select(F.col("vertex").alias("neighbor"), weight.alias("weight"))
        shared = _shared(neighbors).join(weights, "neighbor")
        found = shared.groupBy("vertex0", "vertex1").agg(F.sum("weight").alias("score"))
        return found.where(F.col("score") >= self.minimum_score)


def _neighbors(graph: Graph) -> tuple[DataFrame, DataFrame]:
    """(vertex, neighbor), and (vertex, degree)."""
    pairs = undirected_pairs(graph)
    both = pairs.select(F.col("first").alias("vertex"), F.col("second").alias("neighbor"))
    both = both.union(pairs.select("second", "first")).localCheckpoint(eager=False)
    return both, both.groupBy("vertex").agg(F.count("*").alias("degree"))


def _shared(neighbors: DataFrame) -> DataFrame:
    one = neighbors.select("neighbor", F.col("vertex").alias("vertex0"))
    other = neighbors.select("neighbor", F.col("vertex").alias("vertex1"))
    return one.join(other, "neighbor").where(F.col("vertex0") < F.col("vertex1"))
