"""Iterations with Python functions on blocks, without Spark: three ways to the same distances, aggregators, errors."""

from __future__ import annotations

import importlib
import math
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from gellykit import Pairs, run_blocks, side_by_side, small_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T

from firesteel.engine.spark.shipped import Shipped
from firesteel.errors import ProgramError, SerializationError, TypeMismatchError
from firesteel.gelly import (
    Aggregator,
    ApplyFunction,
    ComputeFunction,
    GatherFunction,
    IterationConfiguration,
    LongSumAggregator,
    MessageCombiner,
    Neighbor,
    ScatterFunction,
    SumFunction,
    Vertex,
    gsa,
    pregel,
    spargel,
)
from firesteel.gelly.iteration import Types

NUMBERS = Types(T.LongType(), T.DoubleType(), T.DoubleType(), flipped=False, both=False)


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


class Send(ScatterFunction):
    def send_messages(self, vertex: Vertex) -> None:
        if vertex.value < math.inf:
            for edge in self.get_edges():
                self.send_message_to(edge.target, vertex.value + edge.value)


class Update(GatherFunction):
    def update_vertex(self, vertex: Vertex, in_messages: Any) -> None:
        least = min(in_messages)
        if least < vertex.value:
            self.set_new_vertex_value(least)


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


def counting() -> IterationConfiguration:
    parameters = IterationConfiguration()
    parameters.register_aggregator("changed", LongSumAggregator())
    return parameters


@settings(max_examples=20)
@given(graphs=st.lists(small_graphs(), min_size=1, max_size=5), cut=st.integers(1, 3), combined=st.booleans())
def test_distances(graphs: list[tuple[int, Pairs]], cut: int, combined: bool) -> None:
    whole = side_by_side(graphs)
    edges = [(u, v, d["weight"]) for u, v, d in whole.edges(data=True)]
    begin = {vertex: 0.0 if vertex == 0 else math.inf for vertex in whole}
    known = nx.single_source_dijkstra_path_length(whole, 0)
    wanted = {v: (known.get(v, math.inf),) for v in whole}
    plain = IterationConfiguration()
    for program, rounds in (
        (pregel._Program(Distances(), Least() if combined else None, NUMBERS, counting(), None), 100),
        (spargel.ScatterGatherProgram(Send(), Update(), 100, NUMBERS, plain, None), 101),
        (spargel.ScatterGatherProgram(Send(), Update(), 100, NUMBERS, counting(), None), 200),
        (gsa._Program((Further(), Nearer(), Take()), 100, NUMBERS, plain, None), 101),
    ):
        assert run_blocks(program, begin, edges, cut, rounds, by_source=True) == wanted


class Total(SumFunction):
    def sum(self, first: Any, second: Any) -> Any:
        return first + second


class Put(ApplyFunction):
    def apply(self, new_value: Any, current_value: Any) -> None:
        self.set_result(new_value)


@pytest.mark.parametrize("cut", [1, 4])
def test_what_several_blocks_gather_is_added_up(cut: int) -> None:
    edges = [(vertex, 10, 1.0) for vertex in range(10)]
    program = gsa._Program((Further(), Total(), Put()), 1, NUMBERS, IterationConfiguration(), None)
    found = run_blocks(program, {vertex: float(vertex) for vertex in range(11)}, edges, cut, 2, by_source=True)
    assert found[10] == (55.0,)


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
        self.bonus = sum(self.get_broadcast_set("bonus"))

    def send_messages(self, vertex: Vertex) -> None:
        self.get_iteration_aggregator("scattered").aggregate([f"{vertex.id}.{self.get_superstep_number()}"])
        seen = self.get_previous_iteration_aggregate("scattered")
        # Vertex d is nobody's neighbour, and vertices are not their own.
        self.send_message_to("d" if vertex.id == "c" else vertex.id, (self.bonus, seen, self.get_number_of_vertices()))


class Listen(GatherFunction):
    def update_vertex(self, vertex: Vertex, in_messages: Any) -> None:
        self.get_iteration_aggregator("scattered").aggregate([f"got {vertex.id}.{self.get_superstep_number()}"])
        self.set_new_vertex_value(vertex.value + sorted(map(str, in_messages), key=len))


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_aggregators_and_broadcast_sets(cut: int) -> None:
    parameters = IterationConfiguration()
    parameters.register_aggregator("scattered", Names())
    parameters.add_broadcast_set("bonus", [4, 5])
    types = Types(T.StringType(), T.ArrayType(T.StringType()), T.LongType(), flipped=False, both=False)
    program = spargel.ScatterGatherProgram(Tell(), Listen(), 2, types, parameters, 3)
    found = run_blocks(program, {"a": ["-"], "c": ["-"], "d": ["-"]}, [("a", "c", 1)], cut, 4, by_source=True)
    # What all vertices gave in the first superstep, scattering and gathering. Vertex c got nothing, so
    # it sends nothing in the second.
    first = "['a.1', 'c.1', 'd.1', 'got a.1', 'got d.1']"
    assert found == {
        "a": (["-", "(9, None, 3)", f"(9, {first}, 3)"],),
        "c": (["-"],),
        "d": (["-", "(9, None, 3)", "(9, None, 3)", f"(9, {first}, 3)"],),
    }


class Wrong(ComputeFunction):
    def __init__(self, what: str) -> None:
        self.what = what

    def compute(self, vertex: Vertex, messages: Any) -> None:
        if self.what == "value":
            self.set_new_vertex_value("far")
        elif self.what == "target":
            self.send_message_to(1000, 1)
        elif self.what == "combiner":
            self.send_message_to_all_neighbors(1)
            self.send_message_to_all_neighbors(2)
        else:
            self.get_iteration_aggregator("sum")


class Silent(MessageCombiner):
    def combine_messages(self, messages: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        ("value", TypeMismatchError, r"^set_new_vertex_value\(\) should give double, got 'far' \(str\)\.$"),
        ("target", ProgramError, r"^A message was sent to vertex 1000, but there is no such vertex\.$"),
        ("aggregator", ProgramError, r"^There is no aggregator 'sum'; register_aggregator\(\) of the iteration's"),
        ("combiner", ProgramError, r"^Silent\.combine_messages\(\) should give one message, .*, got 0\.$"),
    ],
)
def test_functions_that_go_wrong(what: str, error: type[Exception], text: str) -> None:
    combiner = Silent() if what == "combiner" else None
    program = pregel._Program(Wrong(what), combiner, NUMBERS, IterationConfiguration(), None)
    with pytest.raises(error, match=text):
        run_blocks(program, {1: 0.0, 2: 0.0}, [(1, 2, 1.0)], 1, 3, by_source=True)


def test_functions_travel_with_the_places_of_their_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker does not look for modules where the driver does, so it is told before the function is unpickled."""
    (tmp_path / "graph_helpers.py").write_text("def twice(value):\n    return 2 * value\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    function = importlib.import_module("graph_helpers").twice
    pickled = pickle.dumps(Shipped(function, (str(tmp_path),), "A function of a graph"))
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(tmp_path)])
    monkeypatch.delitem(sys.modules, "graph_helpers")
    assert pickle.loads(pickled)(21) == 42


def test_a_function_that_cannot_travel() -> None:
    lock = threading.Lock()
    with pytest.raises(SerializationError, match=r"^A function of a graph cannot travel to workers: .*lock"):
        pickle.dumps(Shipped(lambda: lock, (), "A function of a graph"))
