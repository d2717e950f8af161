"""Scatter-gather iterations: vertices send messages (scatter), and those that get some change their values (gather)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from firesteel.gelly.blocks import Block
from firesteel.gelly.configuration import IterationConfiguration
from firesteel.gelly.elements import EdgeDirection, Vertex
from firesteel.gelly.iteration import FunctionProgram, Types, bind, check_iterations, run_functions
from firesteel.gelly.messages import BlockEdges, Degrees, IterationFunction, Outgoing, SendingFunction, received
from firesteel.gelly.supersteps import Outcome

if TYPE_CHECKING:
    from firesteel.gelly.graph import Graph

__all__ = ["GatherFunction", "ScatterFunction", "ScatterGatherConfiguration", "run_scatter_gather"]


class ScatterGatherConfiguration(IterationConfiguration):
    """How a scatter-gather iteration runs."""

    def __init__(self) -> None:
        super().__init__()
        self._direction = EdgeDirection.OUT

    def set_direction(self, direction: EdgeDirection) -> None:
        """Along which edges messages are sent: those that begin at a vertex, those that end there, or all."""
        self._direction = EdgeDirection(direction)

    def get_direction(self) -> EdgeDirection:
        return self._direction

    def set_opt_degrees(self, wanted: bool) -> None:
        """Whether functions may ask for a vertex's degrees: that costs a count of all edges, once."""
        self._degrees = wanted

    def is_opt_degrees(self) -> bool:
        return self._degrees


class _VertexFunction(IterationFunction):
    """What both functions know of the vertex that they are called for."""

    _degrees_of: Degrees | None
    _vertex: int

    def get_in_degree(self) -> int:
        """How many edges of the graph end at the vertex, with ``set_opt_degrees(True)``; -1 otherwise."""
        return -1 if self._degrees_of is None else self._degrees_of.incoming[self._vertex]

    def get_out_degree(self) -> int:
        """How many edges of the graph begin at the vertex, with ``set_opt_degrees(True)``; -1 otherwise."""
        return -1 if self._degrees_of is None else self._degrees_of.outgoing[self._vertex]


class ScatterFunction(_VertexFunction, SendingFunction):
    """What a vertex sends: all of them in the first superstep, later those whose value was set in the one before."""

    @abstractmethod
    def send_messages(self, vertex: Vertex) -> None: ...


class GatherFunction(_VertexFunction):
    """What a vertex makes of its messages. The iteration ends when no vertex gets a new value."""

    _new: list[Any]

    @abstractmethod
    def update_vertex(self, vertex: Vertex, in_messages: Iterator[Any]) -> None: ...

    def set_new_vertex_value(self, value: Any) -> None:
        """The vertex has this value from now on, and sends messages in the next superstep."""
        self._new.append(value)


class ScatterGatherRounds(FunctionProgram):
    """A round of blocks gathers for one superstep and scatters for the next, so a superstep is one job of Spark.

    Where aggregators are registered it takes two: a vertex that scatters may ask for what was gathered everywhere.
    State: values, and the numbers of vertices that are to scatter.
    """

    def __init__(
        self,
        maximum: int,
        types: Types,
        parameters: IterationConfiguration,
        vertices: int | None,
    ) -> None:
        super().__init__(types, parameters, vertices)
        self.maximum = maximum
        self._previous: dict[str, Any] = {}
        self._degrees_of: Degrees | None = None
        self._half: list[dict[str, Any]] = []

    @property
    def rounds(self) -> int:
        return 2 * self.maximum if self.has_aggregators else self.maximum + 1

    def step(self, block: Block, state: Any, inbox: dict[int, Any], superstep: int, shared: Any) -> Outcome:
        values, active = state
        edges = self.edges(block)
        self._degrees_of = self.degrees(block)
        outgoing = Outgoing(block, edges.targets, self.types.id, self.combine)
        alone = self.has_aggregators
        gathers = superstep % 2 == 0 if alone else superstep > 1
        scatters = superstep % 2 == 1 if alone else superstep <= self.maximum
        number = (superstep + 1) // 2 if alone else superstep
        context = self.context(number, shared)
        if gathers:
            context.superstep = number if alone else number - 1
            active = self.gathered(edges, values, received(block, edges.ids, inbox), context)
        if scatters:
            context.superstep = number
            self.scattered(edges, values, active, outgoing, context)
        more = outgoing.sent if scatters else bool(active)
        return Outcome((values, active), outgoing.outbox(), (self.partial_aggregates(), more))

    combine: Any = None
    """Puts messages for the same vertex together, where a kind of iteration can."""

    @abstractmethod
    def gathered(self, edges: BlockEdges, values: list[Any], messages: dict[int, list[Any]], context: Any) -> list[int]:
        """Lets vertices take their messages. Returns those that have a new value."""

    @abstractmethod
    def scattered(
        self, edges: BlockEdges, values: list[Any], active: list[int], outgoing: Outgoing, context: Any
    ) -> None:
        """Lets the active vertices send."""

    def merge(self, stats: list[Any], superstep: int) -> tuple[Any, bool]:
        partials, more = [partial for partial, _ in stats], any(more for _, more in stats)
        if superstep % 2 == 1:
            # Gathering is part of the same superstep and sees what scattering saw.
            self._half = partials
        else:
            self._previous, self._half = self.merged_aggregates([*self._half, *partials]), []
        return self._previous, more


class ScatterGatherProgram(ScatterGatherRounds):
    """Rounds of a user's two functions."""

    def __init__(self, scatter: ScatterFunction, gather: GatherFunction, *given: Any) -> None:
        super().__init__(*given)
        self.scatter, self.gather = scatter, gather

    def gathered(self, edges: BlockEdges, values: list[Any], messages: dict[int, list[Any]], context: Any) -> list[int]:
        gather, changed = self.gather, []
        bind(gather, context)
        gather._degrees_of = self._degrees_of
        gather.pre_superstep()
        for vertex, own in messages.items():
            gather._vertex, gather._new = vertex, []
            gather.update_vertex(Vertex(edges.ids[vertex], values[vertex]), iter(own))
            if gather._new:
                values[vertex] = gather._new[-1]
                changed.append(vertex)
        gather.post_superstep()
        return changed

    def scattered(
        self, edges: BlockEdges, values: list[Any], active: list[int], outgoing: Outgoing, context: Any
    ) -> None:
        scatter = self.scatter
        bind(scatter, context)
        scatter._edges, scatter._outgoing, scatter._degrees_of = edges, outgoing, self._degrees_of
        scatter.pre_superstep()
        for vertex in active:
            scatter._vertex = vertex
            scatter.send_messages(Vertex(edges.ids[vertex], values[vertex]))
        scatter.post_superstep()


def run_scatter_gather(
    graph: Graph,
    scatter: ScatterFunction,
    gather: GatherFunction,
    max_iterations: int,
    parameters: ScatterGatherConfiguration | None,
) -> Graph:
    check_iterations(scatter, ScatterFunction, max_iterations, "run_scatter_gather_iteration")
    check_iterations(gather, GatherFunction, max_iterations, "run_scatter_gather_iteration")
    given = parameters or ScatterGatherConfiguration()
    return run_functions(
        graph,
        lambda types, own, vertices: ScatterGatherProgram(scatter, gather, max_iterations, types, own, vertices),
        lambda program: program.rounds,
        given,
        given.get_direction(),
    )
