"""Rows of a partition in an order: in memory lists of Python's tuples, in the store lists of structs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.runtime.columns.nested import is_nested
from firesteel.runtime.operators.table.accumulators import distinct_in_order, numpy_of
from firesteel.runtime.operators.table.specs import Order
from firesteel.runtime.state.columnar.slots import SlotColumn

__all__ = ["Entry", "RowLists", "order_ranks", "row_places", "row_tuples"]

Array = npt.NDArray[Any]
Entry = tuple[Any, tuple[Any, ...]]
"""What a row is ordered by, and the row."""


@dataclass(frozen=True)
class RowLists(SlotColumn):
    """Rows in order. In the store they are lists of structs; what they are ordered by is worked out again."""

    order: tuple[Order, ...] = ()

    @staticmethod
    def of(input: pa.Schema, order: tuple[Order, ...]) -> RowLists:
        """Of rows with these columns."""
        fields = [pa.field(f"c{at}", field.type) for at, field in enumerate(input)]
        return RowLists("rows", pa.list_(pa.struct(fields)), object, None, order)

    def to_arrow(self, values: Array) -> pa.Array:
        lists = values.tolist()
        fields = list(self.type.value_type)  # type: ignore[union-attr]
        rows = [row for entries in lists if entries is not None for _, row in entries]
        columns = zip(*rows, strict=True) if rows else ([] for _ in fields)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
        lengths = [0 if entries is None else len(entries) for entries in lists]
        ends = np.concatenate((np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)))
        # A list that is NULL has no place to begin.
        missing = np.array([*(entries is None for entries in lists), False], bool)
        structs = pa.StructArray.from_arrays(arrays, fields=fields)
        return pa.ListArray.from_arrays(pa.array(ends, mask=missing), structs, self.type)

    def from_arrow(self, column: pa.Array) -> Array:
        columns = column.flatten().flatten()
        entries = list(zip(row_places(columns, self.order), row_tuples(columns), strict=True))
        lists = np.empty(len(column), object)
        at = 0
        for number, length in enumerate(pc.fill_null(pc.list_value_length(column), 0).to_pylist()):
            lists[number] = entries[at : at + length] or None
            at += length
        return lists


def row_places(columns: list[pa.Array], order: tuple[Order, ...]) -> list[Any]:
    """What each row is ordered by."""
    if not order:
        # All are equal.
        return [()] * (len(columns[0]) if columns else 0)
    parts = [_ordered_by(columns[one.column], one) for one in order]
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def row_tuples(columns: list[pa.Array]) -> list[tuple[Any, ...]]:
    """Rows as Python has them. All NaN are one object: so rows with NaN are equal, too.

    >>> nan = pa.array([float("nan")])
    >>> row_tuples([nan]) == row_tuples([nan])
    True
    """
    return list(zip(*map(_values, columns), strict=True))


_NAN = float("nan")


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        if pc.any(pc.is_nan(column)).as_py():
            return [_NAN if value != value else value for value in values]
    elif _has_floats(column.type):
        return list(map(_with_one_nan, values))
    return values


def _has_floats(kind: pa.DataType) -> bool:
    """Whether there are floating-point numbers within arrays, maps and rows."""
    if not is_nested(kind):
        return bool(pa.types.is_floating(kind))
    return any(_has_floats(kind.field(at).type) for at in range(kind.num_fields))


def _with_one_nan(value: Any) -> Any:
    if isinstance(value, float):
        return _NAN if value != value else value
    if isinstance(value, list):
        return list(map(_with_one_nan, value))
    if isinstance(value, tuple):
        return tuple(map(_with_one_nan, value))
    if isinstance(value, dict):
        return {name: _with_one_nan(part) for name, part in value.items()}
    return value


class _Descending:
    """Turns the order of values round that have no negative."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(other.value == self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _ordered_by(column: pa.Array, order: Order) -> list[Any]:
    """For each row a pair that compares as the row is to be ordered: NULL or not, and the value."""
    content, known = numpy_of(column)
    values = content.tolist()
    if not order.ascending:
        plain = content.dtype != object or pa.types.is_decimal(column.type)
        values = [-value for value in values] if plain else [_Descending(value) for value in values]
    null = 0 if order.nulls_first else 2
    if content.dtype.kind == "f" and np.isnan(content).any():
        # The largest number of all, and equal to itself: Python compares it with nothing.
        numbers = [(1, value) if value == value else ((1.5 if order.ascending else 0.5), 0) for value in values]
    else:
        numbers = [(1, value) for value in values]
    if known is None:
        return numbers
    return [number if there else (null, 0) for number, there in zip(numbers, known.tolist(), strict=True)]


def order_ranks(column: pa.Array, order: Order) -> Array:
    """Numbers that are ordered as the rows are to be."""
    content, known = numpy_of(column)
    there = np.ones(len(content), bool) if known is None else known
    ranks = np.zeros(len(content), np.int64)
    if there.any():
        distinct, places = distinct_in_order(content[there])
        ranks[there] = places + 1 if order.ascending else len(distinct) - places
    if not order.nulls_first:
        ranks[~there] = len(content) + 2
    return ranks
