"""Aggregates for which the order of rows matters: FIRST_VALUE, LAST_VALUE, LAG, RANK; and those that keep all values:
LISTAGG, COLLECT, ARRAY_AGG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.common.type_system.keys import plain, unique_pairs
from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.operators.table.accumulators import (
    Accumulator,
    ChosenValue,
    DecimalColumn,
    Rows,
    Values,
    arrow_of,
    numpy_of,
)
from firesteel.runtime.state.columnar.slots import SlotColumn

__all__ = ["EndValue", "Lag", "Rank", "ValueList", "collected", "value_column"]

Array = npt.NDArray[Any]


def value_column(name: str, kind: pa.DataType) -> SlotColumn:
    """A place for values of a column, as :func:`~firesteel.runtime.operators.table.accumulators.numpy_of` has them."""
    if pa.types.is_decimal(kind):
        return DecimalColumn(name, pa.decimal256(76, kind.scale), object)
    if pa.types.is_boolean(kind):
        return SlotColumn(name, pa.int8(), np.int8)
    if pa.types.is_temporal(kind):
        plain = pa.int32() if kind.bit_width == 32 else pa.int64()
        return SlotColumn(name, plain, plain.to_pandas_dtype())
    if pa.types.is_primitive(kind):
        return SlotColumn(name, kind, kind.to_pandas_dtype())
    return SlotColumn(name, kind, object, None)


_KNOWN = SlotColumn("known", pa.bool_(), bool, False)


class EndValue(ChosenValue):
    """FIRST_VALUE or LAST_VALUE where nothing is taken back. NULLs do not count."""

    def __init__(self, argument: pa.DataType, last: bool) -> None:
        self._last = last
        self.columns = (value_column("value", argument), _KNOWN)

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        former, was_known = base
        places = np.arange(segments.rows)
        counted = np.ones(segments.rows, bool) if rows.signs is None else rows.signs > 0
        if not self._last:
            # Only the first one of a segment that has none yet.
            so_far = segments.running_sums(counted.astype(np.int64), was_known.astype(np.int64))
            counted = counted & (so_far == 1)
        nothing = np.full(len(former), -1, np.int64)
        found = segments.running_max(np.where(counted, places, -1), nothing)
        here = found >= 0
        values = segments.spread(former)
        values[here] = rows.values[found[here]]
        return [values, here | segments.spread(was_known)]


class Lag(Accumulator):
    """The value so many rows before the current one."""

    def __init__(self, argument: pa.DataType, offset: int, default: Any) -> None:
        self._offset = offset
        self._type = argument
        self._default = numpy_of(pa.array([default], argument))
        self.columns = (
            value_column("value", argument),
            _KNOWN,
            SlotColumn("recent", pa.list_(argument), object, None),
        )

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        offset, recent = self._offset, base[2]
        known = np.ones(segments.rows, bool) if rows.signs is None else rows.signs != 0
        # The values that are remembered stand before those of the batch.
        lists = [[] if values is None else values for values in recent.tolist()]
        kept = np.array([len(values) for values in lists], np.int64)
        former = numpy_of(pa.array([value for values in lists for value in values], self._type))
        there = np.ones(len(former.content), bool) if former.known is None else former.known
        order = np.argsort(np.concatenate((np.repeat(np.arange(len(kept)), kept), segments.numbers)), kind="stable")
        content = np.concatenate((former.content, rows.values))[order]
        every_known = np.concatenate((there, known))[order]
        starts = segments.starts + np.cumsum(kept) - kept
        at = np.arange(segments.rows) + np.repeat(np.cumsum(kept), segments.counts)
        source = at - offset
        inside = source >= np.repeat(starts, segments.counts)
        values, found = content[np.maximum(source, 0)], every_known[np.maximum(source, 0)]
        if not inside.all():
            values = values.copy()
            values[~inside] = self._default.content[0]
            found = np.where(inside, found, self._default.known is None)
        return [values, found, self._remembered(segments, content, every_known, starts, at)]

    def _remembered(self, segments: Segments, content: Array, known: Array, starts: Array, at: Array) -> Array:
        """The last values of each segment, at its end."""
        ends = at[segments.ends] + 1
        first = np.maximum(starts, ends - self._offset)
        counts = ends - first
        stops = np.cumsum(counts)
        chosen = np.repeat(first - (stops - counts), counts) + np.arange(int(counts.sum()))
        values = arrow_of(Values(content[chosen], known[chosen]), self._type).to_pylist()
        lists = np.empty(segments.rows, object)
        for row, stop, count in zip(segments.ends.tolist(), stops.tolist(), counts.tolist(), strict=True):
            lists[row] = values[stop - count : stop]
        return lists

    def result(self, state: list[Array]) -> Values:
        return Values(state[0], state[1].astype(bool, copy=False))


class Rank(Accumulator):
    """RANK or DENSE_RANK by the values of a column, which come in order."""

    def __init__(self, dense: bool) -> None:
        self._dense = dense
        self.columns = (
            SlotColumn("rank", pa.int64(), np.int64),
            SlotColumn("rows", pa.int64(), np.int64),
            SlotColumn("value", pa.int64(), np.int64),
        )

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        rank, count, value = base
        values = rows.values.astype(np.int64, copy=False)
        counts = segments.running_counts(count)
        others = values != segments.before(values, value)
        others[segments.starts] |= count == 0
        if self._dense:
            ranks = segments.running_sums(others.astype(np.int64), rank)
        else:
            ranks = segments.running_max(np.where(others, counts, 0), rank)
        return [ranks, counts, values]

    def result(self, state: list[Array]) -> Values:
        return Values(state[0])


_UNKNOWN = object()


class ValueList(Accumulator):
    """Keeps the values of each group in the order in which they came, and makes the result of the list. What is taken
    back is the first value that is equal."""

    plain_values = True

    def __init__(
        self,
        argument: pa.DataType,
        make: Callable[[list[Any]], Any],
        result: pa.DataType,
        with_nulls: bool = False,
        empty: Any = None,
    ) -> None:
        """``empty``: the result of a group that has no values."""
        self._empty = empty
        self.counts_nulls = with_nulls
        self._make = make
        self._result = result
        self._scalar = not pa.types.is_nested(result)
        self.columns = (
            SlotColumn("values", pa.list_(argument), object, None),
            SlotColumn("result", None, object, _UNKNOWN),
        )

    def run(self, segments: Segments, rows: Rows, base: list[Array]) -> list[Array]:
        lists, shown = base
        results = np.empty(segments.rows, object)
        values = rows.values.tolist()
        signs = [1] * segments.rows if rows.signs is None else rows.signs.tolist()
        eager = self.eager
        starts, counts = segments.starts.tolist(), segments.counts.tolist()
        for number, (start, count) in enumerate(zip(starts, counts, strict=True)):
            own = lists[number]
            own = [] if own is None else own
            if eager and shown[number] is _UNKNOWN:
                shown[number] = self._of(own)
            current = shown[number] if eager else _UNKNOWN
            for at in range(start, start + count):
                sign = signs[at]
                if sign:
                    self._change(own, values[at], sign)
                    if eager:
                        current = self._of(own)
                results[at] = current
            lists[number] = own
        return [segments.spread(lists), results]

    def _change(self, values: list[Any], value: Any, sign: int) -> None:
        if sign > 0:
            values.append(value)
            return
        if not isinstance(value, list | dict | float):
            with suppress(ValueError):
                values.remove(value)
            return
        wanted = plain(value)
        for at, known in enumerate(values):
            if plain(known) == wanted:
                del values[at]
                return

    def _of(self, values: list[Any] | None) -> Any:
        return self._make(values) if values else self._empty

    def result(self, state: list[Array]) -> Values:
        lists, shown = state
        content = np.empty(len(shown), object)
        content[:] = [
            self._of(values) if known is _UNKNOWN else known
            for values, known in zip(lists.tolist(), shown.tolist(), strict=True)
        ]
        if self._scalar and self._result != pa.string():
            return numpy_of(pa.array(content.tolist(), self._result))
        there = np.array([value is not None for value in content], bool)
        return Values(content, there)

    def merge(self, segments: Segments, states: list[Array]) -> list[Array]:
        merged = np.empty(len(segments.starts), object)
        lists = states[0].tolist()
        for number, (start, count) in enumerate(zip(segments.starts.tolist(), segments.counts.tolist(), strict=True)):
            merged[number] = [value for own in lists[start : start + count] for value in own or ()]
        return [merged, self.columns[1].fresh(len(merged))]


def collected(values: list[Any]) -> list[tuple[Any, int]]:
    """COLLECT: each value and how often it is there.

    >>> collected([[1], [2], [1]])
    [([1], 2), ([2], 1)]
    """
    if not isinstance(values[0], list | dict):
        return list(Counter(values).items())
    counts = Counter(map(plain, values))
    return [(value, counts[plain(value)]) for value, _ in unique_pairs((value, None) for value in values)]
