"""Iterations with Python functions on Spark. What they mean is tested without it, in unit/test_graph_functions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from pyspark.sql import DataFrame

from firesteel.errors import JobExecutionError, ProgramError
from firesteel.gelly import (
    ApplyFunction,
    ComputeFunction,
    EdgeDirection,
    GatherFunction,
    Graph,
    GSAConfiguration,
    LongSumAggregator,
    MessageCombiner,
    Neighbor,
    ScatterFunction,
    ScatterGatherConfiguration,
    SumFunction,
    Vertex,
    VertexCentricConfiguration,
    gsa,
    supersteps,
)

TREES = nx.gnp_random_graph(60, 0.15, seed=3, directed=True)
EDGES = [(u, v, float((u * 7 + v) % 5 + 1)) for u, v in TREES.edges()]
WEIGHTED = nx.DiGraph()
WEIGHTED.add_nodes_from(range(60))
WEIGHTED.add_weighted_edges_from(EDGES)


@pytest.fixture(scope="module")
def graph(env: Any) -> Graph:
    vertices = [(vertex, 0.0 if vertex == 0 else math.inf) for vertex in WEIGHTED]
    return Graph.from_collection(vertices, EDGES, env=env).cache()


def values(graph: Graph) -> dict[Any, Any]:
    return {row[0]: row[1] for row in graph.get_vertices().collect()}


def distances(turned: bool = False) -> dict[Any, float]:
    known = nx.single_source_dijkstra_path_length(WEIGHTED.reverse() if turned else WEIGHTED, 0)
    return {vertex: known.get(vertex, math.inf) for vertex in WEIGHTED}


class Distances(ComputeFunction):
    def compute(self, vertex: Vertex, messages: Any) -> None:
        distance = min(messages, default=vertex.value)
        if distance < vertex.value or (self.get_superstep_number() == 1 and distance == 0):
            self.set_new_vertex_value(distance)
            self.get_iteration_aggregator("changed").aggregate(1)
            for edge in self.get_edges():
                self.send_message_to(edge.target, distance + edge.value)


class Least(MessageCombiner):
    def combine_messages(self, messages: Any) -> None:
        self.send_combined_message(min(messages))


def test_vertex_centric(graph: Graph) -> None:
    parameters = VertexCentricConfiguration()
    parameters.set_parallelism(3)
    parameters.register_aggregator("changed", LongSumAggregator())
    assert values(graph.run_vertex_centric_iteration(Distances(), Least(), 100, parameters)) == distances()


class Send(ScatterFunction):
    def send_messages(self, vertex: Vertex) -> None:
        if vertex.value < math.inf:
            for edge in self.get_edges():
                other = edge.target if edge.source == vertex.id else edge.source
                self.send_message_to(other, vertex.value + edge.value)


class Update(GatherFunction):
    def update_vertex(self, vertex: Vertex, in_messages: Any) -> None:
        least = min(in_messages)
        if least < vertex.value:
            self.set_new_vertex_value(least)


def test_scatter_gather_along_all_edges(graph: Graph) -> None:
    parameters = ScatterGatherConfiguration()
    parameters.set_parallelism(2)
    parameters.set_direction(EdgeDirection.ALL)
    both = nx.DiGraph()
    for u, v, weight in [*EDGES, *((v, u, weight) for u, v, weight in EDGES)]:
        both.add_edge(u, v, weight=min(weight, both.get_edge_data(u, v, {"weight": math.inf})["weight"]))
    known = nx.single_source_dijkstra_path_length(both, 0)
    found = values(graph.run_scatter_gather_iteration(Send(), Update(), 100, parameters))
    assert found == {vertex: known.get(vertex, math.inf) for vertex in WEIGHTED}


class SendDegrees(ScatterFunction):
    def send_messages(self, vertex: Vertex) -> None:
        self.send_message_to_all_neighbors(1000 * self.get_in_degree() + self.get_out_degree())


class AddDegrees(GatherFunction):
    def update_vertex(self, vertex: Vertex, in_messages: Any) -> None:
        own = 1000 * self.get_in_degree() + self.get_out_degree()
        self.set_new_vertex_value(float(1_000_000 * own + sum(in_messages)))


def test_functions_may_ask_for_degrees(graph: Graph) -> None:
    parameters = ScatterGatherConfiguration()
    parameters.set_parallelism(2)
    assert not parameters.is_opt_degrees()
    parameters.set_opt_degrees(True)
    found = values(graph.run_scatter_gather_iteration(SendDegrees(), AddDegrees(), 1, parameters))

    def both(vertex: Any) -> int:
        return int(1000 * WEIGHTED.in_degree[vertex] + WEIGHTED.out_degree[vertex])

    for vertex, value in found.items():
        near = list(WEIGHTED.predecessors(vertex))
        # Who gets no message keeps the value.
        kept = 0.0 if vertex == 0 else math.inf
        assert value == (1_000_000 * both(vertex) + sum(map(both, near)) if near else kept)


class Further(gsa.GatherFunction):
    def gather(self, neighbor: Neighbor) -> Any:
        return neighbor.neighbor_value + neighbor.edge_value


class Nearer(SumFunction):
    def sum(self, first: Any, second: Any) -> Any:
        return min(first, second)


class Take(ApplyFunction):
    def apply(self, new_value: Any, current_value: Any) -> None:
        if new_value < current_value:
            self.set_result(new_value)


def test_gather_sum_apply(graph: Graph) -> None:
    parameters = GSAConfiguration()
    parameters.set_parallelism(2)
    parameters.set_direction(EdgeDirection.IN)
    turned = values(graph.run_gather_sum_apply_iteration(Further(), Nearer(), Take(), 100, parameters))
    assert turned == distances(turned=True)


def test_reliable_checkpoints(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the third superstep left is lost, as with its executor; the iteration goes on from the second."""
    collect, asked = supersteps.collect_stats, []

    def lose_one(frame: DataFrame) -> list[Any]:
        stats = collect(frame)
        asked.append(frame)
        if len(asked) == 3:
            supersteps.release(frame)
        return stats

    monkeypatch.setattr(supersteps, "collect_stats", lose_one)
    graph.get_context().sparkContext.setCheckpointDir(str(tmp_path))
    parameters = ScatterGatherConfiguration()
    parameters.set_parallelism(2)
    parameters.set_reliable_checkpoints(True)
    parameters.set_checkpoint_interval(2)
    assert values(graph.run_scatter_gather_iteration(Send(), Update(), 100, parameters)) == distances()
    assert list(tmp_path.rglob("part-*"))
    assert len(asked) > 3
    asked.clear()
    parameters.set_reliable_checkpoints(False)
    with pytest.raises(Exception, match="Checkpoint block"):
        graph.run_scatter_gather_iteration(Send(), Update(), 100, parameters)


def test_nothing_stays_in_memory(graph: Graph) -> None:
    """Blocks and supersteps are let go; the result is kept, and the graph that was cached before."""
    context = graph.get_context().sparkContext
    before = set(context._jsc.getPersistentRDDs())
    result = graph.run_gather_sum_apply_iteration(Further(), Nearer(), Take(), 100)
    assert len(set(context._jsc.getPersistentRDDs()) - before) == 1
    assert result.number_of_vertices() == 60


class Wrong(ComputeFunction):
    def compute(self, vertex: Vertex, messages: Any) -> None:
        print(1 / 0)


def test_functions_that_go_wrong(graph: Graph) -> None:
    with pytest.raises(
        JobExecutionError, match=r"^ZeroDivisionError: .* \(test_graph_iterations.py, line \d+, in comp"
    ):
        graph.run_vertex_centric_iteration(Wrong(), None, 3)
    with pytest.raises(ProgramError, match=r"^run_vertex_centric_iteration\(\) needs a ComputeFunction, got"):
        graph.run_vertex_centric_iteration(lambda vertex: None, None, 3)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="needs a maximum of at least 1 iteration, got 0"):
        graph.run_scatter_gather_iteration(Send(), Update(), 0)
