"""Python functions over the rows of a DataFrame: batch by batch, through Arrow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from firesteel.errors import ProgramError, TypeMismatchError, short_repr
from firesteel.gelly.failures import user_errors
from firesteel.gelly.shipping import over_batches
from firesteel.gelly.values import declared_type, from_column, infer, to_column

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_function", "filter_rows", "flat_map_groups", "infer_results", "map_rows", "name_of"]

_SAMPLE = 20
"""How many rows a function is tried on, where its results' type was not declared."""
_ROWS = 10_000


def name_of(function: Any) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def check_function(function: Any, method: str, parameters: str) -> None:
    if not callable(function):
        raise ProgramError(f"{method}() needs a function of ({parameters}), got {short_repr(function)}.")


def map_rows(
    frame: DataFrame,
    element: Callable[..., Any],
    function: Callable[[Any], Any],
    kind: T.DataType,
    column: str,
    what: str,
) -> DataFrame:
    """Replaces one column by what a function gives for each row. ``element`` makes of a row what the function gets."""
    types = [field.dataType for field in frame.schema.fields]
    at = frame.columns.index(column)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            rows = zip(*(from_column(c, t) for c, t in zip(batch.columns, types, strict=True)), strict=True)
            columns = list(batch.columns)
            columns[at] = to_column([function(element(*row)) for row in rows], kind, what)
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    return over_batches(frame, run, _with_type(frame.schema, column, kind))


def filter_rows(frame: DataFrame, element: Callable[..., Any], function: Callable[[Any], Any], what: str) -> DataFrame:
    """The rows for which a function says True."""
    types = [field.dataType for field in frame.schema.fields]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            rows = zip(*(from_column(c, t) for c, t in zip(batch.columns, types, strict=True)), strict=True)
            kept = [function(element(*row)) for row in rows]
            for answer in kept:
                if not isinstance(answer, (bool, np.bool_)):
                    raise TypeMismatchError(
                        f"{what} should give True or False, got {short_repr(answer)} ({type(answer).__name__})."
                    )
            yield batch.filter(pa.array(kept, pa.bool_()))

    return over_batches(frame, run, frame.schema)


def flat_map_groups(
    frame: DataFrame,
    key: str,
    function: Callable[[Any, Iterator[tuple[Any, ...]]], Iterable[tuple[Any, ...]]],
    schema: T.StructType,
    what: str,
) -> DataFrame:
    """Gives a function the rows of each key, and makes rows of what it gives. Groups are read as a stream."""
    types = [field.dataType for field in frame.schema.fields]
    at = frame.columns.index(key)
    kinds = [field.dataType for field in schema.fields]

    def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        for batch in batches:
            yield from zip(*(from_column(c, t) for c, t in zip(batch.columns, types, strict=True)), strict=True)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        groups = itertools.groupby(rows_of(batches), key=itemgetter(at))
        results = itertools.chain.from_iterable(function(group, rows) for group, rows in groups)
        while some := list(itertools.islice(results, _ROWS)):
            columns = zip(*some, strict=True)
            arrays = [to_column(list(c), kind, what) for c, kind in zip(columns, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=schema.names)

    return over_batches(frame.repartition(key).sortWithinPartitions(key), run, schema)


def infer_results(frame: DataFrame, results: Callable[[list[Any]], list[Any]], declared: Any, what: str) -> T.DataType:
    """The type of what a function gives: the declared one, or that of its results for the first rows."""
    if declared is not None:
        return declared_type(declared)
    with user_errors():
        table = frame.limit(_SAMPLE).toArrow()
    types = [field.dataType for field in frame.schema.fields]
    rows = list(zip(*(from_column(c, t) for c, t in zip(table.columns, types, strict=True)), strict=True))
    return infer(results(rows), f"Results of {what}")


def _with_type(schema: T.StructType, column: str, kind: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(column, kind) if field.name == column else field for field in schema.fields])
