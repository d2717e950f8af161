"""Graphs: vertices and edges as two DataFrames, and what can be done with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from firesteel.errors import ProgramError, short_repr
from firesteel.gelly import creation
from firesteel.gelly.elements import Edge, Triplet, Vertex
from firesteel.gelly.failures import user_errors
from firesteel.gelly.frames import check_function, filter_rows, infer_results, map_rows
from firesteel.gelly.gsa import ApplyFunction, GSAConfiguration, SumFunction, run_gather_sum_apply
from firesteel.gelly.gsa import GatherFunction as GSAGatherFunction
from firesteel.gelly.neighborhoods import Neighborhoods
from firesteel.gelly.pregel import ComputeFunction, MessageCombiner, VertexCentricConfiguration, run_vertex_centric
from firesteel.gelly.sessions import session_of
from firesteel.gelly.spargel import GatherFunction, ScatterFunction, ScatterGatherConfiguration, run_scatter_gather
from firesteel.gelly.values import declared_type

__all__ = ["Graph"]


class Graph(Neighborhoods):
    """A bounded graph with directed edges. Vertices have an id and a value, edges a source, a target and a value.

    Graphs do not change: every method gives a new one. Like the DataFrames they consist of they are worked out when
    something is asked of them; :meth:`cache` keeps what was worked out.

    ::

        graph = Graph.from_collection([(1, "a"), (2, "b"), (3, "c")], [(1, 2, 0.5), (2, 3, 1.5)])
        graph.out_degrees().collect()
    """

    def __init__(self, vertices: DataFrame, edges: DataFrame) -> None:
        self._vertices = vertices
        self._edges = edges

    # Making one

    @staticmethod
    def from_collection(
        *data: Any, env: Any = None, vertex_value_type: Any = None, edge_value_type: Any = None
    ) -> Graph:
        """A graph of ``(vertices, edges)``, ``(edges)`` or ``(edges, function of a vertex id that gives its value)``.

        Vertices are tuples (id, value), edges (source, target, value) or (source, target). ``env`` is a Spark session
        or an environment; without one graphs have a session of their own. Types are found by looking at all values.
        """
        session = session_of(env)
        vertices, edges, initializer = _arranged(data, "from_collection")
        return _graph(
            None if vertices is None else creation.vertices_of_rows(vertices, session, _declared(vertex_value_type)),
            creation.edges_of_rows(edges, session, _declared(edge_value_type)),
            initializer,
            vertex_value_type,
        )

    @staticmethod
    def from_data_set(*data: Any, env: Any = None, vertex_value_type: Any = None, edge_value_type: Any = None) -> Graph:
        """Like :meth:`from_collection`; each part may be a DataFrame, too.

        A DataFrame of edges has the columns source and target (or src and dst), of vertices id, and what other columns
        there are is the value; or it has columns of other names in this order.
        """
        vertices, edges, initializer = _arranged(data, "from_data_set")
        frames = [part for part in (vertices, edges) if isinstance(part, DataFrame)]
        session = frames[0].sparkSession if frames else session_of(env)
        if isinstance(vertices, DataFrame):
            vertices = creation.vertices_frame(vertices)
        elif vertices is not None:
            vertices = creation.vertices_of_rows(vertices, session, _declared(vertex_value_type))
        if isinstance(edges, DataFrame):
            edges = creation.edges_frame(edges)
        else:
            edges = creation.edges_of_rows(edges, session, _declared(edge_value_type))
        return _graph(vertices, edges, initializer, vertex_value_type)

    @staticmethod
    def from_data_frame(*frames: DataFrame) -> Graph:
        """A graph of DataFrames ``(vertices, edges)`` or ``(edges)``, in their session."""
        for frame in frames:
            if not isinstance(frame, DataFrame):
                raise ProgramError(f"from_data_frame() needs DataFrames, got {short_repr(frame)}.")
        return Graph.from_data_set(*frames)

    from_tuple_data_set = from_data_set
    from_tuple2_data_set = from_data_set

    @staticmethod
    def from_csv(
        edges_path: str,
        vertices_path: str | None = None,
        *,
        key_type: Any = "bigint",
        edge_value_type: Any = None,
        vertex_value_type: Any = None,
        vertex_value_initializer: Callable[[Any], Any] | None = None,
        field_delimiter: str = ",",
        ignore_first_line: bool = False,
        ignore_comments: str | None = None,
        env: Any = None,
    ) -> Graph:
        """A graph of CSV files: lines ``source,target[,value]``, and of vertices ``id[,value]``.

        Without a type for their value lines have none.
        """
        session = session_of(env)
        options = (field_delimiter, ignore_first_line, ignore_comments)
        edges = creation.read_csv(session, edges_path, creation.EDGE, [key_type, key_type, edge_value_type], *options)
        vertices = None
        if vertices_path is not None:
            types = [key_type, vertex_value_type]
            vertices = creation.read_csv(session, vertices_path, creation.VERTEX, types, *options)
        return _graph(vertices, edges, vertex_value_initializer, vertex_value_type)

    # Looking at it

    def get_context(self) -> SparkSession:
        """The session that the graph lives in."""
        return self._edges.sparkSession

    def get_vertices(self) -> DataFrame:
        """The vertices: (id, value)."""
        return self._vertices

    def get_edges(self) -> DataFrame:
        """The edges: (source, target, value)."""
        return self._edges

    def get_vertex_ids(self) -> DataFrame:
        return self._vertices.select("id")

    def get_edge_ids(self) -> DataFrame:
        return self._edges.select("source", "target")

    def number_of_vertices(self) -> int:
        with user_errors():
            return int(self._vertices.count())

    def number_of_edges(self) -> int:
        with user_errors():
            return int(self._edges.count())

    def in_degrees(self) -> DataFrame:
        """(id, degree): how many edges end at each vertex."""
        return self._degrees(self._edges.select(F.col("target").alias("id")))

    def out_degrees(self) -> DataFrame:
        """(id, degree): how many edges begin at each vertex."""
        return self._degrees(self._edges.select(F.col("source").alias("id")))

    def get_degrees(self) -> DataFrame:
        """(id, degree): how many edges begin or end at each vertex. A loop counts twice."""
        ends = self._edges.select(F.col("source").alias("id")).union(self._edges.select("target"))
        return self._degrees(ends)

    def _degrees(self, ends: DataFrame) -> DataFrame:
        counted = ends.groupBy("id").agg(F.count("*").alias("degree"))
        return self._vertices.select("id").join(counted, "id", "left").fillna(0, "degree")

    def get_triplets(self) -> DataFrame:
        """Each edge with the values of its vertices: (source, target, source_value, target_value, value)."""
        begin = self._vertices.select(F.col("id").alias("source"), F.col("value").alias("source_value"))
        end = self._vertices.select(F.col("id").alias("target"), F.col("value").alias("target_value"))
        joined = self._edges.join(begin, "source").join(end, "target")
        return joined.select(*Triplet._fields)

    def validate(self, validator: Callable[[Graph], bool] | None = None) -> bool:
        """Whether every edge names vertices that are there, or what another validator says."""
        if validator is not None:
            return validator(self)
        with user_errors():
            return bool(self.invalid_edges().isEmpty())

    def invalid_edges(self) -> DataFrame:
        """The edges that name a vertex that is not there."""
        ids = self._vertices.select("id")
        known = self._edges.join(ids, self._edges["source"] == ids["id"], "left_semi")
        known = known.join(ids, known["target"] == ids["id"], "left_semi")
        return self._edges.exceptAll(known)

    def cache(self) -> Graph:
        """Keeps vertices and edges once they have been worked out."""
        self._vertices.cache()
        self._edges.cache()
        return self

    def unpersist(self) -> Graph:
        """Lets go of what :meth:`cache` has kept."""
        self._vertices.unpersist()
        self._edges.unpersist()
        return self

    # Changing values

    def map_vertices(self, function: Callable[[Vertex], Any] | Column, value_type: Any = None) -> Graph:
        """Gives each vertex a new value: what the function makes of the vertex, or a column of (id, value).

        The type of the new values is that of the function's results for some vertices, or ``value_type``.
        """
        return Graph(_mapped(self._vertices, Vertex, function, value_type, "map_vertices"), self._edges)

    def map_edges(self, function: Callable[[Edge], Any] | Column, value_type: Any = None) -> Graph:
        """Gives each edge a new value."""
        return Graph(self._vertices, _mapped(self._edges, Edge, function, value_type, "map_edges"))

    def translate_vertex_values(self, function: Callable[[Any], Any], value_type: Any = None) -> Graph:
        """Like :meth:`map_vertices`; the function gets the value alone."""
        return self.map_vertices(_of_value(function), value_type)

    def translate_edge_values(self, function: Callable[[Any], Any], value_type: Any = None) -> Graph:
        return self.map_edges(_of_value(function), value_type)

    def translate_graph_ids(self, function: Callable[[Any], Any], id_type: Any = None) -> Graph:
        """Gives each vertex another id, in edges, too. Different ids have to stay different."""
        check_function(function, "translate_graph_ids", "id")
        what = "translate_graph_ids()"
        kind = infer_results(self._vertices, lambda rows: [function(row[0]) for row in rows], id_type, what)
        vertices = map_rows(self._vertices, _first, function, kind, "id", what)
        edges = map_rows(self._edges, _first, function, kind, "source", what)
        return Graph(vertices, map_rows(edges, _second, function, kind, "target", what))

    # Joins

    def join_with_vertices(self, data: Any, function: Callable[[Any, Any], Any]) -> Graph:
        """Changes the values of vertices for which there is a row (id, value): ``function(vertex value, row's value)``.

        The result has the type that values have.
        """
        other = self._other(data, creation.vertices_frame, creation.vertices_of_rows)
        return Graph(_joined(self._vertices, other, ["id"], function, "join_with_vertices"), self._edges)

    def join_with_edges(self, data: Any, function: Callable[[Any, Any], Any]) -> Graph:
        """Changes the values of edges for which there is a row (source, target, value)."""
        other = self._other(data, creation.edges_frame, creation.edges_of_rows)
        return Graph(self._vertices, _joined(self._edges, other, ["source", "target"], function, "join_with_edges"))

    def join_with_edges_on_source(self, data: Any, function: Callable[[Any, Any], Any]) -> Graph:
        """Changes the values of edges for whose source there is a row (id, value)."""
        return self._joined_edges(data, "source", function)

    def join_with_edges_on_target(self, data: Any, function: Callable[[Any, Any], Any]) -> Graph:
        """Changes the values of edges for whose target there is a row (id, value)."""
        return self._joined_edges(data, "target", function)

    def _joined_edges(self, data: Any, end: str, function: Callable[[Any, Any], Any]) -> Graph:
        other = self._other(data, creation.vertices_frame, creation.vertices_of_rows).withColumnRenamed("id", end)
        return Graph(self._vertices, _joined(self._edges, other, [end], function, f"join_with_edges_on_{end}"))

    def _other(self, data: Any, of_frame: Any, of_rows: Any) -> DataFrame:
        frame: DataFrame = of_frame(data) if isinstance(data, DataFrame) else of_rows(data, self.get_context())
        return frame

    # Parts

    def filter_on_vertices(self, function: Callable[[Vertex], bool] | Column) -> Graph:
        """The vertices for which a function (or a column of id and value) is true, and the edges between them."""
        return self._induced(_filtered(self._vertices, Vertex, function, "filter_on_vertices"), self._edges)

    def filter_on_edges(self, function: Callable[[Edge], bool] | Column) -> Graph:
        """All vertices, and the edges for which a function (or a column of source, target and value) is true."""
        return Graph(self._vertices, _filtered(self._edges, Edge, function, "filter_on_edges"))

    def subgraph(
        self, vertex_filter: Callable[[Vertex], bool] | Column, edge_filter: Callable[[Edge], bool] | Column
    ) -> Graph:
        """The vertices for which the first is true, and those edges between them for which the second is."""
        vertices = _filtered(self._vertices, Vertex, vertex_filter, "subgraph")
        return self._induced(vertices, _filtered(self._edges, Edge, edge_filter, "subgraph"))

    @staticmethod
    def _induced(vertices: DataFrame, edges: DataFrame) -> Graph:
        return Graph(vertices, _between(edges, vertices))

    # Whole graphs

    def reverse(self) -> Graph:
        """The same graph with all edges the other way round."""
        return Graph(self._vertices, _turned(self._edges))

    def get_undirected(self) -> Graph:
        """Each edge, and the same edge the other way round."""
        return Graph(self._vertices, self._edges.union(_turned(self._edges)))

    def union(self, graph: Graph) -> Graph:
        """All vertices of both, each once, and all edges of both."""
        vertices = self._vertices.unionByName(graph._vertices).dropDuplicates(["id"])
        return Graph(vertices, self._edges.unionByName(graph._edges))

    def difference(self, graph: Graph) -> Graph:
        """Without the vertices of the other graph, and without their edges."""
        return self.remove_vertices(graph._vertices)

    def intersect(self, graph: Graph, distinct_edges: bool = True) -> Graph:
        """The edges that are in both, with equal values, and their vertices (as :meth:`from_data_set` makes them).

        An edge that a graph has several times is there once, or as often as both have it.
        """
        if distinct_edges:
            edges = self._edges.intersect(graph._edges)
        else:
            edges = self._edges.intersectAll(graph._edges)
        return _graph(None, edges, None, None)

    # Adding and removing

    def add_vertex(self, vertex: Any) -> Graph:
        return self.add_vertices([vertex])

    def add_vertices(self, vertices: Any) -> Graph:
        """With more vertices: tuples (id, value) or a DataFrame. Those that are there already stay as they are."""
        kind = self._vertices.schema["value"].dataType
        more = self._other(vertices, creation.vertices_frame, lambda rows, s: creation.vertices_of_rows(rows, s, kind))
        new = more.dropDuplicates(["id"]).join(self._vertices.select("id"), "id", "left_anti")
        return Graph(self._vertices.unionByName(new), self._edges)

    def add_edge(self, source: Any, target: Any, value: Any = None) -> Graph:
        """With one more edge between ids or vertices, which are added where they are new."""
        ends = [end if isinstance(end, Vertex) else Vertex(end) for end in (source, target)]
        return self.add_vertices(ends).add_edges([(ends[0].id, ends[1].id, value)])

    def add_edges(self, edges: Any) -> Graph:
        """With more edges: tuples or a DataFrame. Those that name a vertex that is not there are left out."""
        kind = self._edges.schema["value"].dataType
        more = self._other(edges, creation.edges_frame, lambda rows, s: creation.edges_of_rows(rows, s, kind))
        return Graph(self._vertices, self._edges.unionByName(_between(more, self._vertices)))

    def remove_vertex(self, vertex: Any) -> Graph:
        return self.remove_vertices([vertex])

    def remove_vertices(self, vertices: Any) -> Graph:
        """Without some vertices (ids, tuples or a DataFrame with ids), and without their edges."""
        if isinstance(vertices, DataFrame):
            gone = creation.vertices_frame(vertices).select("id")
        else:
            rows = [vertex if isinstance(vertex, tuple) else (vertex,) for vertex in vertices]
            gone = creation.vertices_of_rows(rows, self.get_context()).select("id")
        return self._induced(self._vertices.join(gone, "id", "left_anti"), self._edges)

    def remove_edge(self, edge: Any) -> Graph:
        return self.remove_edges([edge])

    def remove_edges(self, edges: Any) -> Graph:
        """Without all edges between the sources and targets that are named, whatever their value."""
        gone = self._other(edges, creation.edges_frame, creation.edges_of_rows).select("source", "target")
        return Graph(self._vertices, self._edges.join(gone, ["source", "target"], "left_anti").select(*Edge._fields))

    # Iterations and algorithms

    def run_vertex_centric_iteration(
        self,
        compute_function: ComputeFunction,
        combiner: MessageCombiner | None,
        max_iterations: int,
        parameters: VertexCentricConfiguration | None = None,
    ) -> Graph:
        """Pregel: superstep by superstep each vertex gets its messages, changes its value and sends messages."""
        return run_vertex_centric(self, compute_function, combiner, max_iterations, parameters)

    def run_scatter_gather_iteration(
        self,
        scatter_function: ScatterFunction,
        gather_function: GatherFunction,
        max_iterations: int,
        parameters: ScatterGatherConfiguration | None = None,
    ) -> Graph:
        """Superstep by superstep vertices whose value has changed send messages, and others change their value."""
        return run_scatter_gather(self, scatter_function, gather_function, max_iterations, parameters)

    def run_gather_sum_apply_iteration(
        self,
        gather_function: GSAGatherFunction,
        sum_function: SumFunction,
        apply_function: ApplyFunction,
        max_iterations: int,
        parameters: GSAConfiguration | None = None,
    ) -> Graph:
        """Superstep by superstep values of neighbours are gathered, added up, and applied."""
        return run_gather_sum_apply(self, gather_function, sum_function, apply_function, max_iterations, parameters)

    def run(self, algorithm: Any) -> Any:
        """What an algorithm of :mod:`firesteel.gelly.library` (or one of yours, with ``run(graph)``) gives."""
        if not callable(getattr(algorithm, "run", None)):
            raise ProgramError(f"run() needs an algorithm with a method run(graph), got {short_repr(algorithm)}.")
        return algorithm.run(self)


def _arranged(data: tuple[Any, ...], method: str) -> tuple[Any, Any, Callable[[Any], Any] | None]:
    """(vertices, edges, initializer) out of what the user gave."""
    if len(data) == 1:
        return None, data[0], None
    if len(data) == 2:
        return (None, *data) if callable(data[1]) else (*data, None)
    raise ProgramError(f"{method}() needs (edges), (edges, function) or (vertices, edges), got {len(data)} arguments.")


def _declared(kind: Any) -> Any:
    return None if kind is None else declared_type(kind)


def _graph(
    vertices: DataFrame | None, edges: DataFrame, initializer: Callable[[Any], Any] | None, value_type: Any
) -> Graph:
    if vertices is None:
        ends = edges.select(F.col("source").alias("id")).union(edges.select("target"))
        vertices = ends.distinct().withColumn("value", F.lit(None))
        if initializer is not None:
            check_function(initializer, "from_collection", "id")
            vertices = _mapped(vertices, _first, initializer, value_type, "vertex_value_initializer")
    return Graph(vertices, edges)


def _mapped(frame: DataFrame, element: Any, function: Any, value_type: Any, method: str) -> DataFrame:
    if isinstance(function, Column):
        return frame.withColumn("value", function)
    check_function(function, method, element.__name__.lower())
    kind = infer_results(frame, lambda rows: [function(element(*row)) for row in rows], value_type, f"{method}()")
    return map_rows(frame, element, function, kind, "value", f"{method}()")


def _filtered(frame: DataFrame, element: Any, function: Any, method: str) -> DataFrame:
    if isinstance(function, Column):
        return frame.where(function)
    check_function(function, method, element.__name__.lower())
    return filter_rows(frame, element, function, f"The function of {method}()")


def _joined(frame: DataFrame, other: DataFrame, keys: list[str], function: Any, method: str) -> DataFrame:
    check_function(function, method, "value, other value")
    matched = F.lit(True).alias("matched")
    right = other.select(*keys, F.col("value").alias("other"), matched)
    joined = frame.join(right, keys, "left").select(*frame.columns, "other", "matched")
    at = frame.columns.index("value")

    def changed(*row: Any) -> tuple[Any, ...]:
        return row

    def apply(row: tuple[Any, ...]) -> Any:
        return function(row[at], row[at + 1]) if row[at + 2] else row[at]

    kind = frame.schema["value"].dataType
    return map_rows(joined, changed, apply, kind, "value", f"{method}()").select(*frame.columns)


def _between(edges: DataFrame, vertices: DataFrame) -> DataFrame:
    """The edges whose ends are both there."""
    ids = vertices.select("id")
    found = edges.join(ids.withColumnRenamed("id", "source"), "source", "left_semi")
    return found.join(ids.withColumnRenamed("id", "target"), "target", "left_semi").select(*Edge._fields)


def _turned(edges: DataFrame) -> DataFrame:
    return edges.select(F.col("target").alias("source"), F.col("source").alias("target"), "value")


def _of_value(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    check_function(function, "translate", "value")
    return lambda element: function(element.value)


def _first(*row: Any) -> Any:
    return row[0]


def _second(*row: Any) -> Any:
    return row[1]
