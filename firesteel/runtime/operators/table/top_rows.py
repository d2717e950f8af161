"""Top-N of rows that are only added: the lists of a batch's partitions change row by row, as numbers of rows; the rows
of the result are then taken from columns, all at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.runtime.columns.kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, with_kinds
from firesteel.runtime.operators.table.row_lists import Entry, row_places, row_tuples
from firesteel.runtime.operators.table.specs import Rank

__all__ = ["TopRows"]

Array = npt.NDArray[Any]


class TopRows:
    """The lists that one batch of rows changes. A row is a number: its place in the batch, and behind those the rows
    that the lists had before, as they are needed."""

    def __init__(self, spec: Rank, batch: pa.RecordBatch) -> None:
        self._spec = spec
        self._batch = batch
        self._former: list[tuple[Any, ...]] = []
        self._lists: dict[int, tuple[list[Any], list[int]]] = {}
        """By slot: what the rows are ordered by, and their numbers."""
        self._changed: set[int] = set()

    def insert(self, slots: Sequence[int], lists: Array) -> pa.RecordBatch | None:
        """Puts the rows in, each into the list of its slot. Gives the changes of the result."""
        spec, opened, changed = self._spec, self._lists, self._changed
        first, end, last_wins = spec.start - 1, spec.end, spec.last_wins
        bisect = bisect_left if last_wins else bisect_right
        # With its place in the result a row moves all behind it; without it only the last one goes.
        shifts = spec.with_rank or end == 1
        moved: list[int] = []
        begins: list[int] = []
        ends: list[int] = []
        for number, (slot, place) in enumerate(zip(slots, row_places(self._batch.columns, spec.order), strict=True)):
            places, rows = opened.get(slot) or self._opened(slot, lists)
            full = len(rows) >= end
            if full and (places[-1] < place if last_wins else not place < places[-1]):
                continue
            at = bisect(places, place)
            places.insert(at, place)
            rows.insert(at, number)
            changed.add(slot)
            if len(rows) > first:
                at = max(at, first)
                moved += rows[at:] if shifts else (rows[at], rows[-1])
                begins.append(at)
                ends.append(len(rows))
            if full:
                del places[-1], rows[-1]
        if not moved:
            return None
        of = self._shifted if shifts else self._exchanged
        return of(np.array(moved), np.array(begins), np.array(ends))

    def _opened(self, slot: int, lists: Array) -> tuple[list[Any], list[int]]:
        entries: list[Entry] = lists[slot] or []
        first = self._batch.num_rows + len(self._former)
        self._former += [row for _, row in entries]
        found = self._lists[slot] = [place for place, _ in entries], list(range(first, first + len(entries)))
        return found

    def _shifted(self, now: Array, begins: Array, ends: Array) -> pa.RecordBatch | None:
        """For each insertion the rows from its place to the end of the list, each of which was a place before."""
        lengths = ends - begins
        bounds = np.cumsum(lengths)
        # Nothing was at the place of the last one. Where the list was full it has fallen out.
        last, fallen = np.zeros(len(now), bool), np.zeros(len(now), bool)
        last[bounds - 1] = True
        fallen[bounds - 1] = ends > self._spec.end
        was = np.where(last, now, np.roll(now, -1))
        ranks = np.arange(1, len(now) + 1) + np.repeat(begins - bounds + lengths, lengths)
        differs = ~last
        differs[differs] = self._differ(was[differs], now[differs])
        return self._pairs(
            (was, differs & self._spec.update_before, UPDATE_BEFORE),
            (now, differs | (last & ~fallen), np.where(last, INSERT, UPDATE_AFTER)),
            ranks,
        )

    def _exchanged(self, moved: Array, begins: Array, ends: Array) -> pa.RecordBatch | None:
        """For each insertion the row that comes, and the last one of the list, which goes if the list was full."""
        return self._pairs(
            (moved[1::2], ends > self._spec.end, DELETE), (moved[::2], np.ones(len(ends), bool), INSERT), begins
        )

    def _differ(self, these: Array, those: Array) -> Array:
        """Whether two rows have different values. Those that are ordered alike are looked at one by one."""
        alike = np.ones(len(these), bool)
        for order in self._spec.order:
            column = self._column(order.column)
            first, second = column.take(pa.array(these)), column.take(pa.array(those))
            # NULL and NaN are each like themselves.
            nothing = pc.and_(pc.is_null(first, nan_is_null=True), pc.is_null(second, nan_is_null=True))
            same = pc.or_(pc.fill_null(pc.equal(first, second), False), nothing)
            alike &= same.to_numpy(zero_copy_only=False)
        found = np.flatnonzero(alike)
        if not len(found):
            return ~alike
        columns = [self._column(at) for at in range(self._batch.num_columns)]
        first_rows, second_rows = (
            row_tuples([column.take(pa.array(rows[found])) for column in columns]) for rows in (these, those)
        )
        equal = [one == other for one, other in zip(first_rows, second_rows, strict=True)]
        alike[found] = equal
        return ~alike

    def _column(self, at: int) -> pa.Array:
        """A column of all rows, those of the batch and those that were in lists before."""
        column = self._batch.column(at)
        if not self._former:
            return column
        return pa.concat_arrays([column, pa.array([row[at] for row in self._former], column.type)])

    def _pairs(
        self, before: tuple[Array, Array, Any], after: tuple[Array, Array, Any], ranks: Array
    ) -> pa.RecordBatch | None:
        """Changes in pairs: what was there, and what is; each the number of a row, whether it counts, and its kind."""
        count = 2 * len(ranks)
        rows, kept, kinds = np.empty(count, np.int64), np.empty(count, bool), np.empty(count, np.int8)
        for at, (numbers, wanted, kind) in enumerate((before, after)):
            rows[at::2], kept[at::2], kinds[at::2] = numbers, wanted, kind
        rows, kinds = rows[kept], kinds[kept]
        if not len(rows):
            return None
        spec, places = self._spec, pa.array(rows)
        width = len(spec.schema) - spec.with_rank
        columns = [self._column(at).take(places) for at in range(width)]
        if spec.with_rank:
            columns.append(pa.array(np.repeat(ranks, 2)[kept], spec.schema.field(width).type))
        batch = pa.RecordBatch.from_arrays(columns, schema=spec.schema)
        return with_kinds(batch, kinds if kinds.any() else None)

    def close(self, lists: Array) -> list[int]:
        """Puts the lists that changed back. Gives their slots."""
        rows = self._batch.num_rows
        slots = list(self._changed)
        kept = sorted({number for slot in slots for number in self._lists[slot][1] if number < rows})
        taken = self._batch.take(pa.array(kept, pa.int64()))
        found = dict(zip(kept, row_tuples(taken.columns), strict=True))
        former = self._former
        for slot in slots:
            places, numbers = self._lists[slot]
            lists[slot] = [
                (place, found[number] if number < rows else former[number - rows])
                for place, number in zip(places, numbers, strict=True)
            ]
        return slots
