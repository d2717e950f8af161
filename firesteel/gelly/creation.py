"""Vertices and edges as DataFrames, made of what users have: tuples, rows, DataFrames, CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from firesteel.common import Row as FiresteelRow
from firesteel.errors import ProgramError, TypeMismatchError, short_repr
from firesteel.gelly.values import declared_type, infer, to_column

__all__ = ["EDGE", "VERTEX", "edges_frame", "edges_of_rows", "read_csv", "vertices_frame", "vertices_of_rows"]

VERTEX = ["id", "value"]
EDGE = ["source", "target", "value"]

_SPELLINGS = {"id": ("id",), "source": ("source", "src"), "target": ("target", "dst")}
"""Names of columns, the second as GraphFrames has them."""


def vertices_of_rows(rows: Iterable[Any], session: SparkSession, kind: T.DataType | None = None) -> DataFrame:
    """Vertices out of tuples (id, value) or (id,), or Rows."""
    tuples = [_tuple(row, (1, 2), "A vertex is (id, value)") for row in rows]
    return _frame(tuples, VERTEX, 1, session, kind, "vertices")


def edges_of_rows(rows: Iterable[Any], session: SparkSession, kind: T.DataType | None = None) -> DataFrame:
    """Edges out of tuples (source, target, value) or (source, target), or Rows."""
    tuples = [_tuple(row, (2, 3), "An edge is (source, target) or (source, target, value)") for row in rows]
    return _frame(tuples, EDGE, 2, session, kind, "edges")


def _tuple(row: Any, lengths: tuple[int, int], expected: str) -> tuple[Any, ...]:
    if not isinstance(row, (tuple, list, FiresteelRow)):
        raise TypeMismatchError(f"{expected}, got {short_repr(row)} ({type(row).__name__}).")
    found = tuple(row)
    if len(found) not in lengths:
        raise TypeMismatchError(f"{expected}, got {short_repr(row)} with {len(found)} fields.")
    if any(part is None for part in found[: lengths[0]]):
        raise TypeMismatchError(f"{expected}, and ids are not None, got {short_repr(row)}.")
    return found if len(found) == lengths[1] else (*found, None)


def _frame(
    rows: list[tuple[Any, ...]], names: list[str], ids: int, session: SparkSession, kind: T.DataType | None, what: str
) -> DataFrame:
    import pyarrow as pa

    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    id_type = infer((one for column in columns[:ids] for one in column), f"Ids of {what}")
    if isinstance(id_type, T.NullType):
        id_type = T.LongType()
    value_type = kind or infer(columns[ids], f"Values of {what}")
    types = [id_type] * ids + [value_type]
    arrays = [to_column(list(c), t, f"Values of {what}") for c, t in zip(columns, types, strict=True)]
    schema = T.StructType([T.StructField(n, t) for n, t in zip(names, types, strict=True)])
    return session.createDataFrame(pa.table(arrays, names=names), schema)


def vertices_frame(frame: DataFrame) -> DataFrame:
    """A user's DataFrame as (id, value)."""
    return _normal(frame, ["id"], "vertices")


def edges_frame(frame: DataFrame) -> DataFrame:
    """A user's DataFrame as (source, target, value)."""
    return _normal(frame, ["source", "target"], "edges")


def _normal(frame: DataFrame, ids: list[str], what: str) -> DataFrame:
    """By name where the names are known: then all other columns are the value. By place otherwise."""
    named = [next((name for name in _SPELLINGS[one] if name in frame.columns), None) for one in ids]
    if None in named:
        if not len(ids) <= len(frame.columns) <= len(ids) + 1:
            expected = ", ".join(f"'{one}'" for one in ids)
            raise ProgramError(
                f"A DataFrame of {what} has columns {expected} and others for the value, or {len(ids)} to "
                f"{len(ids) + 1} columns in this order, got {', '.join(frame.columns) or 'none'}."
            )
        named = frame.columns[: len(ids)]
    others = [name for name in frame.columns if name not in named]
    if not others:
        value = F.lit(None)
    elif len(others) == 1:
        value = F.col(f"`{others[0]}`")
    else:
        value = F.struct(*(F.col(f"`{name}`") for name in others))
    return frame.select(
        *(F.col(f"`{old}`").alias(new) for old, new in zip(named, ids, strict=True)), value.alias("value")
    )


def read_csv(
    session: SparkSession,
    path: str,
    names: list[str],
    types: list[Any],
    delimiter: str,
    header: bool,
    comment: str | None,
) -> DataFrame:
    """A CSV file of vertices or edges. A line that does not fit is an error, not an empty value."""
    fields = [
        T.StructField(name, declared_type(kind)) for name, kind in zip(names, types, strict=True) if kind is not None
    ]
    reader = session.read.schema(T.StructType(fields)).option("sep", delimiter).option("header", header)
    reader = reader.option("mode", "FAILFAST").option("enforceSchema", True)
    if comment is not None:
        reader = reader.option("comment", comment)
    frame = reader.csv(path)
    return frame if len(fields) == len(names) else frame.withColumn("value", F.lit(None))
