"""Vertex-centric iterations (Pregel): each vertex gets messages, changes its value, sends messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from firesteel.errors import ProgramError
from firesteel.gelly.blocks import Block
from firesteel.gelly.configuration import IterationConfiguration
from firesteel.gelly.elements import Vertex
from firesteel.gelly.iteration import FunctionProgram, Types, bind, check_iterations, run_functions
from firesteel.gelly.messages import Outgoing, SendingFunction, received
from firesteel.gelly.supersteps import Outcome

if TYPE_CHECKING:
    from firesteel.gelly.graph import Graph

__all__ = ["ComputeFunction", "MessageCombiner", "VertexCentricConfiguration", "run_vertex_centric"]


class VertexCentricConfiguration(IterationConfiguration):
    """How a vertex-centric iteration runs."""


class ComputeFunction(SendingFunction):
    """What a vertex does in a superstep. In the first it is called for all vertices, later for those with messages.

    The iteration ends when no messages are sent.

    ::

        class Distances(ComputeFunction):
            def compute(self, vertex, messages):
                distance = min(messages, default=0.0 if vertex.id == 1 else math.inf)
                if distance < vertex.value:
                    self.set_new_vertex_value(distance)
                    for edge in self.get_edges():
                        self.send_message_to(edge.target, distance + edge.value)
    """

    _new: list[Any]

    @abstractmethod
    def compute(self, vertex: Vertex, messages: Iterator[Any]) -> None: ...

    def set_new_vertex_value(self, value: Any) -> None:
        """The vertex has this value from now on."""
        self._new.append(value)


class MessageCombiner(ABC):
    """Puts messages for the same vertex together before they are sent: gives one that stands for all.

    ::

        class Least(MessageCombiner):
            def combine_messages(self, messages):
                self.send_combined_message(min(messages))
    """

    _combined: list[Any]

    @abstractmethod
    def combine_messages(self, messages: Iterable[Any]) -> Any: ...

    def send_combined_message(self, message: Any) -> None:
        """To be called once; the message may be returned instead."""
        self._combined.append(message)

    def _combine(self, messages: list[Any]) -> Any:
        self._combined = []
        returned = self.combine_messages(messages)
        if returned is not None:
            self._combined.append(returned)
        if len(self._combined) != 1:
            raise ProgramError(
                f"{type(self).__name__}.combine_messages() should give one message, by send_combined_message() or as "
                f"its result, got {len(self._combined)}."
            )
        return self._combined[0]


class _Program(FunctionProgram):
    def __init__(
        self,
        compute: ComputeFunction,
        combiner: MessageCombiner | None,
        types: Types,
        parameters: IterationConfiguration,
        vertices: int | None,
    ) -> None:
        super().__init__(types, parameters, vertices)
        self.compute, self.combiner = compute, combiner

    def step(self, block: Block, state: Any, inbox: dict[int, Any], superstep: int, shared: Any) -> Outcome:
        values, _ = state
        compute = self.compute
        edges = self.edges(block)
        combine = None if self.combiner is None else self.combiner._combine
        outgoing = Outgoing(block, edges.targets, self.types.id, combine)
        bind(compute, self.context(superstep, shared))
        compute._edges, compute._outgoing = edges, outgoing
        messages = received(block, edges.ids, inbox)
        compute.pre_superstep()
        for number in range(block.size) if superstep == 1 else messages:
            compute._vertex, compute._new = number, []
            compute.compute(Vertex(edges.ids[number], values[number]), iter(messages.get(number, ())))
            if compute._new:
                values[number] = compute._new[-1]
        compute.post_superstep()
        return Outcome((values, []), outgoing.outbox(), (self.partial_aggregates(), outgoing.sent))


def run_vertex_centric(
    graph: Graph,
    compute: ComputeFunction,
    combiner: MessageCombiner | None,
    max_iterations: int,
    parameters: VertexCentricConfiguration | None,
) -> Graph:
    check_iterations(compute, ComputeFunction, max_iterations, "run_vertex_centric_iteration")
    if combiner is not None and not isinstance(combiner, MessageCombiner):
        check_iterations(combiner, MessageCombiner, max_iterations, "run_vertex_centric_iteration")
    return run_functions(
        graph,
        lambda types, given, vertices: _Program(compute, combiner, types, given, vertices),
        lambda program: max_iterations,
        parameters or VertexCentricConfiguration(),
    )
