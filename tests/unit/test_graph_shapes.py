"""Generated graphs, without Spark: the same as networkx's, whatever part of them is made at a time."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.errors import ProgramError
from firesteel.gelly.generators import CompleteGraph, GridGraph, RMatGraph
from firesteel.gelly.library.components import components
from firesteel.gelly.shapes import Complete, Cycle, Empty, Grid, Path, RMat, Shape, Star


def pairs(shape: Shape) -> list[tuple[int, int]]:
    source, target = shape.edges(np.arange(shape.numbers))
    return sorted(zip(source.tolist(), target.tolist(), strict=True))


def both_ways(graph: nx.Graph) -> list[tuple[int, int]]:
    return sorted(nx.DiGraph(graph).edges())


@settings(max_examples=30)
@given(size=st.integers(2, 9))
def test_plain_shapes(size: int) -> None:
    assert pairs(Complete(size)) == both_ways(nx.complete_graph(size))
    assert pairs(Star(size)) == both_ways(nx.star_graph(size - 1))
    assert pairs(Path(size)) == both_ways(nx.path_graph(size))
    assert pairs(Cycle(size)) == both_ways(nx.cycle_graph(size))
    assert pairs(Empty(size)) == []


@settings(max_examples=40)
@given(dimensions=st.lists(st.tuples(st.integers(2, 4), st.booleans()), min_size=1, max_size=3))
def test_grids(dimensions: list[tuple[int, bool]]) -> None:
    sizes, wraps = [size for size, _ in dimensions], [wrap for _, wrap in dimensions]
    wanted = nx.grid_graph(dim=sizes[::-1], periodic=wraps[::-1])
    number = {place: int(np.ravel_multi_index(np.atleast_1d(place), sizes)) for place in wanted}
    assert pairs(Grid(tuple(dimensions))) == both_ways(nx.relabel_nodes(wanted, number))


def test_any_part_of_a_random_graph_is_the_same() -> None:
    shape = RMat(10, 100_000, seed=5)
    source, target = shape.edges(np.arange(100_000))
    some = np.array([3, 70_000, 99_999])
    assert [part.tolist() for part in shape.edges(some)] == [source[some].tolist(), target[some].tolist()]
    assert source.max() < 1024
    # A quarter of the ids has most edges, which is what the constants are for.
    assert 0.7 < np.mean(source < 512) < 0.8
    assert not np.array_equal(source, RMat(10, 100_000, seed=6).edges(np.arange(100_000))[0])


@given(edges=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
def test_components(edges: list[tuple[int, int]]) -> None:
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(31))
    first, second = (np.array([edge[end] for edge in edges], np.int64) for end in (0, 1))
    wanted = {vertex: min(part) for part in nx.connected_components(graph) for vertex in part}
    assert dict(enumerate(components(first, second, 31).tolist())) == wanted


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ProgramError, match="vertices of a CompleteGraph should be a whole number from 2 on, got 1"):
        CompleteGraph(1)
    with pytest.raises(ProgramError, match="A GridGraph needs dimensions"):
        GridGraph().shape()
    with pytest.raises(ProgramError, match=r"from 0 on and up to 1 in all, got 0\.9, 0\.2 and 0\.1"):
        RMatGraph(8, 8).set_constants(0.9, 0.2, 0.1)
