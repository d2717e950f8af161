"""Gather-sum-apply iterations: what neighbours give is added up, and applied to the vertex."""

from __future__ import annotations

from abc import abstractmethod
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from firesteel.gelly.configuration import IterationConfiguration
from firesteel.gelly.iteration import Types, bind, check_iterations, run_functions
from firesteel.gelly.messages import BlockEdges, IterationFunction, Outgoing
from firesteel.gelly.spargel import ScatterGatherConfiguration, ScatterGatherRounds

if TYPE_CHECKING:
    from firesteel.gelly.graph import Graph

__all__ = ["ApplyFunction", "GSAConfiguration", "GatherFunction", "Neighbor", "SumFunction", "run_gather_sum_apply"]


class Neighbor(NamedTuple):
    """What a vertex sees of a neighbour: its value and that of the edge."""

    neighbor_value: Any
    edge_value: Any

    def get_neighbor_value(self) -> Any:
        return self.neighbor_value

    def get_edge_value(self) -> Any:
        return self.edge_value


class GSAConfiguration(ScatterGatherConfiguration):
    """How a gather-sum-apply iteration runs. With ``EdgeDirection.OUT`` a vertex gathers from the sources of the edges
    that end there: values flow along edges."""


class GatherFunction(IterationFunction):
    """What a vertex gathers from a neighbour; asked in the first superstep for all, later for those that changed."""

    @abstractmethod
    def gather(self, neighbor: Neighbor) -> Any: ...


class SumFunction(IterationFunction):
    """Adds up two values that were gathered. It has to be associative and commutative."""

    @abstractmethod
    def sum(self, first: Any, second: Any) -> Any: ...


class ApplyFunction(IterationFunction):
    """Gives a vertex its new value, with ``set_result``; without it the vertex stays as it is."""

    _new: list[Any]

    @abstractmethod
    def apply(self, new_value: Any, current_value: Any) -> None: ...

    def set_result(self, result: Any) -> None:
        self._new.append(result)


class _Program(ScatterGatherRounds):
    def __init__(
        self,
        functions: tuple[GatherFunction, SumFunction, ApplyFunction],
        maximum: int,
        types: Types,
        parameters: IterationConfiguration,
        vertices: int | None,
    ) -> None:
        super().__init__(maximum, types, parameters, vertices)
        self.gather_function, self.sum_function, self.apply_function = functions

    def combine(self, messages: list[Any]) -> Any:
        return reduce(self.sum_function.sum, messages)

    def scattered(
        self, edges: BlockEdges, values: list[Any], active: list[int], outgoing: Outgoing, context: Any
    ) -> None:
        gather = self.gather_function
        bind(gather, context)
        bind(self.sum_function, context)
        gather.pre_superstep()
        self.sum_function.pre_superstep()
        offsets, places, send = edges.offsets, edges.places, outgoing.to_place
        for vertex in active:
            value = values[vertex]
            for edge in range(offsets[vertex], offsets[vertex + 1]):
                send(places[edge], gather.gather(Neighbor(value, edges.value(edge))))
        gather.post_superstep()

    def gathered(self, edges: BlockEdges, values: list[Any], messages: dict[int, list[Any]], context: Any) -> list[int]:
        apply, changed = self.apply_function, []
        bind(apply, context)
        bind(self.sum_function, context)
        apply.pre_superstep()
        for vertex, own in messages.items():
            apply._new = []
            apply.apply(self.combine(own), values[vertex])
            if apply._new:
                values[vertex] = apply._new[-1]
                changed.append(vertex)
        apply.post_superstep()
        self.sum_function.post_superstep()
        return changed


def run_gather_sum_apply(
    graph: Graph,
    gather: GatherFunction,
    sum: SumFunction,
    apply: ApplyFunction,
    max_iterations: int,
    parameters: GSAConfiguration | None,
) -> Graph:
    method = "run_gather_sum_apply_iteration"
    check_iterations(gather, GatherFunction, max_iterations, method)
    check_iterations(sum, SumFunction, max_iterations, method)
    check_iterations(apply, ApplyFunction, max_iterations, method)
    given = parameters or GSAConfiguration()
    return run_functions(
        graph,
        lambda types, own, vertices: _Program((gather, sum, apply), max_iterations, types, own, vertices),
        lambda program: program.rounds,
        given,
        given.get_direction(),
    )
