"""Graphs that are made instead of read: for tests and measurements. All but R-MAT have each edge both ways."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F

from firesteel.errors import ProgramError
from firesteel.gelly.graph import Graph
from firesteel.gelly.sessions import session_of
from firesteel.gelly.shapes import Complete, Cycle, Empty, Grid, Path, RMat, Shape, Star, at_least

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CompleteGraph",
    "CycleGraph",
    "EmptyGraph",
    "GraphGenerator",
    "GridGraph",
    "PathGraph",
    "RMatGraph",
    "StarGraph",
]


class GraphGenerator(ABC):
    """A graph that ``generate()`` makes. Ids are whole numbers, values are none."""

    def __init__(self, env: Any = None) -> None:
        self._env = env
        self._parallelism: int | None = None

    def set_parallelism(self, parallelism: int) -> GraphGenerator:
        """How many tasks make it."""
        self._parallelism = at_least(parallelism, 1, "The parallelism of a generator")
        return self

    @abstractmethod
    def shape(self) -> Shape: ...

    def generate(self) -> Graph:
        session = session_of(self._env)
        shape = self.shape()
        stretches = -(-shape.numbers // RMat.STRETCH)
        tasks = self._parallelism or session.sparkContext.defaultParallelism
        numbers = session.range(0, stretches, 1, max(1, min(tasks, stretches)))
        edges = numbers.mapInArrow(_maker(shape), "source bigint, target bigint").withColumn("value", F.lit(None))
        if shape.vertices is None:
            return Graph.from_data_set(edges)
        vertices = session.range(0, shape.vertices, 1, tasks).withColumn("value", F.lit(None))
        return Graph(vertices, edges)


def _maker(shape: Shape) -> Any:
    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for stretch in batch.column(0).to_pylist():
                begin = stretch * RMat.STRETCH
                numbers = np.arange(begin, min(begin + RMat.STRETCH, shape.numbers))
                source, target = shape.edges(numbers)
                yield pa.RecordBatch.from_arrays([pa.array(source), pa.array(target)], names=["source", "target"])

    return make


class _Sized(GraphGenerator):
    _least = 1

    def __init__(self, vertex_count: int, env: Any = None) -> None:
        super().__init__(env)
        self.vertex_count = at_least(vertex_count, self._least, f"The vertices of a {type(self).__name__}")


class EmptyGraph(_Sized):
    """Vertices without edges."""

    _least = 0

    def shape(self) -> Shape:
        return Empty(self.vertex_count)


class CompleteGraph(_Sized):
    """Every vertex is every other one's neighbour."""

    _least = 2

    def shape(self) -> Shape:
        return Complete(self.vertex_count)


class StarGraph(_Sized):
    """Vertex 0 is the neighbour of all others."""

    _least = 2

    def shape(self) -> Shape:
        return Star(self.vertex_count)


class CycleGraph(_Sized):
    """A ring."""

    _least = 2

    def shape(self) -> Shape:
        return Cycle(self.vertex_count)


class PathGraph(_Sized):
    """A line."""

    _least = 2

    def shape(self) -> Shape:
        return Path(self.vertex_count)


class GridGraph(GraphGenerator):
    """A grid of any dimensions: ``GridGraph().add_dimension(3).add_dimension(4, wrap_endpoints=True)``."""

    def __init__(self, env: Any = None) -> None:
        super().__init__(env)
        self.dimensions: list[tuple[int, bool]] = []

    def add_dimension(self, size: int, wrap_endpoints: bool = False) -> GridGraph:
        """One more dimension; its ends may meet."""
        self.dimensions.append((at_least(size, 2, "The size of a dimension"), wrap_endpoints))
        return self

    def shape(self) -> Shape:
        if not self.dimensions:
            raise ProgramError("A GridGraph needs dimensions: add_dimension() adds one.")
        return Grid(tuple(self.dimensions))


class RMatGraph(GraphGenerator):
    """Random edges with few popular vertices (R-MAT). Vertices without edges are left out, as in Gelly.

    ``vertex_count`` is rounded up to a power of two.
    """

    def __init__(self, vertex_count: int, edge_count: int, seed: int = 0, env: Any = None) -> None:
        super().__init__(env)
        self.scale = (at_least(vertex_count, 2, "The vertices of an RMatGraph") - 1).bit_length()
        self.edge_count = at_least(edge_count, 1, "The edges of an RMatGraph")
        self.seed = seed
        self._constants = (0.57, 0.19, 0.19)
        self._noise = 0.0

    def set_constants(self, a: float, b: float, c: float) -> RMatGraph:
        """The probabilities of three quarters; the fourth has the rest."""
        if min(a, b, c) < 0 or a + b + c > 1:
            raise ProgramError(f"R-MAT's probabilities should be from 0 on and up to 1 in all, got {a}, {b} and {c}.")
        self._constants = (a, b, c)
        return self

    def set_noise(self, enabled: bool, noise: float = 0.1) -> RMatGraph:
        """Changes the probabilities a little from bit to bit, so that degrees have no steps."""
        self._noise = noise if enabled else 0.0
        return self

    def shape(self) -> Shape:
        return RMat(self.scale, self.edge_count, *self._constants, noise=self._noise, seed=self.seed)
