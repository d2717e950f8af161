"""Algorithms against networkx. Starting a job takes longer than a small graph, so an example is many graphs side by
side, each with ids of its own: one run of an algorithm checks all of them. What needs many supersteps or many examples
is in unit/test_graph_blocks, without Spark."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import pytest
from gellykit import Pairs, close, communities, hits, page_rank, side_by_side, small_graphs, spread_labels
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame

from firesteel.errors import ProgramError, TypeMismatchError
from firesteel.gelly import Graph
from firesteel.gelly.generators import GridGraph, PathGraph
from firesteel.gelly.library import (
    HITS,
    AdamicAdar,
    AverageClusteringCoefficient,
    CommunityDetection,
    ConnectedComponents,
    GlobalClusteringCoefficient,
    JaccardIndex,
    LabelPropagation,
    LocalClusteringCoefficient,
    PageRank,
    SingleSourceShortestPaths,
    TriangleCount,
    TriangleListing,
)


def values(frame: DataFrame) -> dict[Any, Any]:
    return {row[0]: row[1] if len(row) == 2 else tuple(row[1:]) for row in frame.collect()}


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(graphs=st.lists(small_graphs(), min_size=12, max_size=25))
def test_like_networkx(env: Any, graphs: list[tuple[int, Pairs]]) -> None:
    whole = side_by_side(graphs)
    rows = [(source, target, data["weight"]) for source, target, data in whole.edges(data=True)]
    graph = Graph.from_collection(
        [(vertex, vertex) for vertex in whole], rows, env=env, edge_value_type="double"
    ).cache()
    plain = nx.Graph(whole)
    plain.remove_edges_from(nx.selfloop_edges(plain))

    close(values(graph.run(PageRank(iterations=2).set_parallelism(3))), page_rank(whole, 2))

    parts = values(graph.run(ConnectedComponents(10)))
    assert parts == {vertex: min(part) for part in nx.weakly_connected_components(whole) for vertex in part}

    scores = values(graph.run(HITS(iterations=2).set_parallelism(2)))
    hubs, authorities = hits(whole, 2)
    close({vertex: score[0] for vertex, score in scores.items()}, hubs)
    close({vertex: score[1] for vertex, score in scores.items()}, authorities)

    assert values(graph.run(LabelPropagation(2).set_parallelism(2))) == spread_labels(whole, 2)
    found = values(graph.run(CommunityDetection(2, 0.5).set_parallelism(2)).get_vertices())
    assert found == communities(whole, 2, 0.5)

    triangles = {tuple(row) for row in graph.run(TriangleListing()).collect()}
    assert triangles == {tuple(sorted(c)) for c in nx.enumerate_all_cliques(plain) if len(c) == 3}
    local = values(graph.run(LocalClusteringCoefficient()))
    clustering = nx.clustering(plain)
    for vertex, (degree, _, score) in local.items():
        assert degree == plain.degree[vertex]
        assert math.isclose(score, clustering[vertex]) if degree > 1 else math.isnan(score)

    jaccard = {(row.vertex0, row.vertex1): row.score for row in graph.run(JaccardIndex()).collect()}
    wedges = {tuple(sorted(pair)) for v in plain for pair in nx_pairs(plain, v)}
    close(jaccard, {(u, v): score for u, v, score in nx.jaccard_coefficient(plain, wedges)})
    graph.unpersist()


def nx_pairs(plain: nx.Graph, vertex: Any) -> list[tuple[Any, Any]]:
    near = list(plain[vertex])
    return [(one, other) for one in near for other in near if one != other]


def test_whole_figures_of_a_graph(env: Any) -> None:
    known = nx.karate_club_graph()
    graph = Graph.from_collection(list(known.edges()), env=env).cache()
    assert graph.run(TriangleCount()) == sum(nx.triangles(known).values()) // 3
    assert math.isclose(graph.run(AverageClusteringCoefficient()), nx.average_clustering(known))
    assert math.isclose(graph.run(GlobalClusteringCoefficient()).score, nx.transitivity(known))
    found = {(row.vertex0, row.vertex1): row.score for row in graph.run(AdamicAdar()).collect()}
    close(found, {(u, v): score for u, v, score in nx.adamic_adar_index(known, found)})
    assert set(found) == {tuple(sorted(pair)) for v in known for pair in nx_pairs(known, v)}
    graph.unpersist()


def test_components_of_a_long_path_take_few_jobs(env: Any) -> None:
    """Messages would need a thousand supersteps. The second way is the one for graphs that no worker could hold."""
    graph = PathGraph(1000, env=env).generate()
    for algorithm in (ConnectedComponents(), ConnectedComponents(edges_in_one_task=0)):
        assert {row.value for row in graph.run(algorithm).collect()} == {0}
    named = Graph.from_collection([("b", "x"), ("a", "y"), ("c", "z")], [("a", "b")], env=env)
    assert values(named.run(ConnectedComponents())) == {"a": "x", "b": "x", "c": "z"}


def test_ids_and_labels_may_be_text(env: Any) -> None:
    rows = [("ann", "bob"), ("bob", "cat"), ("cat", "ann"), ("dan", "ann")]
    graph = Graph.from_collection(rows, lambda name: name.upper(), env=env)
    close(values(graph.run(PageRank(iterations=2))), page_rank(nx.DiGraph(rows), 2))
    assert values(graph.run(LabelPropagation(1))) == {"ann": "DAN", "bob": "BOB", "cat": "CAT", "dan": "DAN"}


def test_grids_have_the_distances_of_the_street(env: Any) -> None:
    graph = GridGraph(env=env).add_dimension(3).add_dimension(4).generate()
    assert values(graph.run(SingleSourceShortestPaths(0, 3))) == {
        4 * row + column: float(row + column) if row + column <= 3 else math.inf
        for row in range(3)
        for column in range(4)
    }


def test_what_is_wrong_is_said_in_a_line(env: Any) -> None:
    graph = Graph.from_collection([(1, "a"), (2, "b")], [(1, 2, "near"), (2, 3, "far")], env=env)
    with pytest.raises(ProgramError, match=r"^An edge names vertex 3 as its target, but there is no such vertex\."):
        graph.run(PageRank(iterations=2))
    with pytest.raises(TypeMismatchError, match=r"^Values of edges for \w+ should be numbers, got str"):
        graph.run(SingleSourceShortestPaths(1, 3))
    with pytest.raises(ProgramError, match=r"PageRank needs a number of iterations or a convergence threshold\."):
        PageRank()
    numbers = Graph.from_collection([(1, 2), (2, 1)], env=env)
    with pytest.raises(ProgramError, match=r"begins? at (vertex )?9, but there is no such vertex"):
        numbers.run(SingleSourceShortestPaths(9, 3))
