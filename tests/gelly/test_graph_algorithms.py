"""Algorithms against networkx. Starting a job takes longer than a small graph, so what is checked is many random graphs
side by side, each with ids of its own: one run of an algorithm checks all of them. What needs many supersteps or many
examples is in unit/test_graph_blocks, without Spark."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import pytest
from gellykit import close, communities, hits, page_rank, random_graphs, side_by_side, spread_labels
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
    directed,
)


def values(frame: DataFrame) -> dict[Any, Any]:
    return {row[0]: row[1] if len(row) == 2 else tuple(row[1:]) for row in frame.collect()}


def test_like_networkx(env: Any) -> None:
    whole = side_by_side(random_graphs(seed=3, count=30))
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

    directed_triangles(graph, whole, triangles)

    jaccard = {(row.vertex0, row.vertex1): row.score for row in graph.run(JaccardIndex()).collect()}
    wedges = {tuple(sorted(pair)) for v in plain for pair in nx_pairs(plain, v)}
    close(jaccard, {(u, v): score for u, v, score in nx.jaccard_coefficient(plain, wedges)})
    graph.unpersist()


def directed_triangles(graph: Graph, whole: nx.DiGraph, triangles: set[Any]) -> None:
    """By their definition: networkx's own clustering of directed graphs is another one."""

    def mark(one: Any, other: Any) -> int:
        return directed.FORWARD * whole.has_edge(one, other) + directed.REVERSE * whole.has_edge(other, one)

    listed = {tuple(row) for row in graph.run(directed.TriangleListing()).collect()}
    assert listed == {(a, b, c, 16 * mark(a, b) + 4 * mark(a, c) + mark(b, c)) for a, b, c in triangles}

    loose = nx.DiGraph(whole)
    loose.remove_edges_from(list(nx.selfloop_edges(loose)))
    local = values(graph.run(directed.LocalClusteringCoefficient()))
    assert local.keys() == set(loose)
    for vertex, (degree, count, score) in local.items():
        near = set(nx.all_neighbors(loose, vertex))
        between = loose.subgraph(near).number_of_edges()
        assert (degree, count) == (len(near), between)
        assert math.isclose(score, between / (degree * (degree - 1))) if degree > 1 else math.isnan(score)
    shares = [0.0 if math.isnan(score) else score for _, _, score in local.values()]
    mean = graph.run(directed.AverageClusteringCoefficient())
    assert math.isclose(mean, math.fsum(shares) / len(shares), rel_tol=1e-9)


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
