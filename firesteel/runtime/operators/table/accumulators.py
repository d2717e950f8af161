"""Aggregate functions on segments of rows: the state after each row, for all rows of a batch at once.

An accumulator has a few columns of state for each group. ``run`` goes through sorted rows (see
:mod:`firesteel.runtime.columns.scans`) and gives the state after each; ``result`` makes values of states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from decimal import Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.runtime.columns.nested import is_nested
from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.state.columnar.slots import SlotColumn

__all__ = [
    "Accumulator",
    "Average",
    "ChosenValue",
    "Count",
    "DecimalColumn",
    "Extreme",
    "RetractingExtreme",
    "Rows",
    "Sum",
    "Values",
    "arrow_of",
    "distinct_in_order",
    "numpy_of",
]

Array = npt.NDArray[Any]

_PRECISE = Context(prec=80)


class Values(NamedTuple):
    """Values, and which of them are not NULL (None: all)."""

    content: Array
    known: Array | None = None

    def differ(self, other: Values) -> Array:
        """Where two differ. A value that is NULL in both does not."""
        content: Array = np.asarray(self.content != other.content, bool)
        if self.known is None and other.known is None:
            return content
        mine = np.ones(len(content), bool) if self.known is None else self.known
        others = np.ones(len(content), bool) if other.known is None else other.known
        differ: Array = (mine != others) | (mine & others & content)
        return differ

    def map(self, function: Any, other: Values | None = None) -> Values:
        """Applies a function of arrays to content and mask; with ``other`` to those of both."""
        if other is None:
            return Values(function(self.content), None if self.known is None else function(self.known))
        if self.known is None and other.known is None:
            return Values(function(self.content, other.content))
        mine = np.ones(len(self.content), bool) if self.known is None else self.known
        others = np.ones(len(other.content), bool) if other.known is None else other.known
        return Values(function(self.content, other.content), function(mine, others))


class Rows(NamedTuple):
    """What a call gets of the rows of a batch, sorted by group."""

    values: Array
    """Of its argument. What stands where a row does not count is arbitrary."""
    signs: Array | None
    """1 where a row adds its value, -1 where it takes it back, 0 where it does not count; None: all add."""


def numpy_of(column: pa.Array) -> Values:
    """A column as an array: numbers as numbers, times as the numbers that they are kept as, decimals as whole numbers
    of their last digit, anything else as objects."""
    known = None
    if column.null_count:
        known = pc.is_valid(column).to_numpy(zero_copy_only=False)
    kind = column.type
    if pa.types.is_decimal(kind):
        return Values(_unscaled(column), known)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif is_nested(kind):
        # As Python has them: arrays of numpy are not compared as a whole.
        return Values(np.fromiter(column.to_pylist(), object, len(column)), known)
    elif not pa.types.is_primitive(kind):
        return Values(column.to_numpy(zero_copy_only=False), known)
    if known is not None:
        column = pc.fill_null(column, 0)
    return Values(column.to_numpy(zero_copy_only=False), known)


def _unscaled(column: pa.Array) -> Array:
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(Decimal(0), column.type))
    if column.type.bit_width != 128:
        column = column.cast(pa.decimal128(min(38, column.type.precision), column.type.scale))
    halves = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)[column.offset : column.offset + len(column)]
    low, high = halves[:, 0], halves[:, 1]
    if (high == (low >> 63)).all():
        return low.astype(object)
    whole: Array = high.astype(object) * (1 << 64) + low.view(np.uint64).astype(object)
    return whole


def arrow_of(values: Values, kind: pa.DataType) -> pa.Array:
    """The other way round."""
    content, known = values
    if pa.types.is_decimal(kind):
        most = 10**kind.precision
        decimals = [
            Decimal(number).scaleb(-kind.scale, _PRECISE)
            if (known is None or known[at]) and -most < number < most
            else None
            for at, number in enumerate(content.tolist())
        ]
        return pa.array(decimals, kind)
    mask = None if known is None or known.all() else ~known
    if content.dtype == object:
        return pa.array(content, kind, mask=mask)
    if pa.types.is_boolean(kind):
        return pa.array(content.astype(bool), mask=mask)
    if pa.types.is_temporal(kind):
        plain = np.int32 if kind.bit_width == 32 else np.int64
        return pa.array(content.astype(plain, copy=False), mask=mask).view(kind)
    return pa.array(content.astype(kind.to_pandas_dtype(), copy=False), mask=mask)


def distinct_in_order(values: Array) -> tuple[Array, Array]:
    """The different values in order, and the place of each value among them.

    >>> distinct_in_order(np.array(["to", "be", "to"], object))
    (array(['be', 'to'], dtype=object), array([1, 0, 1]))
    """
    if values.dtype != object:
        return np.unique(values, return_inverse=True)
    listed = values.tolist()
    try:
        different = set(listed)
    except TypeError:
        # Lists have no hash.
        return np.unique(values, return_inverse=True)
    # Most are there many times: only the different ones are compared with each other.
    numbers = {value: number for number, value in enumerate(sorted(different))}
    distinct = np.empty(len(numbers), object)
    distinct[:] = list(numbers)
    return distinct, np.fromiter(map(numbers.__getitem__, listed), np.int64, len(listed))


class Accumulator(ABC):
    """One call of an aggregate function."""

    columns: tuple[SlotColumn, ...]
    """Its state."""
    plain_values = False
    """Whether it gets values as Python has them, instead of as numbers."""
    counts_nulls = False
    """Whether rows count in which the argument is NULL."""
    eager = True
    """Whether the result after each row is wanted; if not, only that of the last one of each segment."""

    @abstractmethod
    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        """The state after each row, column by column. ``base`` has the states that the segments begin with."""

    @abstractmethod
    def result(self, state: list[Array]) -> Values:
        """What the function gives in these states."""

    def merge(self, segments: Segments, states: list[Array]) -> list[Array]:
        """One state for the states of each segment."""
        return [np.add.reduceat(column, segments.starts) for column in states]


def _weighted(rows: Rows, zero: Any) -> Array:
    """Each row's value with its sign; ``zero`` where it does not count."""
    if rows.signs is None:
        return rows.values
    if rows.values.dtype.kind == "f":
        return np.where(rows.signs == 0, zero, np.where(rows.signs < 0, -rows.values, rows.values))
    return rows.values * rows.signs


