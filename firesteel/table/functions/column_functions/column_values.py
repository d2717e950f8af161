"""What an expression of Python's has for a value when it is computed for many rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ARROW_TYPES", "MOST_EXACT", "GivenUpError", "Value", "as_floats", "as_integers", "given", "value_of"]

ARROW_TYPES: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
"""What Python's types are in columns."""

MOST_EXACT = 1 << 53
"""All integers up to this one are floats as well."""

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class GivenUpError(Exception):
    """The batch is to be computed row by row: the result for whole columns may be another one, or an error."""


@dataclass(frozen=True)
class Value:
    """The values of all rows, of one type of Python's; NULL is None. Either a column, or a constant."""

    kind: type
    """bool, int, float or str; NoneType for the constant None."""
    column: pa.Array | None
    constant: Any = None

    @property
    def may_be_none(self) -> bool:
        """Whether there is a None among them."""
        return self.constant is None if self.column is None else self.column.null_count > 0

    def datum(self) -> Any:
        """What Arrow's functions take."""
        return self.column if self.column is not None else pa.scalar(self.constant, ARROW_TYPES[self.kind])

    def array(self, rows: int) -> pa.Array:
        """A column of that many rows, also of a constant."""
        return self.column if self.column is not None else pa.repeat(self.datum(), rows)


def value_of(constant: Any) -> Value:
    """A constant of the function."""
    kind = type(constant)
    if kind is int and not _LEAST <= constant <= _MOST:
        raise GivenUpError("an integer of more than 64 bits")
    if kind is not type(None) and kind not in ARROW_TYPES:
        raise GivenUpError(f"a constant of {kind.__name__}")
    return Value(kind, None, constant)


def given(*values: Value) -> None:
    """Python's operators do not take None."""
    for each in values:
        if each.may_be_none:
            raise GivenUpError("None where it fails")


def as_integers(value: Value) -> Value:
    """The integers that numbers without a fraction are: True is 1."""
    if value.kind is int:
        return value
    if value.kind is not bool:
        raise GivenUpError(f"{value.kind.__name__} as an integer")
    if value.column is None:
        return Value(int, None, int(value.constant))
    return Value(int, pc.cast(value.column, pa.int64()))


def as_floats(value: Value) -> Value:
    """The floats that numbers are equal to."""
    if value.kind is float:
        return value
    whole = as_integers(value)
    if whole.column is None:
        if abs(whole.constant) > MOST_EXACT:
            raise GivenUpError("an integer that is no float")
        return Value(float, None, float(whole.constant))
    # Arrow refuses integers beyond 2**53.
    return Value(float, pc.cast(whole.column, pa.float64()))
