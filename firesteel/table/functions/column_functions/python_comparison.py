"""Python's comparisons and truth for columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.column_functions.column_values import (
    ARROW_TYPES,
    GivenUpError,
    Value,
    as_floats,
    as_integers,
    given,
    value_of,
)
from firesteel.table.functions.column_functions.expression_nodes import Plain

__all__ = ["COLLECTIONS", "COMPARISON", "members", "one_of", "truth"]

COLLECTIONS = (tuple, list, set, frozenset, dict)
"""What functions may look for values in."""

_NUMBERS = (bool, int, float)
_FEW = 100

Kernel = Callable[[Sequence[Value], Sequence[Plain], int], Value]


def truth(value: Value, rows: int) -> Value:
    """What ``if`` makes of a value: None, zero and the empty text are false, NaN is true."""
    if value.column is None:
        return value_of(bool(value.constant))
    if value.kind is bool:
        found = value.column
    elif value.kind is str:
        found = pc.not_equal(pc.binary_length(value.column), 0)
    else:
        found = pc.not_equal(value.column, pa.scalar(0, ARROW_TYPES[value.kind]))
    return Value(bool, pc.fill_null(found, False) if found.null_count else found)


def _bool(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    return truth(values[0], rows)


def _not(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    found = truth(values[0], rows)
    return value_of(not found.constant) if found.column is None else Value(bool, pc.invert(found.column))


def _is_none(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    (value,) = values
    return value_of(value.constant is None) if value.column is None else Value(bool, pc.is_null(value.column))


def _comparable(left: Value, right: Value, rows: int) -> tuple[Any, Any] | None:
    """The two as columns of one type; None if they are never equal."""
    if left.kind in _NUMBERS and right.kind in _NUMBERS:
        convert = as_floats if float in (left.kind, right.kind) else as_integers
        left, right = convert(left), convert(right)
    elif left.kind is not right.kind:
        return None
    if left.column is None:
        return left.array(rows), right.datum()
    return left.column, right.datum()


def _equal(left: Value, right: Value, rows: int) -> pa.Array:
    """None is equal to None only, a text to no number, NaN to nothing."""
    for one, other in ((left, right), (right, left)):
        if one.kind is type(None):
            return pc.is_null(other.array(rows)) if other.kind is not type(None) else pa.repeat(True, rows)
    pair = _comparable(left, right, rows)
    same = pa.repeat(False, rows) if pair is None else pc.equal(*pair)
    if not left.may_be_none and not right.may_be_none:
        return same
    neither = pc.and_(pc.is_null(left.array(rows)), pc.is_null(right.array(rows)))
    return pc.or_(pc.fill_null(same, False), neither)


def _equals(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    return Value(bool, _equal(values[0], values[1], rows))


def _differs(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    return Value(bool, pc.invert(_equal(values[0], values[1], rows)))


def _ordered(compare: Callable[..., Any]) -> Kernel:
    """Arrow compares texts by their bytes: in UTF-8 that is the order of code points, which is Python's."""

    def compute(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
        left, right = values
        given(left, right)
        pair = _comparable(left, right, rows)
        if pair is None:
            raise GivenUpError(f"{left.kind.__name__} and {right.kind.__name__}")
        return Value(bool, compare(*pair))

    return compute


def _in(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    return one_of(values[0], options, rows)


def members(collection: Any, rows: int) -> list[Any]:
    """The members of a collection that the function finds outside of itself."""
    if type(collection) not in COLLECTIONS:
        raise GivenUpError("no collection")
    if len(collection) > max(rows, _FEW):
        # To bring it into a column would take longer than to look into it.
        raise GivenUpError("more members than rows")
    found = list(collection)
    if any((each is not None and type(each) not in ARROW_TYPES) or each != each for each in found):
        raise GivenUpError("a member that is no number or text")
    return found


def one_of(value: Value, options: Sequence[Plain], rows: int) -> Value:
    """Whether each is one of them."""
    if value.kind in (int, str) and all(type(each) is value.kind for each in options):
        try:
            known = pa.array(options, ARROW_TYPES[value.kind])
        except (OverflowError, ValueError):
            raise GivenUpError("a member that no column has") from None
        return Value(bool, pc.is_in(value.array(rows), known))
    if len(options) > _FEW:
        raise GivenUpError("many members of several types")
    found = pa.repeat(False, rows)
    for each in options:
        found = pc.or_(found, _equal(value, value_of(each), rows))
    return Value(bool, found)


COMPARISON: dict[str, Kernel] = {
    "bool": _bool,
    "not": _not,
    "is None": _is_none,
    "==": _equals,
    "!=": _differs,
    "<": _ordered(pc.less),
    "<=": _ordered(pc.less_equal),
    ">": _ordered(pc.greater),
    ">=": _ordered(pc.greater_equal),
    "in": _in,
}