def _running_counts(segments: Segments, rows: Rows, base: Array) -> Array:
    if rows.signs is None:
        return segments.running_counts(base)
    return segments.running_sums(rows.signs.astype(np.int64), base)


_COUNT = SlotColumn("count", pa.int64(), np.int64)


class Count(Accumulator):
    columns = (_COUNT,)

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        return [_running_counts(segments, rows, base[0])]

    def result(self, state: list[Array]) -> Values:
        return Values(state[0])


class DecimalColumn(SlotColumn):
    """Sums of decimals: whole numbers of any size in memory, decimals in the store."""

    type: pa.DataType

    def to_arrow(self, values: Array) -> pa.Array:
        scale = self.type.scale
        return pa.array([Decimal(number or 0).scaleb(-scale, _PRECISE) for number in values.tolist()], self.type)

    def from_arrow(self, column: pa.Array) -> Array:
        scale = self.type.scale
        values = np.empty(len(column), object)
        values[:] = [int(number.scaleb(scale, _PRECISE)) for number in column.to_pylist()]
        return values


class Sum(Accumulator):
    """The sum, and how many values are in it: without any it is NULL."""

    def __init__(self, argument: pa.DataType, result: pa.DataType, wide: bool = False) -> None:
        """``wide``: floats are added as doubles, whatever they are."""
        self._float = pa.types.is_floating(argument)
        self._decimal = pa.types.is_decimal(argument)
        if self._decimal:
            total: SlotColumn = DecimalColumn("sum", pa.decimal256(76, argument.scale), object)
        elif self._float:
            single = argument == pa.float32() and not wide
            # Adding to -0.0 changes nothing, adding to 0.0 would make 0.0 of -0.0.
            total = SlotColumn("sum", pa.float64(), np.float32 if single else np.float64, -0.0)
        else:
            total = SlotColumn("sum", pa.int64(), np.int64)
        self._dtype = total.dtype
        self._result = result
        self.columns = (total, _COUNT)

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        values = _weighted(Rows(rows.values.astype(self._dtype, copy=False), rows.signs), -0.0)
        add = segments.running_float_sums if self._float else segments.running_sums
        return [add(values, base[0]), _running_counts(segments, rows, base[1])]

    def result(self, state: list[Array]) -> Values:
        total, count = state
        if not self._float and not self._decimal and self._result != pa.int64():
            # Sums of small integers wrap around in their own type.
            total = total.astype(self._result.to_pandas_dtype())
        return Values(total, count > 0)


