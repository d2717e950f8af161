"""What a graph consists of, as Python functions see it: vertices, edges, triplets. Each is a tuple with names."""

from __future__ import annotations

import copyreg
import enum
from typing import Any, NamedTuple

from firesteel.durable.names import stored_as

__all__ = ["Edge", "EdgeDirection", "Triplet", "Vertex"]


class Vertex(NamedTuple):
    """A vertex: its id and its value.

    >>> Vertex(1, "a").get_value()
    'a'
    >>> Vertex(1, "a") == (1, "a")
    True
    """

    id: Any
    value: Any = None

    def get_id(self) -> Any:
        return self.id

    def get_value(self) -> Any:
        return self.value


class Edge(NamedTuple):
    """An edge from ``source`` to ``target``, and its value.

    >>> Edge(1, 2, 0.5).reverse()
    Edge(source=2, target=1, value=0.5)
    """

    source: Any
    target: Any
    value: Any = None

    def get_source(self) -> Any:
        return self.source

    def get_target(self) -> Any:
        return self.target

    def get_value(self) -> Any:
        return self.value

    def reverse(self) -> Edge:
        """The same edge in the other direction."""
        return Edge(self.target, self.source, self.value)


# Programs may keep them in state.


@stored_as("vertex")
def _vertex(id: Any, value: Any) -> Vertex:
    return Vertex(id, value)


@stored_as("edge")
def _edge(source: Any, target: Any, value: Any) -> Edge:
    return Edge(source, target, value)


copyreg.pickle(Vertex, lambda vertex: (_vertex, tuple(vertex)))
copyreg.pickle(Edge, lambda edge: (_edge, tuple(edge)))


class Triplet(NamedTuple):
    """An edge together with the values of both its vertices."""

    source: Any
    target: Any
    source_value: Any
    target_value: Any
    value: Any

    def get_src_vertex(self) -> Vertex:
        return Vertex(self.source, self.source_value)

    def get_trg_vertex(self) -> Vertex:
        return Vertex(self.target, self.target_value)

    def get_edge(self) -> Edge:
        return Edge(self.source, self.target, self.value)


class EdgeDirection(enum.Enum):
    """Which edges of a vertex are meant."""

    IN = "in"
    """Those that end at it."""
    OUT = "out"
    """Those that begin at it."""
    ALL = "all"
    """Both."""
