"""Functions over the rows around each row, where all rows are in this process: what :class:`AnalyticWindow` means.

Rows are sorted by partition and order. Then every frame is a run of rows, and an aggregate of a frame is what GROUP BY
gives for these rows: the operators of groups compute it, each different frame once.
"""

from __future__ import annotations

import bisect
import datetime
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from firesteel.table.batch.ordering import sorted_rows
from firesteel.table.catalog.tables import InlineTable
from firesteel.table.logical.analytic_windows import RANKING, AnalyticWindow, Frame
from firesteel.table.logical.expressions import AggregateCall
from firesteel.table.logical.plan import Aggregate, Plan, Scan, SortOrder
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import BigIntType, RowType

__all__ = ["analysed"]

Run = tuple[int, int]
"""Rows from one place up to another, which is not in it."""

_AT_ONCE = 1 << 20
"""So many rows of frames are aggregated at once, or one frame."""


def analysed(rows: pa.Table, plan: AnalyticWindow, groups: Callable[[Plan], pa.Table]) -> pa.Table:
    """The rows with a column for each call. ``groups`` runs an aggregate."""
    rows = sorted_rows(rows, [*(SortOrder(key) for key in plan.partition), *plan.order])
    partitions = _Partitions(rows, plan)
    for index, (call, frame) in enumerate(zip(plan.calls, plan.frames, strict=True)):
        name = plan.names[len(plan.input.names) + index]
        kind = arrow_type(call.type)
        if call.function in RANKING and call.user is None:
            column = pa.array(_ranked(call, partitions, rows), kind)
        else:
            column = _aggregated(call, list(partitions.frames(frame)), rows, plan, groups)
        rows = rows.append_column(pa.field(name, kind), column)
    return rows


class _Partitions:
    """Where partitions begin and end, and which of their rows are equal in the order."""

    def __init__(self, rows: pa.Table, plan: AnalyticWindow) -> None:
        keys = _tuples(rows, plan.partition)
        self.values = _tuples(rows, [each.column for each in plan.order])
        self._order = plan.order
        self.runs = list(_runs(keys, 0, rows.num_rows))

    def peers(self, run: Run) -> Iterator[Run]:
        """Runs of rows of a partition that are equal in the order."""
        return _runs(self.values, *run)

    def frames(self, frame: Frame) -> Iterator[Run]:
        """The frame of each row."""
        for run in self.runs:
            if frame.rows:
                first, last = run
                for at in range(first, last):
                    start = first if frame.start is None else min(max(at + int(frame.start), first), last)
                    end = last if frame.end is None else max(min(at + int(frame.end) + 1, last), start)
                    yield start, end
            else:
                yield from self._ranges(frame, run)

    def _ranges(self, frame: Frame, run: Run) -> Iterator[Run]:
        descending = bool(self._order) and self._order[0].descending
        near = frame.start in (None, 0) and frame.end in (None, 0)
        first, last = run
        numbers = [] if near else [_number(value[0]) for value in self.values[first:last]]
        known = [at for at, number in enumerate(numbers) if number is not None]
        # NULLs stand together at one end of the partition, and have each other for neighbours only.
        low = known[0] if known else 0
        sorted_numbers = [-numbers[at] if descending else numbers[at] for at in known]
        for start, end in self.peers(run):
            begin, finish = start, end
            number = None if near else numbers[start - first]
            if number is not None:
                own = -number if descending else number
                if frame.start is not None:
                    begin = first + low + bisect.bisect_left(sorted_numbers, own + frame.start)
                if frame.end is not None:
                    finish = first + low + bisect.bisect_right(sorted_numbers, own + frame.end)
            begin = first if frame.start is None else begin
            finish = max(last if frame.end is None else finish, begin)
            yield from [(begin, finish)] * (end - start)


def _tuples(rows: pa.Table, columns: Sequence[int]) -> list[tuple[Any, ...]]:
    if not columns:
        return [()] * rows.num_rows
    return list(zip(*(rows.column(at).to_pylist() for at in columns), strict=True))


