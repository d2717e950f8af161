"""Iterations with Python functions: three ways to the same distances, aggregators, broadcast sets, convergence."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from firesteel.errors import JobExecutionError, ProgramError, TypeMismatchError
from firesteel.gelly import (
    Aggregator,
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
)
from firesteel.gelly.sessions import session_of

TREES = nx.gnp_random_graph(60, 0.06, seed=3, directed=True)
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
    # One superstep sends, the second one receives.
    near = values(graph.run_vertex_centric_iteration(Distances(), None, 2, parameters))
    one_edge = {v: WEIGHTED[0][v]["weight"] for v in WEIGHTED[0]}
    assert near == {v: 0.0 if v == 0 else one_edge.get(v, math.inf) for v in WEIGHTED}


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


def test_scatter_gather_in_all_directions(graph: Graph) -> None:
    parameters = ScatterGatherConfiguration()
    parameters.set_parallelism(2)
    assert values(graph.run_scatter_gather_iteration(Send(), Update(), 100, parameters)) == distances()
    parameters.set_direction(EdgeDirection.IN)
    assert values(graph.run_scatter_gather_iteration(Send(), Update(), 100, parameters)) == distances(turned=True)
    parameters.set_direction(EdgeDirection.ALL)
    both = nx.DiGraph()
    for u, v, weight in [*EDGES, *((v, u, weight) for u, v, weight in EDGES)]:
        both.add_edge(u, v, weight=min(weight, both.get_edge_data(u, v, {"weight": math.inf})["weight"]))
    known = nx.single_source_dijkstra_path_length(both, 0)
    found = values(graph.run_scatter_gather_iteration(Send(), Update(), 100, parameters))
    assert found == {vertex: known.get(vertex, math.inf) for vertex in WEIGHTED}


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
    assert values(graph.run_gather_sum_apply_iteration(Further(), Nearer(), Take(), 100, parameters)) == distances()
    parameters.set_direction(EdgeDirection.IN)
    turned = values(graph.run_gather_sum_apply_iteration(Further(), Nearer(), Take(), 100, parameters))
    assert turned == distances(turned=True)


class Names(Aggregator):
    """One that is not among those that come along."""

    def reset(self) -> None:
        self.names: set[str] = set()

    def aggregate(self, value: Any) -> None:
        self.names |= set(value)

    def get_aggregate(self) -> Any:
        return sorted(self.names)


class Tell(ScatterFunction):
    def pre_superstep(self) -> None:
        self.bonus = sum(row.value for row in self.get_broadcast_set("bonus"))

    def send_messages(self, vertex: Vertex) -> None:
        self.get_iteration_aggregator("scattered").aggregate([f"{vertex.id}.{self.get_superstep_number()}"])
        seen = self.get_previous_iteration_aggregate("scattered")
        # A vertex that is nobody's neighbour gets a message, too.
        self.send_message_to("d" if vertex.id == "c" else vertex.id, (self.bonus, seen, self.get_number_of_vertices()))


class Listen(GatherFunction):
    def update_vertex(self, vertex: Vertex, in_messages: Any) -> None:
        self.get_iteration_aggregator("scattered").aggregate([f"got {vertex.id}.{self.get_superstep_number()}"])
        self.set_new_vertex_value(vertex.value + [str(message) for message in in_messages])


def test_aggregators_and_broadcast_sets(env: Any) -> None:
    graph = Graph.from_collection([("a", ["-"]), ("c", ["-"]), ("d", ["-"])], [("a", "c")], env=env)
    parameters = ScatterGatherConfiguration()
    parameters.set_parallelism(2)
    parameters.set_opt_num_vertices(True)
    parameters.register_aggregator("scattered", Names())
    session = session_of(env)
    parameters.add_broadcast_set("bonus", session.createDataFrame([(4,), (5,)], "value int"))
    found = values(graph.run_scatter_gather_iteration(Tell(), Listen(), 2, parameters))
    # What all vertices gave in the first superstep, when they scattered and when they gathered.
    first = "['a.1', 'c.1', 'd.1', 'got a.1', 'got d.1']"
    assert found == {
        "a": ["-", "(9, None, 3)", f"(9, {first}, 3)"],
        "c": ["-"],
        "d": ["-", "(9, None, 3)", "(9, None, 3)", f"(9, {first}, 3)"],
    }


def test_reliable_checkpoints(graph: Graph, tmp_path: Path) -> None:
    graph.get_context().sparkContext.setCheckpointDir(str(tmp_path))
    parameters = ScatterGatherConfiguration()
    parameters.set_parallelism(2)
    parameters.set_reliable_checkpoints(True)
    parameters.set_checkpoint_interval(2)
    assert values(graph.run_scatter_gather_iteration(Send(), Update(), 100, parameters)) == distances()
    assert list(tmp_path.rglob("part-*"))


def test_nothing_stays_in_memory(graph: Graph) -> None:
    """Blocks and supersteps are let go; the result is kept, and the graph that was cached before."""
    context = graph.get_context().sparkContext
    before = set(context._jsc.getPersistentRDDs())
    result = graph.run_gather_sum_apply_iteration(Further(), Nearer(), Take(), 100)
    assert len(set(context._jsc.getPersistentRDDs()) - before) == 1
    assert result.number_of_vertices() == 60


class Wrong(ComputeFunction):
    def __init__(self, what: str) -> None:
        self.what = what

    def compute(self, vertex: Vertex, messages: Any) -> None:
        if self.what == "value":
            self.set_new_vertex_value("far")
        elif self.what == "target":
            self.send_message_to(1000, 1)
        elif self.what == "aggregator":
            self.get_iteration_aggregator("sum")
        else:
            print(1 / 0)


def test_functions_that_go_wrong(graph: Graph) -> None:
    def run(what: str) -> Graph:
        return graph.run_vertex_centric_iteration(Wrong(what), None, 3)

    with pytest.raises(TypeMismatchError, match=r"^set_new_vertex_value\(\) should give double, got 'far' \(str\)\.$"):
        run("value")
    with pytest.raises(ProgramError, match=r"^A message was sent to vertex 1000, but there is no such vertex\.$"):
        run("target")
    with pytest.raises(ProgramError, match=r"^There is no aggregator 'sum'; register_aggregator\(\)"):
        run("aggregator")
    with pytest.raises(JobExecutionError, match=r"^ZeroDivisionError: .* \(test_graph_iterations.py, line \d+"):
        run("division")
    with pytest.raises(ProgramError, match=r"^run_vertex_centric_iteration\(\) needs a ComputeFunction, got"):
        graph.run_vertex_centric_iteration(lambda vertex: None, None, 3)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="needs a maximum of at least 1 iteration, got 0"):
        graph.run_scatter_gather_iteration(Send(), Update(), 0)
