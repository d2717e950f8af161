"""Connected components.

Messages that spread the smallest id would need as many supersteps as a component is long. Instead each partition
replaces its edges by a star for each of its components (every vertex joined to the smallest one), of which there are at
most as many edges as vertices. Stars of all partitions are put together and replaced again: in one partition where they
fit, or else by rounds of Spark joins that halve the distances (large star and small star).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from firesteel.gelly.blocks import Array
from firesteel.gelly.failures import user_errors
from firesteel.gelly.library.base import GraphAlgorithm, positive

if TYPE_CHECKING:
    import pyarrow as pa

    from firesteel.gelly.graph import Graph

__all__ = ["ConnectedComponents"]

_IN_ONE = 20_000_000
"""How many edges of stars one worker takes: some 32 bytes each."""


class ConnectedComponents(GraphAlgorithm):
    """(id, value): the smallest value in each vertex's component; of vertices without values, the smallest id.

    Directions of edges do not count. ``max_iterations`` is there because Gelly has it: the result is always complete.
    """

    def __init__(self, max_iterations: int = 1, edges_in_one_task: int = _IN_ONE) -> None:
        positive(max_iterations, "ConnectedComponents' iterations")
        self.edges_in_one_task = edges_in_one_task

    def run(self, graph: Graph) -> DataFrame:
        vertices = graph.get_vertices()
        stars = self._stars(graph.get_edges().select("source", "target"))
        found = vertices.join(stars.withColumnRenamed("source", "id"), "id", "left")
        found = found.withColumn("component", F.coalesce("target", "id"))
        if isinstance(vertices.schema["value"].dataType, T.NullType):
            result = found.select("id", F.col("component").alias("value"))
        else:
            least = found.groupBy("component").agg(F.min("value").alias("least"))
            result = found.join(least, "component").select("id", F.col("least").alias("value"))
        with user_errors():
            return result.localCheckpoint()

    def _stars(self, edges: DataFrame) -> DataFrame:
        """Each vertex that has edges and is not the smallest of its component, joined to that one."""
        stars = edges.mapInArrow(_star_batches, edges.schema)
        with user_errors():
            stars = stars.localCheckpoint()
            count = stars.count()
        if count <= self.edges_in_one_task:
            return stars.coalesce(1).mapInArrow(_star_batches, edges.schema)
        return _rounds(stars)


def components(first: Array, second: Array, size: int) -> Array:
    """For each of ``size`` vertices the smallest number in its component; edges are pairs of numbers.

    >>> components(np.array([4, 1, 2]), np.array([3, 2, 0]), 6).tolist()
    [0, 0, 0, 3, 3, 5]
    """
    root = np.arange(size)
    while len(first):
        ahead, behind = root[first], root[second]
        apart = ahead != behind
        if not apart.any():
            break
        first, second = ahead[apart], behind[apart]
        np.minimum.at(root, np.maximum(first, second), np.minimum(first, second))
        while True:
            further = root[root]
            if np.array_equal(further, root):
                break
            root = further
    return root


def _star_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replaces the edges of a partition by stars."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.Table.from_batches(list(batches)) if (batches := list(batches)) else None
    if table is None or not table.num_rows:
        return
    names = table.schema.names
    ids = pc.unique(pa.chunked_array([*table[0].chunks, *table[1].chunks]))
    # Numbers in the order of ids, so that the smallest number is the smallest id.
    ids = ids.take(pc.sort_indices(ids))
    first, second = (pc.index_in(table[column], value_set=ids).to_numpy().astype(np.int64) for column in (0, 1))
    root = components(first, second, len(ids))
    others = np.flatnonzero(root != np.arange(len(ids)))
    stars = pa.table([ids.take(pa.array(others)), ids.take(pa.array(root[others]))], names=names)
    yield from stars.to_batches(max_chunksize=100_000)


def _rounds(edges: DataFrame) -> DataFrame:
    """Large star and small star by turns, until nothing changes (Kiveris and others, Connected Components in MapReduce
    and Beyond, 2014)."""
    state: Any = None
    while True:
        both = edges.union(edges.select("target", "source"))
        least = both.groupBy("source").agg(F.min("target").alias("low"))
        least = least.select("source", F.least("source", "low").alias("low"))
        # Large star: every larger neighbour is joined to the smallest.
        large = both.join(least, "source").where(F.col("target") > F.col("source"))
        edges = large.select(F.col("target").alias("source"), F.col("low").alias("target"))
        # Small star: the same for smaller ones, and the vertex itself.
        edges = edges.where(F.col("source") != F.col("target")).distinct()
        low = edges.groupBy("source").agg(F.min("target").alias("low"))
        smaller = edges.join(low, "source").select(F.col("target").alias("source"), F.col("low").alias("target"))
        itself = low.select("source", F.col("low").alias("target"))
        edges = smaller.union(itself).where(F.col("source") != F.col("target")).distinct()
        with user_errors():
            edges = edges.localCheckpoint()
            row = edges.agg(F.count("*"), F.sum(F.hash("source", "target").cast("decimal(38,0)"))).collect()[0]
        if tuple(row) == state:
            return edges
        state = tuple(row)
