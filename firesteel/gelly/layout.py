"""Brings a graph's DataFrames into blocks, in Spark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NullType

from firesteel.gelly.blocks import SCHEMA, STATS, Assembly, Cells, assemble, read_cells, resolve
from firesteel.gelly.failures import user_errors
from firesteel.gelly.shipping import over_batches
from firesteel.runtime.partitions import partition_tokens

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Layout", "blocks_for", "collect_stats", "cores_of", "lay_out"]


class Layout:
    """A graph in blocks: cached rows, a partition each."""

    def __init__(self, rows: DataFrame, assembly: Assembly, vertices: int) -> None:
        self.rows = rows
        self.assembly = assembly
        self.vertices = vertices
        """How many there are."""

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.assembly.tokens

    def release(self) -> None:
        self.rows.unpersist()


def blocks_for(edges: int, per_block: int, cores: int) -> int:
    """How many blocks a graph gets: one a core, and more where they would not fit into a worker's memory.

    >>> blocks_for(1000, 1_000_000, 2), blocks_for(10_000_000, 1_000_000, 4)
    (2, 12)
    """
    rounds = max(1, math.ceil(edges / per_block / cores))
    return cores * rounds


def lay_out(
    vertices: DataFrame,
    edges: DataFrame,
    blocks: int,
    by_source: bool = False,
    edge_value: bool = False,
    vertex_value: bool = False,
) -> Layout:
    """Spreads a graph over blocks. ``vertices`` has (id, value), ``edges`` (source, target, value)."""
    assembly = Assembly(partition_tokens(blocks), vertex_value, edge_value, by_source)
    tokens = F.array(*(F.lit(token) for token in assembly.tokens))

    def number(column: str) -> Column:
        return F.pmod(F.hash(column), F.lit(blocks))

    def token(column: str) -> Column:
        return F.element_at(tokens, number(column) + 1)

    none = F.lit(None)
    edge_type = edges.schema["value"].dataType if edge_value else NullType()
    vertex_type = vertices.schema["value"].dataType if vertex_value else NullType()
    rows = vertices.select(
        token("id").alias("block"),
        F.col("id").alias("source"),
        F.col("id").alias("target"),
        F.lit(-1).alias("target_block"),
        *([none.cast(edge_type).alias("value")] if edge_value else []),
        *([F.col("value").alias("vertex")] if vertex_value else []),
    ).unionByName(
        edges.select(
            token("source").alias("block"),
            "source",
            "target",
            number("target").alias("target_block"),
            *(["value"] if edge_value else []),
            *([none.cast(vertex_type).alias("vertex")] if vertex_value else []),
        )
    )
    listed = over_batches(rows.repartition(blocks, "block"), _per_partition(_Assemble(assembly)), SCHEMA)
    resolved = over_batches(listed.repartition(blocks, "block"), _per_partition(_Resolve(assembly)), SCHEMA)
    # Spark remembers how cached rows are partitioned and ordered, so no superstep moves them again.
    cached = resolved.repartition(blocks, "block").sortWithinPartitions("block")
    cached = cached.persist(StorageLevel.MEMORY_AND_DISK)
    with user_errors():
        sizes = collect_stats(cached)
    return Layout(cached, assembly, sum(sizes))


def collect_stats(frame: DataFrame) -> list[Any]:
    """What blocks have to say to the driver, one value each."""
    found: dict[int, list[pa.RecordBatch]] = {}
    for batch in frame.where(F.col("kind") == STATS).toArrow().to_batches():
        for row in range(batch.num_rows):
            found.setdefault(batch.column("block")[row].as_py(), []).append(batch.slice(row, 1))
    return [read_cells(batches, (STATS,))[STATS, 0] for _, batches in sorted(found.items())]


class _Assemble:
    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly

    def __call__(self, batches: list[pa.RecordBatch]) -> Cells:
        import pyarrow as pa

        table = pa.Table.from_batches(batches)
        return assemble(self.assembly, self.assembly.tokens.index(table["block"][0].as_py()), table)


class _Resolve:
    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly

    def __call__(self, batches: list[pa.RecordBatch]) -> Cells:
        number = self.assembly.tokens.index(batches[0].column("block")[0].as_py())
        return resolve(self.assembly, number, batches)


def _per_partition(function: Callable[[list[Any]], Cells]) -> Any:
    """A partition is one block, so that all its rows may be taken at once."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            yield from function(filled).batches()

    return run


def cores_of(frame: DataFrame) -> int:
    """How many tasks run at once."""
    return max(1, int(frame.sparkSession.sparkContext.defaultParallelism))
