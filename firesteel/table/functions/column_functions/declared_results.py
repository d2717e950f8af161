"""Results of a function as a column of the type that it is declared with: as ``values_to_column`` has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.column_functions.column_values import ARROW_TYPES, GivenUpError, Value
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    BooleanType,
    CharType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    VarCharType,
)

__all__ = ["declared_result", "is_declarable"]

_MOST_EXACT_OF_FLOAT = 1 << 24


def is_declarable(kind: DataType) -> bool:
    """Whether columns of the type can be computed."""
    return isinstance(kind, BooleanType | IntegralType | FloatType | DoubleType | CharType | VarCharType)


def declared_result(value: Value, kind: DataType, rows: int) -> pa.Array:
    """The column. What does not fit is given up: the error has the value and its row."""
    wanted = arrow_type(kind)
    if value.may_be_none and not kind.is_nullable:
        raise GivenUpError("None for a type that has none")
    if value.kind is type(None):
        return pa.nulls(rows, wanted)
    column = value.array(rows)
    if isinstance(kind, CharType | VarCharType):
        fits = value.kind is str
    elif isinstance(kind, BooleanType):
        fits = value.kind in (bool, int)
    else:
        fits = value.kind in (bool, int, float)
    if not fits:
        raise GivenUpError(f"{value.kind.__name__} for {kind}")
    if column.type == wanted:
        return column
    if isinstance(kind, BooleanType):
        return pc.not_equal(column, pa.scalar(0, ARROW_TYPES[value.kind]))
    if isinstance(kind, IntegralType):
        # The fraction of a float goes. Arrow refuses integers that are too large.
        return pc.cast(_whole(column) if value.kind is float else column, wanted)
    if isinstance(kind, FloatType) and value.kind is int:
        most = pc.max(pc.abs_checked(column)).as_py()
        if most is not None and most > _MOST_EXACT_OF_FLOAT:
            raise GivenUpError("an integer that is no FLOAT")
    return pc.cast(pc.cast(column, pa.float64()) if value.kind is bool else column, wanted)


def _whole(column: pa.Array) -> pa.Array:
    numbers = pc.drop_null(column).to_numpy()
    # A comparison with NaN is false.
    if not np.all(np.abs(numbers) < 2.0**63):
        raise GivenUpError("a float that is no integer of 64 bits")
    return pc.cast(pc.trunc(column), pa.int64())