def _runs(values: list[tuple[Any, ...]], first: int, last: int) -> Iterator[Run]:
    start = first
    for _, equal in groupby(range(first, last), key=lambda at: repr(values[at])):
        size = sum(1 for _ in equal)
        yield start, start + size
        start += size


def _number(value: Any) -> Any:
    """In the measure of distances: times in milliseconds."""
    if isinstance(value, datetime.datetime):
        whole = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        return whole / datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)) // datetime.timedelta(milliseconds=1)
    return value


# Places.


def _ranked(call: AggregateCall, partitions: _Partitions, rows: pa.Table) -> list[Any]:
    if call.function in ("LAG", "LEAD"):
        return _shifted(call, partitions.runs, rows)
    found: list[Any] = []
    for run in partitions.runs:
        size = run[1] - run[0]
        if call.function == "ROW_NUMBER":
            found += range(1, size + 1)
        elif call.function == "NTILE":
            found += _tiles(size, call.options[0])
        else:
            for place, (start, end) in enumerate(partitions.peers(run), 1):
                before = start - run[0]
                found += [_PLACES[call.function](place, before, end - run[0], size)] * (end - start)
    return found


_PLACES: dict[str, Callable[[int, int, int, int], float]] = {
    "RANK": lambda place, before, until, size: before + 1,
    "DENSE_RANK": lambda place, before, until, size: place,
    "PERCENT_RANK": lambda place, before, until, size: before / (size - 1) if size > 1 else 0.0,
    "CUME_DIST": lambda place, before, until, size: until / size,
}


def _tiles(size: int, count: int) -> list[int]:
    """The first ones are one row larger where it does not divide evenly."""
    width, larger = divmod(size, count)
    return [tile for tile in range(1, count + 1) for _ in range(width + (tile <= larger))]


def _shifted(call: AggregateCall, runs: list[Run], rows: pa.Table) -> list[Any]:
    values = rows.column(call.args[0]).to_pylist()
    defaults = rows.column(call.args[1]).to_pylist() if len(call.args) > 1 else [None] * len(values)
    away = call.options[0] if call.function == "LEAD" else -call.options[0]
    return [
        values[at + away] if first <= at + away < last else defaults[at]
        for first, last in runs
        for at in range(first, last)
    ]


# Aggregates.


def _aggregated(
    call: AggregateCall, frames: list[Run], rows: pa.Table, plan: AnalyticWindow, groups: Callable[[Plan], pa.Table]
) -> pa.Array:
    numbers = {run: number for number, run in enumerate(dict.fromkeys(frames))}
    empty = 0 if call.function == "COUNT" else None
    results: list[Any] = [empty] * len(numbers)
    for part in _parts(list(numbers)):
        for number, value in _groups(call, {run: numbers[run] for run in part}, rows, plan, groups):
            results[number] = value
    column = pa.array(results, arrow_type(call.type))
    return column.take(pa.array([numbers[run] for run in frames], pa.int64()))


def _parts(runs: list[Run]) -> Iterator[list[Run]]:
    part: list[Run] = []
    size = 0
    for run in runs:
        if part and size + run[1] - run[0] > _AT_ONCE:
            yield part
            part, size = [], 0
        part.append(run)
        size += run[1] - run[0]
    if part:
        yield part


def _groups(
    call: AggregateCall,
    numbers: dict[Run, int],
    rows: pa.Table,
    plan: AnalyticWindow,
    groups: Callable[[Plan], pa.Table],
) -> Iterator[tuple[int, Any]]:
    """Each row as often as there are frames that have it, grouped by frame."""
    width = len(plan.input.names)
    places = pa.array([at for run in numbers for at in range(*run)], pa.int64())
    owners = pa.array([number for run, number in numbers.items() for _ in range(*run)], pa.int64())
    repeated = rows.select(range(width)).take(places).append_column("$frame", owners)
    kind = BigIntType(is_nullable=False)
    row_type = RowType.of([*plan.input.names, "$frame"], [*plan.input.types, kind])
    scan = Scan(("frames",), row_type, InlineTable(row_type, tuple(repeated.combine_chunks().to_batches())))
    found = groups(Aggregate(scan, (width,), (call,), ("$frame", "$result")))
    yield from zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True)
