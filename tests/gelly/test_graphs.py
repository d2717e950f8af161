"""Transformations and neighbourhoods of a graph, and what wrong input is answered with."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from firesteel.common import Types
from firesteel.errors import ConfigurationError, JobExecutionError, ProgramError, TypeMismatchError
from firesteel.gelly import Edge, EdgeDirection, Graph, Vertex
from firesteel.gelly.generators import CycleGraph, EmptyGraph, RMatGraph
from firesteel.gelly.library import ConnectedComponents, PageRank
from firesteel.gelly.sessions import session_of

VERTICES = [(1, 10), (2, 20), (3, 30), (4, 40)]
EDGES = [(1, 2, 0.5), (1, 3, 1.5), (2, 3, 2.5), (3, 1, 3.5)]


@pytest.fixture(scope="module")
def graph(env: Any) -> Graph:
    return Graph.from_collection(VERTICES, EDGES, env=env).cache()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def parts(graph: Graph) -> tuple[list[Any], list[Any]]:
    return rows(graph.get_vertices()), rows(graph.get_edges())


def test_a_graph_can_be_looked_at(graph: Graph) -> None:
    assert (graph.number_of_vertices(), graph.number_of_edges()) == (4, 4)
    degrees = graph.in_degrees().join(graph.out_degrees().withColumnRenamed("degree", "out"), "id")
    degrees = degrees.join(graph.get_degrees().withColumnRenamed("degree", "all"), "id")
    assert rows(degrees) == [(1, 1, 2, 3), (2, 1, 1, 2), (3, 2, 1, 3), (4, 0, 0, 0)]
    assert rows(graph.get_triplets())[0] == (1, 2, 10, 20, 0.5)
    assert graph.validate()
    assert not Graph(graph.get_vertices().where("id != 3"), graph.get_edges()).validate()
    assert graph.validate(lambda some: some.number_of_edges() > 4) is False


def test_values_are_mapped(graph: Graph) -> None:
    mapped = graph.map_vertices(lambda vertex: (str(vertex.id), vertex.value / 4)).map_edges(F.col("value") * 2)
    vertices, edges = parts(mapped)
    assert vertices[1] == (2, ("2", 5.0))
    assert edges == [(1, 2, 1.0), (1, 3, 3.0), (2, 3, 5.0), (3, 1, 7.0)]
    # A tuple comes back as a row with names.
    again = mapped.translate_vertex_values(lambda value: value._1 + "!").translate_graph_ids(lambda one: one * 100)
    assert parts(again)[0][3] == (400, "4!")
    assert parts(again)[1][3] == (300, 100, 7.0)


def test_parts_of_a_graph(graph: Graph) -> None:
    assert parts(graph.filter_on_vertices(lambda vertex: vertex.value != 20)) == (
        [(1, 10), (3, 30), (4, 40)],
        [(1, 3, 1.5), (3, 1, 3.5)],
    )
    assert parts(graph.filter_on_edges(F.col("value") > 1.5))[1] == [(2, 3, 2.5), (3, 1, 3.5)]
    assert parts(graph.subgraph(F.col("id") < 4, lambda edge: edge.source < edge.target)) == (
        VERTICES[:3],
        EDGES[:3],
    )


def test_joins_change_values_where_there_is_a_row(graph: Graph) -> None:
    joined = graph.join_with_vertices([(1, "x"), (9, "y")], lambda own, other: own + len(other))
    assert parts(joined)[0] == [(1, 11), (2, 20), (3, 30), (4, 40)]
    by_edge = graph.join_with_edges([(1, 2, 10.0)], lambda own, other: own * other)
    by_source = by_edge.join_with_edges_on_source([(2, 100)], lambda own, other: own + other)
    by_target = by_source.join_with_edges_on_target(graph.out_degrees(), lambda own, other: own / other)
    assert parts(by_target)[1] == [(1, 2, 5.0), (1, 3, 1.5), (2, 3, 102.5), (3, 1, 1.75)]


def test_graphs_are_put_together_and_taken_apart(graph: Graph, env: Any) -> None:
    other = Graph.from_collection([(3, 30), (5, 50)], [(3, 5, 9.5), (3, 1, 3.5)], env=env)
    vertices, edges = parts(graph.union(other))
    assert (vertices, len(edges)) == ([*VERTICES, (5, 50)], 6)
    assert parts(graph.difference(other)) == ([(1, 10), (2, 20), (4, 40)], [(1, 2, 0.5)])
    assert parts(graph.intersect(other)) == ([(1, None), (3, None)], [(3, 1, 3.5)])
    assert parts(graph.reverse())[1][0] == (1, 3, 3.5)
    assert parts(graph.filter_on_edges(F.col("source") == 2).get_undirected())[1] == [(2, 3, 2.5), (3, 2, 2.5)]


def test_vertices_and_edges_are_added_and_removed(graph: Graph) -> None:
    more = graph.add_vertices([(4, 99), (5, 50)]).add_edges([(5, 1, 7.0), (5, 77, 8.0)]).add_edge(6, Vertex(5, 1), 9)
    vertices, edges = parts(more)
    assert vertices == [*VERTICES, (5, 50), (6, None)]
    assert edges[4:] == [(5, 1, 7.0), (6, 5, 9.0)]
    less = more.remove_vertices([6, (5, None)]).remove_edges([Edge(1, 2), Edge(4, 4)])
    assert parts(less) == (VERTICES, EDGES[1:])


def test_neighbourhoods(graph: Graph) -> None:
    assert rows(graph.reduce_on_edges(min, EdgeDirection.OUT)) == [(1, 0.5), (2, 2.5), (3, 3.5)]
    assert rows(graph.reduce_on_neighbors(lambda a, b: a + b, EdgeDirection.IN)) == [(1, 30), (2, 10), (3, 30)]

    def wide(vertex: Vertex, edges: Any) -> Any:
        lengths = [edge.value for edge in edges]
        if len(lengths) > 2:
            yield vertex.id, vertex.value, max(lengths)

    assert rows(graph.group_reduce_on_edges(wide, EdgeDirection.ALL)) == [(1, 10, 3.5), (3, 30, 3.5)]

    def near(vertex: Vertex, neighbors: Any) -> Any:
        return [neighbor.value * edge.value - vertex.value for edge, neighbor in neighbors]

    assert rows(graph.group_reduce_on_neighbors(near, EdgeDirection.OUT, Types.DOUBLE())) == [
        (0.0,),
        (5.0,),
        (35.0,),
        (55.0,),
    ]


def test_graphs_are_made_of_what_there_is(env: Any, tmp_path: Path) -> None:
    session = session_of(env)
    frame = session.createDataFrame([Row(src=1, dst=2, weight=0.5, kind="a")])
    assert parts(Graph.from_data_frame(frame)) == ([(1, None), (2, None)], [(1, 2, (0.5, "a"))])
    assert parts(Graph.from_data_set([Row(7, 8)], lambda one: one + 0.5, env=env)) == (
        [(7, 7.5), (8, 8.5)],
        [(7, 8, None)],
    )
    (tmp_path / "edges.csv").write_text("# from,to\nann;bob;3\nbob;cat;4\n")
    (tmp_path / "vertices.csv").write_text("ann;1.5\nbob;2.5\ncat;3\n")
    read = Graph.from_csv(
        f"file://{tmp_path}/edges.csv",
        f"file://{tmp_path}/vertices.csv",
        key_type=Types.STRING(),
        edge_value_type="int",
        vertex_value_type="double",
        field_delimiter=";",
        ignore_comments="#",
        env=env,
    )
    assert parts(read) == ([("ann", 1.5), ("bob", 2.5), ("cat", 3.0)], [("ann", "bob", 3), ("bob", "cat", 4)])
    assert EmptyGraph(3, env=env).generate().number_of_vertices() == 3
    assert rows(CycleGraph(3, env=env).generate().get_edge_ids())[:2] == [(0, 1), (0, 2)]
    assert RMatGraph(100, 1000, env=env).set_noise(True).generate().number_of_edges() == 1000


def test_wrong_input_is_refused_in_a_line(graph: Graph, env: Any) -> None:
    with pytest.raises(TypeMismatchError, match=r"^An edge is .* or \(source, target, value\), got \(1,\) with 1"):
        Graph.from_collection([(1,)], env=env)
    with pytest.raises(TypeMismatchError, match=r"^A vertex is \(id, value\), got 'ab' \(str\)\."):
        Graph.from_collection(["ab"], EDGES, env=env)
    with pytest.raises(TypeMismatchError, match=r"ids are not None, got \(None, 2\)"):
        Graph.from_collection([(None, 2)], env=env)
    with pytest.raises(TypeMismatchError, match=r"^Ids of edges should be of one type, got bigint and string"):
        Graph.from_collection([(1, "a")], env=env)
    with pytest.raises(ProgramError, match="A DataFrame of edges has columns 'source', 'target' and others"):
        Graph.from_data_frame(graph.get_edges().toDF("a", "b", "c").withColumn("d", F.lit(1)))
    with pytest.raises(ProgramError, match=r"map_vertices\(\) needs a function of \(vertex\), got 5"):
        graph.map_vertices(5)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="env is a SparkSession or a StreamExecutionEnvironment, got 5"):
        Graph.from_collection(EDGES, env=5)
    with pytest.raises(ProgramError, match=r"run\(\) needs an algorithm with a method run\(graph\)"):
        graph.run("PageRank")


def test_functions_that_give_the_wrong_thing(graph: Graph) -> None:
    wrong = graph.map_vertices(lambda vertex: vertex.value / 8, "int")
    with pytest.raises(TypeMismatchError, match=r"^map_vertices\(\) should give int, got \d\.\d+ \(float\)\.$"):
        wrong.filter_on_vertices(lambda vertex: True).map_vertices(lambda vertex: 1)
    with pytest.raises(TypeMismatchError, match=r"should give True or False, got 20 \(int\)"):
        graph.filter_on_vertices(lambda vertex: vertex.value and 20).number_of_vertices()
    with pytest.raises(TypeMismatchError, match=r"should yield its results or give a list of them, got 3 \(int\)"):
        graph.group_reduce_on_edges(lambda vertex, edges: 3, EdgeDirection.OUT)  # type: ignore[arg-type, return-value]
    failing = graph.map_edges(lambda edge: 1 / (edge.value - 0.5), "double")
    with pytest.raises(JobExecutionError, match=r"^ZeroDivisionError: .* \(test_graphs.py, line \d+, in <lambda>\)"):
        failing.filter_on_edges(lambda edge: edge.value > 0).number_of_edges()


def test_graphs_need_spark() -> None:
    from sparkkit import spark_env

    with pytest.raises(ConfigurationError, match="Graphs run on Spark"):
        session_of(spark_env(config={"firesteel.master": "memory"}))


def test_the_user_s_session_stays_as_it_is(env: Any) -> None:
    """A graph of DataFrames lives in their session, whose adaptive execution is on."""
    session_of(env)
    user = SparkSession.builder.getOrCreate()
    before = dict(user.conf.getAll)
    graph = Graph.from_data_frame(user.createDataFrame([(1, 2), (2, 3), (3, 1), (4, 1)], "src int, dst int"))
    assert graph.get_context() is user
    ranks = graph.run(PageRank(iterations=1))
    assert ranks.sparkSession is user
    known = {row.id: row.score for row in ranks.collect()}
    assert math.isclose(known[1], 0.15 / 4 + 0.85 * 2 / 4)
    assert rows(graph.run(ConnectedComponents())) == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert dict(user.conf.getAll) == before
    assert session_of(env) is not user
