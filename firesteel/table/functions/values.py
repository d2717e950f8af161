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

__all__ = ["by_value", "direct", "is_mostly_different", "mapped", "row_by_row"]

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
