"""What can be said of a vertex by its edges and neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from firesteel.errors import TypeMismatchError, short_repr
from firesteel.gelly.elements import Edge, EdgeDirection, Vertex
from firesteel.gelly.failures import user_errors
from firesteel.gelly.frames import check_function, flat_map_groups
from firesteel.gelly.values import declared_type, from_column, infer

__all__ = ["Neighborhoods"]

_SAMPLE = 5
"""For how many vertices a function is tried, where the type of its results was not declared."""


class Neighborhoods:
    """The methods of a graph that look at the neighbourhood of each vertex."""

    _vertices: DataFrame
    _edges: DataFrame

    def reduce_on_edges(self, function: Callable[[Any, Any], Any], direction: EdgeDirection) -> DataFrame:
        """(id, value): the values of a vertex's edges, two by two made into one. Vertices without edges have no row."""
        check_function(function, "reduce_on_edges", "first, second")
        rows = self._with_edges(direction).select("vertex", "value")
        return _reduced(rows, self._id_type, self._edges.schema["value"].dataType, function, "reduce_on_edges()")

    def reduce_on_neighbors(self, function: Callable[[Any, Any], Any], direction: EdgeDirection) -> DataFrame:
        """(id, value): the values of a vertex's neighbours, two by two made into one."""
        check_function(function, "reduce_on_neighbors", "first, second")
        rows = self._with_neighbors(direction).select("vertex", F.col("neighbor_value").alias("value"))
        return _reduced(rows, self._id_type, self._vertices.schema["value"].dataType, function, "reduce_on_neighbors()")

    def group_reduce_on_edges(
        self,
        function: Callable[[Vertex, Iterator[Edge]], Iterable[Any]],
        direction: EdgeDirection,
        result_type: Any = None,
    ) -> DataFrame:
        """(value): all that a function gives for a vertex and its edges. It may give any number of results.

        The type of results is ``result_type``, or that of those for some vertices; a tuple makes several columns.
        """
        check_function(function, "group_reduce_on_edges", "vertex, edges")
        own = self._vertices.select(F.col("id").alias("vertex"), F.col("value").alias("vertex_value"))
        rows = self._with_edges(direction).join(own, "vertex")

        def of_group(key: Any, group: Iterator[tuple[Any, ...]]) -> Iterable[Any]:
            first = next(group)
            edges = (Edge(*row[1:4]) for row in _with_first(first, group))
            return _results(function(Vertex(key, first[4]), edges), "group_reduce_on_edges()")

        columns = ["vertex", "source", "target", "value", "vertex_value"]
        return _group_reduced(rows.select(*columns), of_group, result_type, "group_reduce_on_edges()")

    def group_reduce_on_neighbors(
        self,
        function: Callable[[Vertex, Iterator[tuple[Edge, Vertex]]], Iterable[Any]],
        direction: EdgeDirection,
        result_type: Any = None,
    ) -> DataFrame:
        """(value): all that a function gives for a vertex and its neighbours, each with the edge to it."""
        check_function(function, "group_reduce_on_neighbors", "vertex, neighbors")
        own = self._vertices.select(F.col("id").alias("vertex"), F.col("value").alias("vertex_value"))
        rows = self._with_neighbors(direction).join(own, "vertex")

        def of_group(key: Any, group: Iterator[tuple[Any, ...]]) -> Iterable[Any]:
            first = next(group)
            pairs = ((Edge(*row[1:4]), Vertex(row[5], row[6])) for row in _with_first(first, group))
            return _results(function(Vertex(key, first[4]), pairs), "group_reduce_on_neighbors()")

        columns = ["vertex", "source", "target", "value", "vertex_value", "neighbor", "neighbor_value"]
        return _group_reduced(rows.select(*columns), of_group, result_type, "group_reduce_on_neighbors()")

    @property
    def _id_type(self) -> T.DataType:
        return self._vertices.schema["id"].dataType

    def _with_edges(self, direction: EdgeDirection) -> DataFrame:
        """Edges with the vertex that looks at them, and the neighbour at the other end."""
        direction = EdgeDirection(direction)
        ends = {EdgeDirection.OUT: ("source",), EdgeDirection.IN: ("target",), EdgeDirection.ALL: ("source", "target")}
        other = {"source": "target", "target": "source"}
        parts = [
            self._edges.select(
                F.col(end).alias("vertex"), F.col(other[end]).alias("neighbor"), "source", "target", "value"
            )
            for end in ends[direction]
        ]
        return reduce(DataFrame.union, parts)

    def _with_neighbors(self, direction: EdgeDirection) -> DataFrame:
        neighbors = self._vertices.select(F.col("id").alias("neighbor"), F.col("value").alias("neighbor_value"))
        return self._with_edges(direction).join(neighbors, "neighbor")


def _with_first(first: tuple[Any, ...], others: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    yield first
    yield from others


def _reduced(rows: DataFrame, key: T.DataType, kind: T.DataType, function: Any, what: str) -> DataFrame:
    def of_group(vertex: Any, group: Iterator[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
        yield vertex, reduce(function, (value for _, value in group))

    schema = T.StructType([T.StructField("id", key), T.StructField("value", kind)])
    return flat_map_groups(rows, "vertex", of_group, schema, what)


def _results(results: Any, what: str) -> Iterable[Any]:
    if results is None or isinstance(results, (str, bytes, dict, tuple)) or not hasattr(results, "__iter__"):
        raise TypeMismatchError(
            f"The function of {what} should yield its results or give a list of them, got "
            f"{short_repr(results)} ({type(results).__name__})."
        )
    found: Iterable[Any] = results
    return found


def _group_reduced(rows: DataFrame, of_group: Any, result_type: Any, what: str) -> DataFrame:
    kind = declared_type(result_type) if result_type is not None else _tried(rows, of_group, what)
    as_row: Callable[[Any], tuple[Any, ...]]
    if isinstance(kind, T.StructType):
        schema, as_row = kind, tuple
    else:
        schema, as_row = T.StructType([T.StructField("value", kind)]), _alone

    def run(key: Any, group: Iterator[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
        return (as_row(result) for result in of_group(key, group))

    return flat_map_groups(rows, "vertex", run, schema, what)


def _alone(value: Any) -> tuple[Any, ...]:
    return (value,)


def _tried(rows: DataFrame, of_group: Any, what: str) -> T.DataType:
    """The type of results for some vertices, worked out in the driver."""
    some = rows.select("vertex").distinct().limit(_SAMPLE)
    with user_errors():
        table = rows.join(some, "vertex").select(*rows.columns).toArrow()
    columns = [from_column(c, f.dataType) for c, f in zip(table.columns, rows.schema.fields, strict=True)]
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for row in zip(*columns, strict=True):
        groups.setdefault(row[0], []).append(row)
    results = [result for key, group in groups.items() for result in of_group(key, iter(group))]
    kind = infer(results, f"Results of {what}")
    if isinstance(kind, T.NullType):
        raise TypeMismatchError(f"{what} gave nothing for {len(groups)} vertices; name the type with result_type.")
    return kind
