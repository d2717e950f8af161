"""Python's arithmetic for columns. Where a column cannot have the result, or Python raises, the batch is given up."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.column_functions.column_values import (
    GivenUpError,
    Value,
    as_floats,
    as_integers,
    given,
)
from firesteel.table.functions.column_functions.expression_nodes import Plain
from firesteel.table.functions.column_functions.python_text import concatenated, read

__all__ = ["ARITHMETIC"]

_LEAST = -(1 << 63)
_NUMBERS = (bool, int, float)

Kernel = Callable[[Sequence[Value], Sequence[Plain], int], Value]


def _pair(values: Sequence[Value], rows: int) -> tuple[Value, Value]:
    """Two numbers as the type that both become, at least one of them a column."""
    left, right = values
    given(left, right)
    if left.kind not in _NUMBERS or right.kind not in _NUMBERS:
        raise GivenUpError(f"{left.kind.__name__} and {right.kind.__name__}")
    convert = as_floats if float in (left.kind, right.kind) else as_integers
    left, right = convert(left), convert(right)
    if left.column is None and right.column is None:
        left = Value(left.kind, left.array(rows))
    return left, right


def _checked(integers: Callable[..., Any], floats: Callable[..., Any]) -> Kernel:
    def compute(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
        left, right = _pair(values, rows)
        return Value(left.kind, (integers if left.kind is int else floats)(left.datum(), right.datum()))

    return compute


_ADDED = _checked(pc.add_checked, pc.add)


def _plus(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    return concatenated(values, options, rows) if values[0].kind is str else _ADDED(values, options, rows)


def _divided(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    left, right = _pair(values, rows)
    left, right = as_floats(left), as_floats(right)
    _refuse_zero(right)
    return Value(float, pc.divide(left.datum(), right.datum()))


def _refuse_zero(divisor: Value) -> None:
    found = divisor.constant == 0 if divisor.column is None else pc.any(pc.equal(divisor.column, 0)).as_py()
    if found:
        raise GivenUpError("division by zero")


def _numpy(value: Value) -> Any:
    return value.constant if value.column is None else value.column.to_numpy()


def _floored(compute: Callable[[Any, Any], Any]) -> Kernel:
    """NumPy rounds down as Python does."""

    def kernel(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
        left, right = _pair(values, rows)
        _refuse_zero(right)
        first, second = _numpy(left), _numpy(right)
        if left.kind is int:
            if np.any(np.equal(second, -1)) and np.any(np.equal(first, _LEAST)):
                raise GivenUpError("an integer of more than 64 bits")
        elif not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
            raise GivenUpError("division of what is not finite")
        with np.errstate(all="ignore"):
            return Value(left.kind, pa.array(compute(first, second)))

    return kernel


def _power(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    """Of integers, as a product. That of floats may be rounded otherwise: it is Python's own."""
    (value,), (exponent,) = values, options
    given(value)
    if value.kind is float:
        floats = value.array(rows).to_numpy().tolist()
        try:
            return Value(float, pa.array(list(map(pow, floats, itertools.repeat(exponent)))))
        except OverflowError:
            raise GivenUpError("a float that is too large") from None
    base = as_integers(value).array(rows)
    result = base
    assert isinstance(exponent, int)
    for _ in range(exponent - 1):
        result = pc.multiply_checked(result, base)
    return Value(int, result)


def _signed(integers: Callable[..., Any], floats: Callable[..., Any]) -> Kernel:
    def compute(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
        (value,) = values
        given(value)
        if value.kind is float:
            return Value(float, floats(value.array(rows)))
        return Value(int, integers(as_integers(value).array(rows)))

    return compute


def _bits(integers: Callable[..., Any], booleans: Callable[..., Any]) -> Kernel:
    def compute(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
        given(*values)
        left, right = values
        if left.kind is bool and right.kind is bool:
            return Value(bool, booleans(left.array(rows), right.array(rows)))
        return Value(int, integers(as_integers(left).array(rows), as_integers(right).array(rows)))

    return compute


def _extreme(better: Callable[..., Any]) -> Kernel:
    """Python keeps the first of those that are equal, and a NaN that comes first."""

    def compute(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
        given(*values)
        kinds = {each.kind for each in values}
        if len(kinds) > 1 or bool in kinds:
            raise GivenUpError("values of several types")
        best = values[0].array(rows)
        for each in values[1:]:
            best = pc.if_else(better(each.datum(), best), each.datum(), best)
        return Value(values[0].kind, best)

    return compute


def _to_int(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    return read(values[0], int, rows) if values[0].kind is str else _whole(values[0], np.trunc, rows)


def _rounded(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    (value,) = values
    if not options or value.kind is not float:
        return _whole(value, np.rint, rows)
    given(value)
    (digits,) = options
    assert isinstance(digits, int)
    return Value(float, pa.array(_rounded_to(value.array(rows).to_numpy(), digits)))


def _rounded_to(numbers: npt.NDArray[np.float64], digits: int) -> npt.NDArray[np.float64]:
    """Python rounds the exact decimal number that a float is. Shifted by the digits it is not exact any more, but near:
    where it is not near a half, the integer next to it is the right one, and its quotient the float next to that."""
    scale = 10.0**digits
    with np.errstate(all="ignore"):
        shifted = numbers * scale
        whole = np.rint(shifted)
        rounded = whole / scale
        size = np.abs(shifted)
        sure = (size < 2.0**50) & (np.abs(np.abs(shifted - whole) - 0.5) > size * 2.0**-50)
    if not sure.all():
        rounded[~sure] = [round(each, digits) for each in numbers[~sure].tolist()]
    return rounded


def _whole(value: Value, make: Callable[[Any], Any], rows: int) -> Value:
    given(value)
    if value.kind is not float:
        return as_integers(value)
    numbers = value.array(rows).to_numpy()
    # A comparison with NaN is false.
    if not np.all(np.abs(numbers) < 2.0**63):
        raise GivenUpError("a float that is no integer of 64 bits")
    return Value(int, pa.array(make(numbers).astype(np.int64)))


def _to_float(values: Sequence[Value], options: Sequence[Plain], rows: int) -> Value:
    given(*values)
    return read(values[0], float, rows) if values[0].kind is str else as_floats(values[0])


ARITHMETIC: dict[str, Kernel] = {
    "+": _plus,
    "-": _checked(pc.subtract_checked, pc.subtract),
    "*": _checked(pc.multiply_checked, pc.multiply),
    "/": _divided,
    "//": _floored(np.floor_divide),
    "%": _floored(np.remainder),
    "**": _power,
    "&": _bits(pc.bit_wise_and, pc.and_),
    "|": _bits(pc.bit_wise_or, pc.or_),
    "^": _bits(pc.bit_wise_xor, pc.xor),
    "negative": _signed(pc.negate_checked, pc.negate),
    "positive": _signed(lambda column: column, lambda column: column),
    "abs": _signed(pc.abs_checked, pc.abs),
    "min": _extreme(pc.less),
    "max": _extreme(pc.greater),
    "int": _to_int,
    "round": _rounded,
    "float": _to_float,
}
