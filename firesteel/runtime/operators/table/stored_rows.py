"""Rows that an operator keeps: until a watermark has come, or as long as they are in a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.runtime.columns.packing import joined
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.accumulators import Values, arrow_of, numpy_of
from firesteel.runtime.operators.table.sequence_accumulators import value_column
from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["StoredRows", "WaitingRows"]

Array = npt.NDArray[Any]

_NEVER = (1 << 63) - 1


class StoredRows:
    """A slot for each row. Rows of a key stay in the order in which they came.

    >>> from firesteel.runtime.state.store import MemoryStore
    >>> rows = StoredRows(pa.schema([("word", pa.string()), ("n", pa.int64())]), (0,))
    >>> rows.table.attach(b"rows", MemoryStore(), {})
    >>> batch = pa.record_batch({"word": ["a", "b"], "n": pa.array([1, None])})
    >>> _ = rows.add(batch, np.array([7, 8]))
    >>> slots, times = rows.content()
    >>> rows.batch(slots[times > 7]).to_pylist()
    [{'word': 'b', 'n': None}]
    """

    def __init__(self, schema: pa.Schema, keys: Sequence[int]) -> None:
        self._schema = schema
        self._keys = tuple(dict.fromkeys(keys))
        # A key may use a column twice.
        self._key_columns = tuple(keys)
        self._others = [at for at in range(len(schema)) if at not in self._keys]
        columns: list[SlotColumn] = []
        for at in self._others:
            columns += [value_column(f"c{at}", schema.field(at).type), SlotColumn(f"c{at} known", pa.bool_(), bool)]
        key_types = [schema.field(key).type for key in self._key_columns]
        self.table = SlotTable(key_types, columns, [pa.int64(), pa.int64()])
        """The key, a time and a number, both of which are never NULL."""
        self._generation = -1
        self._next = 0

    def add(self, batch: pa.RecordBatch, times: Array) -> Array:
        """Puts rows behind the others. Gives their slots."""
        rows, table = batch.num_rows, self.table
        if self._generation != table.generation:
            slots = np.flatnonzero(table.alive[: table.size])
            numbers = table.key_numbers(slots, len(self._key_columns) + 1)
            self._next = max(self._next, int(numbers.max()) + 1 if len(numbers) else 0)
            self._generation = table.generation
        numbers = np.arange(self._next, self._next + rows)
        self._next += rows
        keys = [batch.column(key) for key in self._key_columns]
        found = table.slots([*keys, pa.array(times), pa.array(numbers)])
        for place, at in enumerate(self._others):
            content, known = numpy_of(batch.column(at))
            table.values[2 * place][found] = content
            table.values[2 * place + 1][found] = True if known is None else known
        table.put(found)
        return found

    def content(self) -> tuple[Array, Array]:
        """All rows in the order in which they came: their slots, and their times."""
        table = self.table
        slots = np.flatnonzero(table.alive[: table.size])
        slots = slots[np.argsort(table.key_numbers(slots, len(self._key_columns) + 1), kind="stable")]
        return slots, self.times(slots)

    def times(self, slots: Array) -> Array:
        """The times of some rows."""
        return self.table.key_numbers(slots, len(self._key_columns))

    def batch(self, slots: Array) -> pa.RecordBatch:
        """Some rows."""
        columns: list[Any] = [None] * len(self._schema)
        for at, column in zip(self._key_columns, self.table.keys(slots), strict=False):
            columns[at] = column
        for place, at in enumerate(self._others):
            values = Values(self.table.values[2 * place][slots], self.table.values[2 * place + 1][slots])
            columns[at] = arrow_of(values, self._schema.field(at).type)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


class WaitingRows:
    """Rows that wait for a watermark. Those that come and go within a micro-batch are never stored."""

    def __init__(self, context: OperatorContext, name: str, schema: pa.Schema, keys: Sequence[int]) -> None:
        self._schema = schema
        self._stored = StoredRows(schema, keys)
        context.keep_columns(name, self._stored.table)
        self._fresh: list[pa.RecordBatch] = []
        self._times: list[Array] = []
        self._seen: tuple[int, int] | None = None
        """Generation and size of the table for which the next is known."""
        self._least = _NEVER
        """No stored row waits for an earlier time."""

    def take(self, batch: pa.RecordBatch, times: Array) -> None:
        """Rows with the time that each waits for."""
        if batch.num_rows:
            # Names are none of the rows' business.
            self._fresh.append(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))
            self._times.append(times)

    def release(self, watermark: int) -> tuple[pa.RecordBatch, Array] | None:
        """The rows whose time has come, in the order of time, those of equal time as they came; and their times."""
        parts, times = [], []
        if self._seen != self._state() or watermark >= self._least:
            slots, stored_times = self._stored.content()
            due = stored_times <= watermark
            self._seen, self._least = self._state(), int(stored_times[~due].min(initial=_NEVER))
            if due.any():
                slots = slots[due]
                parts.append(self._stored.batch(slots))
                times.append(stored_times[due])
                self._stored.table.remove(slots)
        if any(int(one.min(initial=_NEVER)) <= watermark for one in self._times):
            batch, fresh_times = joined(self._fresh), np.concatenate(self._times)
            now = fresh_times <= watermark
            if now.all():
                self._fresh, self._times = [], []
            else:
                mask = pa.array(~now)
                self._fresh, self._times = [batch.filter(mask)], [fresh_times[~now]]
                batch, fresh_times = batch.filter(pa.array(now)), fresh_times[now]
            if batch.num_rows:
                parts.append(batch)
                times.append(fresh_times)
        if not parts:
            return None
        whole, every = joined(parts), np.concatenate(times)
        if len(every) > 1 and (every[1:] < every[:-1]).any():
            order = np.argsort(every, kind="stable")
            whole, every = whole.take(pa.array(order)), every[order]
        return whole, every

    def _state(self) -> tuple[int, int]:
        return self._stored.table.generation, self._stored.table.size

    def prune(self, chosen: Callable[[pa.RecordBatch], Array]) -> None:
        """Leaves out rows that came in this micro-batch: only the places that ``chosen`` gives, in order, stay."""
        if self._fresh:
            batch, times = joined(self._fresh), np.concatenate(self._times)
            places = chosen(batch)
            self._fresh, self._times = [batch.take(pa.array(places))], [times[places]]

    def keep(self) -> None:
        """Stores what is still waiting: at the end of a micro-batch."""
        known = self._seen == self._state()
        for batch, times in zip(self._fresh, self._times, strict=True):
            self._stored.add(batch, times)
            self._least = min(self._least, int(times.min(initial=_NEVER)))
        self._seen = self._state() if known else None
        self._fresh, self._times = [], []