class Average(Sum):
    def __init__(self, argument: pa.DataType, result: pa.DataType) -> None:
        super().__init__(argument, result, wide=True)
        self._scale = argument.scale if self._decimal else 0

    def result(self, state: list[Array]) -> Values:
        total, count = state
        known = count > 0
        by = np.where(known, count, 1)
        if self._decimal:
            scaled = total * 10 ** (self._result.scale - self._scale + 1)
            # A digit more, then half away from zero.
            quotients = [
                _half_up(number, divisor) for number, divisor in zip(scaled.tolist(), by.tolist(), strict=True)
            ]
            content = np.empty(len(quotients), object)
            content[:] = quotients
            return Values(content, known)
        if self._float:
            return Values((total / by).astype(self._result.to_pandas_dtype(), copy=False), known)
        # Towards zero, as Java divides.
        quotient = total // by
        quotient += (quotient < 0) & (quotient * by != total)
        return Values(quotient.astype(self._result.to_pandas_dtype(), copy=False), known)


def _half_up(tenths: int, divisor: int) -> int:
    """A tenth of a quotient, rounded half away from zero.

    >>> _half_up(25, 1), _half_up(-25, 1), _half_up(100, 3)
    (3, -3, 3)
    """
    sign = -1 if tenths < 0 else 1
    return sign * ((2 * abs(tenths) + 10 * divisor) // (20 * divisor))


class ChosenValue(Accumulator):
    """One of the values of a group: its state is that value, and whether there is one."""

    def result(self, state: list[Array]) -> Values:
        return Values(state[0], state[1].astype(bool, copy=False))

    def merge(self, segments: Segments, states: list[Array]) -> list[Array]:
        base = [column.fresh(len(segments.starts)) for column in self.columns]
        merged = self.run(segments, Rows(states[0], states[1].astype(np.int8)), base)
        return [column[segments.ends] for column in merged]


class Extreme(ChosenValue):
    """MIN or MAX where nothing is ever taken back."""

    def __init__(self, argument: pa.DataType, largest: bool) -> None:
        self._largest = largest
        self._objects = not pa.types.is_primitive(argument)
        self._decimal = pa.types.is_decimal(argument)
        self._whole = not (self._objects or self._decimal or pa.types.is_floating(argument))
        if self._decimal:
            column: SlotColumn = DecimalColumn("value", pa.decimal256(76, argument.scale), object)
        elif self._objects:
            column = SlotColumn("value", argument, object, None)
        elif self._whole:
            column = SlotColumn("value", pa.int64(), np.int64)
        else:
            column = SlotColumn("value", pa.float64(), np.float64)
        self.columns = (column, SlotColumn("known", pa.bool_(), bool, False))

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        former, was_known = base
        counted = None if rows.signs is None else rows.signs > 0
        if counted is None:
            known = np.ones(segments.rows, bool)
        else:
            known = segments.running_sums(counted.astype(np.int64), was_known.astype(np.int64)) > 0
        if self._whole:
            found = self._of_numbers(segments, rows.values.astype(np.int64, copy=False), counted, former, was_known)
            if found is not None:
                return [found, known]
        return [self._by_rank(segments, rows.values, counted, former, was_known), known]

    def _of_numbers(
        self, segments: Segments, values: Array, counted: Array | None, former: Array, was_known: Array
    ) -> Array | None:
        if not self._largest:
            # The complement turns the order round, and every number has one.
            values, former = ~values, ~former
        bounds = [*_bounds(values if counted is None else values[counted]), *_bounds(former[was_known])]
        if not bounds:
            return np.zeros(segments.rows, np.int64)
        least, most = min(bounds) - 1, max(bounds)
        if not segments.fits(least, most):
            return None
        if counted is not None:
            values = np.where(counted, values, least)
        found = segments.running_max(values, np.where(was_known, former, least))
        return found if self._largest else ~found

    def _by_rank(
        self, segments: Segments, values: Array, counted: Array | None, former: Array, was_known: Array
    ) -> Array:
        """Compares places in the order of all values in place of values."""
        chosen = values if counted is None else values[counted]
        distinct, places = distinct_in_order(np.concatenate((chosen, former[was_known])))
        if not len(distinct):
            found = np.empty(segments.rows, self.columns[0].dtype)
            found[:] = self.columns[0].initial
            return found
        places = places if self._largest else len(distinct) - 1 - places
        ranks = np.full(segments.rows, -1, np.int64)
        ranks[slice(None) if counted is None else counted] = places[: len(chosen)]
        base = np.full(len(former), -1, np.int64)
        base[was_known] = places[len(chosen) :]
        best = segments.running_max(ranks, base)
        return distinct[best if self._largest else len(distinct) - 1 - np.maximum(best, 0)]


class RetractingExtreme(Extreme):
    """MIN or MAX where rows are taken back. It sees each value of a group once, when it comes and when it goes, and
    keeps those that are there in order, in a list that is not stored: it is made anew of the counts of values."""

    def __init__(self, argument: pa.DataType, largest: bool) -> None:
        super().__init__(argument, largest)
        self.columns = (*self.columns, SlotColumn("values", None, object, None))

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        former, was_known, lists = base
        signs = rows.signs
        assert signs is not None, "each value is seen once, so rows have weights"
        # What happens at a row where something does is worked out one by one; the rows after it have the same.
        at = np.flatnonzero(signs)
        place = -1 if self._largest else 0
        found: list[Any] = []
        for segment, sign, value in zip(
            segments.numbers[at].tolist(), signs[at].tolist(), rows.values[at].tolist(), strict=True
        ):
            values = lists[segment]
            if values is None:
                values = lists[segment] = []
            where = bisect_left(values, value)
            if sign > 0:
                values.insert(where, value)
            elif where < len(values) and values[where] == value:
                del values[where]
            found.append(values[place] if values else None)
        last = np.full(segments.rows, -1, np.int64)
        last[at] = np.arange(len(at))
        last = segments.running_max(last, np.full(len(lists), -1, np.int64))
        changed = last >= 0
        known = segments.spread(was_known)
        results = segments.spread(former)
        if found:
            there = np.array([value is not None for value in found], bool)
            filled = np.empty(len(found), former.dtype)
            filled[:] = [former.dtype.type(0) if value is None and former.dtype != object else value for value in found]
            results = np.where(changed, filled[last], results)
            known = np.where(changed, there[last], known)
        return [results, known, segments.spread(lists)]

    def result(self, state: list[Array]) -> Values:
        return super().result(state[:2])


def _bounds(values: Array) -> tuple[int, ...]:
    return (int(values.min()), int(values.max())) if len(values) else ()
