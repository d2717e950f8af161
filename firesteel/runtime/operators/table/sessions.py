"""Sessions: windows that rows of a group make themselves, each as long as no gap is longer than a given one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.errors import ProgramError
from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.chains import Chains
from firesteel.runtime.operators.table.groups import Groups
from firesteel.runtime.operators.table.specs import WindowAggregate
from firesteel.runtime.state.columnar.key_words import distinct_keys

__all__ = ["Sessions"]

Array = npt.NDArray[Any]


class Sessions:
    """A slot for each open session, known by its key, start and end. When rows make it longer, or make one of two, its
    state moves to another slot."""

    def __init__(self, context: OperatorContext, spec: WindowAggregate) -> None:
        if spec.retracts or any(call.distinct for call in spec.calls):
            raise ProgramError("Sessions of rows that are taken back, or with DISTINCT, are not supported yet.")
        self._spec = spec
        key_types = [spec.input.field(key).type for key in spec.keys]
        self.groups = Groups(context, key_types, spec.calls, spec.input, False, [pa.int64(), pa.int64()])
        self._chains = Chains(self.groups.table, key_types)

    def take(self, batch: pa.RecordBatch, times: Array, watermark: int) -> int:
        """Puts rows into their sessions. Gives how many came too late."""
        late = times + self._spec.window.size - 1 <= watermark
        if not late.any():
            self._take(batch, times)
            return 0
        # A late row is taken if it belongs to a session that is open when it comes: so each of them comes alone.
        dropped = begun = 0
        for at in [*np.flatnonzero(late).tolist(), len(times)]:
            if at > begun:
                self._take(batch.slice(begun, at - begun), times[begun:at])
            if at < len(times) and not self._take(batch.slice(at, 1), times[at : at + 1], watermark):
                dropped += 1
            begun = at + 1
        return dropped

    def _take(self, batch: pa.RecordBatch, times: Array, watermark: int | None = None) -> bool:
        """``watermark``: a session that ends before it is not to be opened. Whether the rows were taken."""
        table, gap = self.groups.table, self._spec.window.size
        columns = [batch.column(key) for key in self._spec.keys]
        codes, keys = distinct_keys(columns, batch.num_rows)
        owners, slots = self._chains.matches(keys, len(keys[0]) if keys else 1)
        alive = table.alive[slots]
        owners, slots = owners[alive], slots[alive]
        width = len(self._spec.keys)
        # What is open and what comes, as spans of time, sorted by key and start.
        of = np.concatenate((owners, codes))
        starts = np.concatenate((table.key_numbers(slots, width), times))
        ends = np.concatenate((table.key_numbers(slots, width + 1), times + gap))
        order = np.lexsort((starts, of))
        of, starts, ends = of[order], starts[order], ends[order]
        begins = np.ones(len(of), bool)
        begins[1:] = of[1:] != of[:-1]
        by_key = Segments(np.flatnonzero(begins), len(of))
        reached = by_key.running_max(ends, np.full(len(by_key.starts), ends.min()))
        # Spans that touch are one.
        begins[1:] |= starts[1:] > reached[:-1]
        joined = Segments(np.flatnonzero(begins), len(of))
        first, last = starts[joined.starts], reached[joined.ends]
        session = np.empty(len(of), np.int64)
        session[order] = joined.numbers
        mine = session[len(slots) :]
        if watermark is not None and last[mine].max() - 1 <= watermark:
            return False
        self._move(keys, of[joined.starts], first, last, session[: len(slots)], slots)
        self.groups.advance(batch, [*columns, pa.array(first[mine]), pa.array(last[mine])], False)
        return True

    def _move(
        self, keys: Sequence[pa.Array], owners: Array, first: Array, last: Array, sessions: Array, slots: Array
    ) -> None:
        """The states of sessions that have become longer go to their new slots, merged where they are one now."""
        table, width = self.groups.table, len(self._spec.keys)
        same = (table.key_numbers(slots, width) == first[sessions]) & (
            table.key_numbers(slots, width + 1) == last[sessions]
        )
        sessions, slots = sessions[~same], slots[~same]
        if not len(slots):
            return
        order = np.argsort(sessions, kind="stable")
        sessions, slots = sessions[order], slots[order]
        begins = np.ones(len(slots), bool)
        begins[1:] = sessions[1:] != sessions[:-1]
        merged = Segments(np.flatnonzero(begins), len(slots))
        targets = sessions[merged.starts]
        places = pa.array(owners[targets])
        new_keys = [*(key.take(places) for key in keys), pa.array(first[targets]), pa.array(last[targets])]
        rows = np.add.reduceat(table.values[0][slots], merged.starts)
        states = [
            (one, one.accumulator.merge(merged, [values[slots] for values in table.values[one.state]]))
            for one in self.groups.calls
            if not one.counts_rows
        ]
        table.remove(slots)
        fresh = table.slots(new_keys)
        table.values[0][fresh] = rows
        for one, columns in states:
            for values, column in zip(table.values[one.state], columns, strict=True):
                values[fresh] = column
        table.put(fresh)
