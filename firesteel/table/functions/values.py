"""Kernels out of Python functions, for what Arrow cannot say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.evaluation import EvaluationContext, as_array
from firesteel.table.functions.registry import Datum, Kernel
from firesteel.table.logical.expressions import Call
from firesteel.table.types.arrow import arrow_type

__all__ = ["by_value", "direct", "is_mostly_different", "mapped", "plain_rows", "row_by_row", "with_plain_rows"]

_WORTH_ENCODING = 64
_LOOKED_AT = 512


def mapped(column: Datum, function: Callable[[Any], Any], kind: pa.DataType) -> Datum:
    """``function`` of every value; NULL stays NULL. Each different value is computed once."""
    if isinstance(column, pa.Scalar):
        return pa.scalar(function(column.as_py()) if column.is_valid else None, kind)
    if len(column) < _WORTH_ENCODING or pa.types.is_nested(column.type) or is_mostly_different(column):
        return pa.array([None if value is None else function(value) for value in column.to_pylist()], kind)
    encoded = column.dictionary_encode()
    results = pa.array([function(value) for value in encoded.dictionary.to_pylist()], kind)
    return results.take(encoded.indices)


def is_mostly_different(column: pa.Array) -> bool:
    """Whether a look at some of the values says that computing each different one only once is not worth the search."""
    some = column.slice(0, _LOOKED_AT)
    return len(column) > _LOOKED_AT and pc.count_distinct(some).as_py() > _LOOKED_AT // 2


def by_value(function: Callable[..., Any], prepare: Callable[..., Callable[[Any], Any]] | None = None) -> Kernel:
    """A kernel that calls ``function`` with the values of a row; NULL if one of them is NULL, or if it gives None.

    ``prepare`` makes of all values but the first, which mostly are constants, the function of the first."""

    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        kind = arrow_type(call.type)
        first, *others = arguments
        if all(isinstance(other, pa.Scalar) for other in others):
            constants = [other.as_py() for other in others]
            if any(constant is None for constant in constants):
                return pa.scalar(None, kind)
            if prepare is not None:
                return mapped(first, prepare(*constants), kind)
            return mapped(first, lambda value: function(value, *constants), kind)
        return _by_row(function, arguments, kind, context.rows)

    return kernel


def row_by_row(function: Callable[..., Any]) -> Kernel:
    """A kernel that calls ``function`` for every row, with NULLs as None."""

    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        columns = [as_array(argument, context.rows).to_pylist() for argument in arguments]
        return pa.array([function(*values) for values in zip(*columns, strict=True)], arrow_type(call.type))

    return kernel


def with_plain_rows(function: Callable[..., Any]) -> Kernel:
    """As :func:`row_by_row`; rows inside the values are tuples. Rows of different types may have different names of
    fields, and are equal, and stand in one array, by the places of these."""

    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        columns = [plain_rows(argument, context.rows) for argument in arguments]
        return pa.array([function(*values) for values in zip(*columns, strict=True)], arrow_type(call.type))

    return kernel


def plain_rows(values: Datum, rows: int) -> list[Any]:
    """Values in Python, in which rows are tuples."""
    column = as_array(values, rows)
    change, found = _rows_as_tuples(column.type), column.to_pylist()
    return found if change is None else [change(value) for value in found]


def _rows_as_tuples(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """What makes tuples of the rows in a value of the type; None if there can be none."""
    if pa.types.is_struct(kind):
        parts = [_rows_as_tuples(field.type) or _same for field in kind]
        return lambda row: (
            None if row is None else tuple(part(each) for part, each in zip(parts, row.values(), strict=True))
        )
    if pa.types.is_map(kind):
        key, item = _rows_as_tuples(kind.key_type), _rows_as_tuples(kind.item_type)
        if key is None and item is None:
            return None
        of_key, of_item = key or _same, item or _same
        return lambda pairs: None if pairs is None else [(of_key(one), of_item(other)) for one, other in pairs]
    if pa.types.is_nested(kind):
        element = _rows_as_tuples(kind.value_type)
        if element is None:
            return None
        inner = element
        return lambda items: None if items is None else [inner(item) for item in items]
    return None


def _same(value: Any) -> Any:
    return value


def _by_row(function: Callable[..., Any], arguments: list[Datum], kind: pa.DataType, rows: int) -> Datum:
    columns = [as_array(argument, rows).to_pylist() for argument in arguments]
    return pa.array(
        [None if None in values else function(*values) for values in zip(*columns, strict=True)],
        kind,
    )


def direct(function: Callable[..., Any], **options: Any) -> Kernel:
    """A kernel that is one of Arrow's functions. The result gets the type of the call."""

    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        result = function(*arguments, **options)
        kind = arrow_type(call.type)
        return result if result.type == kind else pc.cast(result, kind, safe=False)

    return kernel
