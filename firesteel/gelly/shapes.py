"""The edges of generated graphs, as functions of their number. Nothing here knows Spark.

``edges(numbers)`` gives sources and targets of the edges with these numbers; some numbers may stand for no edge. So any
part of a graph can be made anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from firesteel.errors import ProgramError
from firesteel.gelly.blocks import Array

__all__ = ["Complete", "Cycle", "Empty", "Grid", "Path", "RMat", "Shape", "Star"]


class Shape(Protocol):
    """A graph that is yet to be made."""

    @property
    def vertices(self) -> int | None:
        """Ids are 0, 1, 2, … up to this; None where edges say which vertices there are."""

    @property
    def numbers(self) -> int:
        """How many numbers of edges there are."""

    def edges(self, numbers: Array) -> tuple[Array, Array]: ...


def at_least(value: int, least: int, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ProgramError(f"{what} should be a whole number from {least} on, got {value!r}.")
    return value


@dataclass(frozen=True)
class Empty:
    """Vertices without edges."""

    vertices: int
    numbers = 0

    def edges(self, numbers: Array) -> tuple[Array, Array]:
        return numbers[:0], numbers[:0]


@dataclass(frozen=True)
class Complete:
    """An edge from each vertex to each other one.

    >>> [pair.tolist() for pair in Complete(3).edges(np.arange(6))]
    [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    """

    vertices: int

    @property
    def numbers(self) -> int:
        return self.vertices * (self.vertices - 1)

    def edges(self, numbers: Array) -> tuple[Array, Array]:
        source, target = np.divmod(numbers, self.vertices - 1)
        return source, target + (target >= source)


@dataclass(frozen=True)
class Star:
    """Vertex 0 and each other one, both ways."""

    vertices: int

    @property
    def numbers(self) -> int:
        return 2 * (self.vertices - 1)

    def edges(self, numbers: Array) -> tuple[Array, Array]:
        leaf, inward = numbers // 2 + 1, numbers % 2
        return leaf * inward, leaf * (1 - inward)


@dataclass(frozen=True)
class Grid:
    """Neighbours in a grid of some dimensions, each with a size and whether its ends meet; both ways.

    >>> [pair.tolist() for pair in Grid(((3, False),)).edges(np.arange(6))]
    [[0, 1, 1, 2], [1, 2, 0, 1]]
    """

    dimensions: tuple[tuple[int, bool], ...]

    @property
    def vertices(self) -> int:
        return prod(size for size, _ in self.dimensions)

    @property
    def numbers(self) -> int:
        return 2 * self.vertices * len(self.dimensions)

    def edges(self, numbers: Array) -> tuple[Array, Array]:
        source, way = np.divmod(numbers, 2 * len(self.dimensions))
        sources, targets, order = [source[:0]], [source[:0]], [source[:0]]
        stride = self.vertices
        for dimension, (size, wraps) in enumerate(self.dimensions):
            stride //= size
            for backward in (0, 1):
                mine = way == 2 * dimension + backward
                own = source[mine]
                place = own // stride % size
                there = place - 1 if backward else place + 1
                # In a ring of two the way back is the way there.
                inside = np.full(len(own), wraps and size > 2) | ((there >= 0) & (there < size))
                sources.append(own[inside])
                targets.append((own + (there % size - place) * stride)[inside])
                order.append(numbers[mine][inside])
        by_number = np.argsort(np.concatenate(order), kind="stable")
        return np.concatenate(sources)[by_number], np.concatenate(targets)[by_number]


def Cycle(vertices: int) -> Grid:
    """A ring, both ways round."""
    return Grid(((vertices, True),))


def Path(vertices: int) -> Grid:
    """A line, both ways."""
    return Grid(((vertices, False),))


@dataclass(frozen=True)
class RMat:
    """Random edges with few popular vertices, as in social networks (Chakrabarti and others, R-MAT, 2004).

    The matrix of all edges is cut into four again and again; an edge goes to each quarter with probabilities ``a``,
    ``b``, ``c`` and the rest. Edges may be there twice. The same seed gives the same edges.
    """

    scale: int
    """The number of bits of an id."""
    numbers: int
    a: float = 0.57
    b: float = 0.19
    c: float = 0.19
    noise: float = 0.0
    seed: int = 0
    vertices: int | None = None

    STRETCH = 1 << 16
    """Edges are drawn in stretches of so many, each from a random generator of its own."""

    def edges(self, numbers: Array) -> tuple[Array, Array]:
        sources, targets = [numbers[:0]], [numbers[:0]]
        stretches = numbers // self.STRETCH
        for stretch in np.unique(stretches):
            inside = numbers[stretches == stretch] % self.STRETCH
            source, target = self._stretch(int(stretch))
            sources.append(source[inside])
            targets.append(target[inside])
        return np.concatenate(sources), np.concatenate(targets)

    def _stretch(self, stretch: int) -> tuple[Array, Array]:
        random = np.random.default_rng([self.seed, stretch])
        source, target = np.zeros(self.STRETCH, np.int64), np.zeros(self.STRETCH, np.int64)
        for _ in range(self.scale):
            drawn = random.random(self.STRETCH)
            change = 1 + self.noise * (random.random(3) - 0.5) if self.noise else np.ones(3)
            a, b, c = np.array([self.a, self.b, self.c]) * change
            down = drawn >= a + b
            right = ((drawn >= a) & ~down) | (drawn >= a + b + c)
            source = source * 2 + down
            target = target * 2 + right
        return source, target
