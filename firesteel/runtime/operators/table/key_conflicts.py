"""Several rows with the same key: the first one stays, or the job fails, also where they are equal (as in Flink)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.common.type_system.keys import plain
from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.errors import InputError
from firesteel.runtime.columns.kinds import DELETE, INSERT, UPDATE_AFTER, data_of, kinds_of, with_kinds
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.row_lists import Entry, RowLists, row_tuples
from firesteel.runtime.operators.table.specs import KeyConflicts
from firesteel.runtime.state.columnar.key_words import distinct_keys
from firesteel.runtime.state.columnar.slots import SlotTable

__all__ = ["KeyConflictsOperator", "stored_schema"]

Array = npt.NDArray[Any]
Row = tuple[Any, ...]

_STANDS, _COMES, _GOES = "stands", "comes", "goes"
_FEW = 16
"""Entries of a key that are looked through one by one."""


def stored_schema(input: pa.Schema) -> pa.Schema:
    """What is kept of a row: whether it stands, or what it is going to do at the next watermark, and its columns."""
    return pa.schema([pa.field("state", pa.string()), *input])


@handles(KeyConflicts)
class KeyConflictsOperator(StreamOperator[KeyConflicts]):
    """Changes wait for the watermark: until then rows of a key may come and go, as they do where a row moves from one
    key to another. Then those of each key are put together with the row that stands, and one is left, or none."""

    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        key_types = [spec.schema.field(key).type for key in spec.keys]
        self._table = SlotTable(key_types, [RowLists.of(stored_schema(spec.schema), ())])
        context.keep_columns("rows", self._table)
        self._waiting: dict[int, None] = {}
        """Slots with changes, in the order of their first ones."""
        self._generation = -1
        """That of the table for which they are known."""
        self._long: dict[int, _LongList] = {}
        """Of slots with many changes, until the end of the micro-batch. The table has them as they were."""

    def process(self, records: Records) -> None:
        for batch in records.values:
            self._take(batch)

    def _take(self, whole: pa.RecordBatch) -> None:
        kinds, batch = kinds_of(whole), data_of(whole)
        if not batch.num_rows:
            return
        waiting = self._slots_with_changes()
        codes, keys = distinct_keys([batch.column(key) for key in self.spec.keys], batch.num_rows)
        touched = self._table.slots(keys)[codes]
        lists = self._table.values[0]
        comes = (
            [True] * batch.num_rows if kinds is None else [kind in (INSERT, UPDATE_AFTER) for kind in kinds.tolist()]
        )
        for slot, row, adds in zip(touched.tolist(), row_tuples(batch.columns), comes, strict=True):
            entries = lists[slot]
            if entries is None:
                entries = lists[slot] = []
            if slot in self._long:
                self._long[slot].note(row, adds)
            elif len(entries) < _FEW:
                _note(entries, row, adds)
            else:
                self._long[slot] = _LongList(entries)
                self._long[slot].note(row, adds)
            waiting[slot] = None
        self._store(np.unique(touched))

    def on_watermark(self, watermark: int) -> None:
        waiting = self._slots_with_changes()
        if not waiting:
            return
        self._close_long_lists()
        changes: list[tuple[int, Row]] = []
        lists = self._table.values[0]
        for slot in waiting:
            if lists[slot] is not None:
                self._settle(lists[slot], changes)
        self._store(np.array(list(waiting), np.int64))
        waiting.clear()
        if changes:
            columns = zip(*(row for _, row in changes), strict=True)
            schema = self.spec.schema
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            kinds = np.array([kind for kind, _ in changes], np.int8)
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            self.context.emit([with_kinds(batch, kinds if kinds.any() else None)])

    def end_batch(self) -> None:
        if self._long:
            self._slots_with_changes()
            self._store(self._close_long_lists())

    def _close_long_lists(self) -> Array:
        """Puts them back into the table. Gives their slots."""
        lists = self._table.values[0]
        for slot, changed in self._long.items():
            lists[slot] = changed.entries()
        slots = np.array(list(self._long), np.int64)
        self._long.clear()
        return slots

    def _settle(self, entries: list[Entry], changes: list[tuple[int, Row]]) -> None:
        """Leaves the row that stands in the list, and notes what that changes."""
        before = entries[0][1][1:] if entries and entries[0][1][0] == _STANDS else None
        rows: list[Row] = []
        stands = before
        for _, (state, *columns) in entries:
            row = tuple(columns)
            if state == _COMES:
                rows.append(row)
            elif state == _GOES and row == stands:
                # Of rows that come none goes any more.
                stands = None
        if stands is not None:
            rows.insert(0, stands)
        if len(rows) > 1 and self.spec.fails:
            raise InputError(self._conflict(rows))
        entries[:] = [((), (_STANDS, *row)) for row in rows[:1]]
        if not rows:
            if before is not None:
                changes.append((DELETE, before))
        elif before is None:
            changes.append((INSERT, rows[0]))
        elif before != rows[0]:
            changes.append((UPDATE_AFTER, rows[0]))

    def _conflict(self, rows: list[Row]) -> str:
        schema, (one, other, *_) = self.spec.schema, rows
        key = ", ".join(f"{schema.field(at).name}={one[at]}" for at in self.spec.keys)
        equal = " Equal rows count as two, as in Flink." if one == other else ""
        return (
            f"{self.spec.target}: two rows have the same primary key ({key}): {one} and {other}.{equal} "
            "ON CONFLICT DO NOTHING keeps the first one, ON CONFLICT DO DEDUPLICATE the last."
        )

    def _slots_with_changes(self) -> dict[int, None]:
        table = self._table
        if self._generation != table.generation:
            lists = table.values[0][: table.size].tolist()
            found = [slot for slot, entries in enumerate(lists) if entries and entries[-1][1][0] != _STANDS]
            self._waiting, self._generation = dict.fromkeys(found), table.generation
            self._long.clear()
        return self._waiting

    def _store(self, slots: Array) -> None:
        lists = self._table.values[0]
        empty = np.array([not lists[slot] for slot in slots.tolist()], bool)
        self._table.put(slots[~empty])
        self._table.remove(slots[empty])


def _note(entries: list[Entry], row: Row, adds: bool) -> None:
    """Adds a change to those that wait. What comes and goes in between was never there, and has no place in the order
    of the rows."""
    undone: Entry = ((), (_GOES if adds else _COMES, *row))
    if undone in entries:
        entries.remove(undone)
    else:
        entries.append(((), (_COMES if adds else _GOES, *row)))


class _LongList:
    """Entries of a key among which one is found without looking at the others; :meth:`note` does what ``_note`` does.

    >>> long = _LongList([((), (_STANDS, 1)), ((), (_COMES, 2)), ((), (_COMES, 3)), ((), (_COMES, 2))])
    >>> for row, adds in [((2,), False), ((1,), False), ((4,), False), ((4,), True)]:
    ...     long.note(row, adds)
    >>> [entry for _, entry in long.entries()]
    [('stands', 1), ('comes', 3), ('comes', 2), ('goes', 1)]
    """

    def __init__(self, entries: list[Entry]) -> None:
        self._entries: dict[tuple[Any, int], Entry] = {}
        """In their order, by what they are and a number, which tells equal ones apart."""
        self._numbers: dict[Any, tuple[int, int]] = {}
        """Of entries that are equal: the first number, and the one behind the last."""
        for entry in entries:
            self._append(entry)

    def note(self, row: Row, adds: bool) -> None:
        undone = plain((_GOES if adds else _COMES, *row))
        if undone not in self._numbers:
            self._append(((), (_COMES if adds else _GOES, *row)))
            return
        first, end = self._numbers.pop(undone)
        del self._entries[undone, first]
        if first + 1 < end:
            self._numbers[undone] = first + 1, end

    def _append(self, entry: Entry) -> None:
        what = plain(entry[1])
        first, end = self._numbers.get(what, (0, 0))
        self._entries[what, end] = entry
        self._numbers[what] = first, end + 1

    def entries(self) -> list[Entry]:
        return list(self._entries.values())
