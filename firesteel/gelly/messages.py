"""Python functions in blocks: what they see of their iteration, and how their messages are collected and delivered."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import types as T

from firesteel.errors import ProgramError, short_repr
from firesteel.gelly.blocks import Array, Block
from firesteel.gelly.configuration import Aggregator
from firesteel.gelly.elements import Edge
from firesteel.gelly.hashing import spark_hash
from firesteel.gelly.values import from_column

__all__ = ["BlockEdges", "Degrees", "IterationContext", "IterationFunction", "Outgoing", "SendingFunction", "received"]


class IterationContext:
    """What a function may ask about the superstep it is in."""

    def __init__(
        self,
        superstep: int,
        aggregators: dict[str, Aggregator],
        previous: dict[str, Any],
        broadcast: dict[str, list[Any]],
        vertices: int | None,
    ) -> None:
        self.superstep = superstep
        self.aggregators = aggregators
        self.previous = previous
        self.broadcast = broadcast
        self.vertices = vertices


class IterationFunction(ABC):
    """What functions of all iterations have. They are copied to the workers for every superstep."""

    _context: IterationContext

    def pre_superstep(self) -> None:  # noqa: B027 - optional to override
        """Called before the vertices of a block, in every superstep."""

    def post_superstep(self) -> None:  # noqa: B027 - optional to override
        """Called after them."""

    def get_superstep_number(self) -> int:
        """1 for the first."""
        return self._context.superstep

    def get_iteration_aggregator(self, name: str) -> Aggregator:
        """What was registered under this name, to be given values."""
        found: Aggregator = _named(self._context.aggregators, name, "aggregator", "register_aggregator()")
        return found

    def get_previous_iteration_aggregate(self, name: str) -> Any:
        """What all blocks gave it in the superstep before; None in the first."""
        _named(self._context.aggregators, name, "aggregator", "register_aggregator()")
        return self._context.previous.get(name)

    def get_broadcast_set(self, name: str) -> list[Any]:
        """The rows that were given under this name."""
        return list(_named(self._context.broadcast, name, "broadcast set", "add_broadcast_set()"))

    def get_number_of_vertices(self) -> int:
        """How many vertices the graph has, with ``set_opt_num_vertices(True)``; -1 otherwise."""
        return -1 if self._context.vertices is None else self._context.vertices


def _named(known: dict[str, Any], name: str, what: str, method: str) -> Any:
    if name not in known:
        raise ProgramError(f"There is no {what} {name!r}; {method} of the iteration's configuration makes one.")
    return known[name]


@dataclass(frozen=True)
class Degrees:
    """How many edges end and begin at each of a block's vertices."""

    incoming: list[int]
    outgoing: list[int]


class BlockEdges:
    """The edges of a block's vertices, made into objects where a function asks for them."""

    def __init__(self, block: Block, id_type: T.DataType, edge_type: T.DataType, flipped: bool, both: bool) -> None:
        edges = block.adjacency
        self.ids = from_column(block.ids, id_type)
        self.targets = from_column(edges.targets, id_type)
        self.places: list[int] = edges.place.tolist()
        counts = _offsets(edges.source, block.size)
        self.offsets: list[int] = counts.tolist()
        self._values = from_column(edges.values, edge_type)
        self._flipped, self._both = flipped, both

    def of(self, vertex: int) -> Iterator[Edge]:
        """The edges of a vertex, as they are in the graph."""
        own = self.ids[vertex]
        for edge in range(self.offsets[vertex], self.offsets[vertex + 1]):
            yield self.edge(own, edge)

    def edge(self, own: Any, edge: int) -> Edge:
        other = self.targets[self.places[edge]]
        value = self._values[edge]
        flipped = self._flipped
        if self._both:
            value, flipped = value
        return Edge(other, own, value) if flipped else Edge(own, other, value)

    def value(self, edge: int) -> Any:
        value = self._values[edge]
        return value[0] if self._both else value


def _offsets(source: Array, size: int) -> Array:
    return np.searchsorted(source, np.arange(size + 1))


class Outgoing:
    """The messages that a block sends in a superstep."""

    def __init__(
        self, block: Block, targets: list[Any], id_type: T.DataType, combine: Callable[[list[Any]], Any] | None
    ):
        self._block = block
        self._targets = targets
        self._combine = combine
        self._id_type = id_type
        self._by_place: dict[int, list[Any]] = {}
        self._direct: dict[Any, list[Any]] = {}
        self._known: dict[Any, int] | None = None
        self.sent = False

    def to_place(self, place: int, message: Any) -> None:
        self.sent = True
        known = self._by_place.get(place)
        if known is None:
            self._by_place[place] = [message]
        else:
            known.append(message)

    def to_vertex(self, target: Any, message: Any) -> None:
        if self._known is None:
            self._known = {target: place for place, target in enumerate(self._targets)}
        place = self._known.get(target)
        if place is not None:
            self.to_place(place, message)
            return
        self.sent = True
        self._direct.setdefault(target, []).append(message)

    def outbox(self) -> dict[int, Any]:
        """For each block: messages by place in its part of the list of targets, and others by id."""
        combine = self._combine
        starts: list[int] = self._block.adjacency.starts.tolist()
        found: dict[int, tuple[list[int], list[list[Any]], list[tuple[Any, list[Any]]]]] = {}
        block = 0
        for place in sorted(self._by_place):
            while starts[block + 1] <= place:
                block += 1
            messages = self._by_place[place]
            if combine is not None and len(messages) > 1:
                messages = [combine(messages)]
            places, lists, _ = found.setdefault(block, ([], [], []))
            places.append(place - starts[block])
            lists.append(messages)
        for target, messages in self._direct.items():
            if combine is not None and len(messages) > 1:
                messages = [combine(messages)]
            number = spark_hash(target, self._id_type) % (len(starts) - 1)
            found.setdefault(number, ([], [], []))[2].append((target, messages))
        return dict(found)


class SendingFunction(IterationFunction):
    """What functions have that send messages."""

    _edges: BlockEdges
    _outgoing: Outgoing
    _vertex: int

    def get_edges(self) -> Iterator[Edge]:
        """The edges that the vertex sends messages along, as they are in the graph."""
        return self._edges.of(self._vertex)

    def send_message_to_all_neighbors(self, message: Any) -> None:
        """Sends a message along each edge."""
        edges = self._edges
        for place in edges.places[edges.offsets[self._vertex] : edges.offsets[self._vertex + 1]]:
            self._outgoing.to_place(place, message)

    def send_message_to(self, target: Any, message: Any) -> None:
        """Sends a message to any vertex."""
        self._outgoing.to_vertex(target, message)


def received(block: Block, ids: list[Any], inbox: dict[int, Any]) -> dict[int, list[Any]]:
    """The messages for each vertex that has some, by its number. They come in the order of blocks."""
    found: dict[int, list[Any]] = {}
    numbers: dict[Any, int] | None = None
    for sender in sorted(inbox):
        places, lists, direct = inbox[sender]
        if places:
            for number, messages in zip(block.routes[sender][places].tolist(), lists, strict=True):
                found.setdefault(number, []).extend(messages)
        for target, messages in direct:
            if numbers is None:
                numbers = {one: number for number, one in enumerate(ids)}
            if target not in numbers:
                raise ProgramError(f"A message was sent to vertex {short_repr(target)}, but there is no such vertex.")
            found.setdefault(numbers[target], []).extend(messages)
    return found
