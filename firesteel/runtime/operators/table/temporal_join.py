"""Joins with the version of a table that was valid at the time of a row: FOR SYSTEM_TIME AS OF."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.errors import ProgramError
from firesteel.runtime.columns.kinds import DELETE, UPDATE_BEFORE, data_of, kinds_of, with_kinds
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.join_state import JoinSide
from firesteel.runtime.operators.table.pairs import both_sides, known_keys, rows_or_nulls, true_rows
from firesteel.runtime.operators.table.specs import TemporalJoin
from firesteel.runtime.operators.table.user_functions import UserFunctions
from firesteel.runtime.operators.table.window_times import milliseconds
from firesteel.runtime.state.columnar.key_words import distinct_keys

__all__ = ["TemporalJoinOperator"]

Array = npt.NDArray[Any]

_MARKS = [pa.field("$time", pa.int64()), pa.field("$order", pa.int64()), pa.field("$change", pa.int64())]
"""What is kept behind the columns of a row: its time, when it came, and its kind."""
_TIME, _ORDER, _CHANGE = -3, -2, -1
_NEVER = 1 << 62
_WORTH_CLEANING = 1024


@handles(TemporalJoin)
class TemporalJoinOperator(StreamOperator[TemporalJoin]):
    """Left rows wait for the watermark; of the versions of a key those are kept that a later row may still ask for."""

    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        if spec.kind.upper() not in ("INNER", "LEFT"):
            raise ProgramError(f"A temporal join is INNER or LEFT, not {spec.kind}.")
        self._schemas = (spec.left, spec.right)
        self._keys = (spec.left_keys, spec.right_keys)
        self._stored = [pa.schema([*schema, *_MARKS]) for schema in self._schemas]
        self._waiting = JoinSide(self._stored[0], spec.left_keys)
        self._versions = JoinSide(self._stored[1], spec.right_keys)
        context.keep_columns("left", self._waiting.table)
        context.keep_columns("right", self._versions.table)
        self._both = both_sides(spec.left, spec.right)
        self._clean_above = _WORTH_CLEANING
        self._generations = (-1, -1)
        self._functions = UserFunctions((spec.condition,), runtime_context)

    def close(self) -> None:
        self._functions.close()

    def _look_anew(self) -> None:
        """Where state was read again nothing is known about it; new rows come behind all that are kept."""
        generations = self._waiting.table.generation, self._versions.table.generation
        if generations == self._generations:
            return
        self._generations = generations
        self._due = -_NEVER
        last = -1
        for side in (self._waiting, self._versions):
            alive = np.flatnonzero(side.table.alive[: side.table.size])
            if len(alive):
                last = max(last, int(side.numbers(alive, _ORDER).max()))
        self._next = last + 1

    def process(self, records: Records) -> None:
        self._look_anew()
        for batch in records.values:
            self._take(batch, records.input)

    def _take(self, whole: pa.RecordBatch, number: int) -> None:
        batch, kinds = data_of(whole), kinds_of(whole)
        rows = batch.num_rows
        kinds = np.zeros(rows, np.int64) if kinds is None else kinds.astype(np.int64)
        chosen = np.arange(rows)
        if number == 1:
            # -U says nothing that the +U behind it does not.
            chosen = chosen[kinds != UPDATE_BEFORE]
            known = known_keys([batch.column(key) for key in self._keys[1]], rows)
            if known is not None:
                chosen = np.intersect1d(chosen, known)
            if not len(chosen):
                return
            batch, kinds = batch.take(pa.array(chosen)), kinds[chosen]
        times = milliseconds(batch.column(self.spec.times[number]))
        order = np.arange(self._next, self._next + len(times))
        self._next += len(times)
        marks = [pa.array(times), pa.array(order), pa.array(kinds)]
        stored = pa.RecordBatch.from_arrays([*batch.columns, *marks], schema=self._stored[number])
        side = self._versions if number else self._waiting
        side.add(stored, np.ones(len(times), np.int64))
        if number == 0:
            self._due = min(self._due, int(times.min()))

    def on_watermark(self, watermark: int) -> None:
        self._look_anew()
        if watermark >= self._due:
            self._emit_until(watermark)
        table = self._versions.table
        if table.entries > self._clean_above:
            self._forget(watermark)
            self._clean_above = max(_WORTH_CLEANING, 2 * table.entries)

    def _emit_until(self, watermark: int) -> None:
        table = self._waiting.table
        alive = np.flatnonzero(table.alive[: table.size])
        times = self._waiting.numbers(alive, _TIME)
        due = times <= watermark
        self._due = int(times[~due].min()) if not due.all() else _NEVER
        slots = alive[due]
        if not len(slots):
            return
        slots = slots[np.argsort(self._waiting.numbers(slots, _ORDER), kind="stable")]
        result = self._joined(slots)
        table.remove(slots)
        if result is not None:
            self.context.emit([result])

    def _joined(self, slots: Array) -> pa.RecordBatch | None:
        stored = self._waiting.rows(slots)
        left, kinds = stored[: len(self.spec.left)], stored[_CHANGE].to_numpy().astype(np.int8)
        matched = self._version_of([left[key] for key in self._keys[0]], self._waiting.numbers(slots, _TIME))
        if self.spec.condition is not None and (matched >= 0).any():
            found = np.flatnonzero(matched >= 0)
            columns = [*(column.take(pa.array(found)) for column in left), *self._columns(matched[found])]
            now = self.context.timer_service().current_processing_time()
            false = ~true_rows(self.spec.condition, columns, self._both, now)
            matched[found[false]] = -1
        if self.spec.kind.upper() == "INNER":
            found = np.flatnonzero(matched >= 0)
            if not len(found):
                return None
            left, matched, kinds = [column.take(pa.array(found)) for column in left], matched[found], kinds[found]
        rows = pa.RecordBatch.from_arrays([*left, *self._columns(matched)], schema=self.spec.schema)
        return with_kinds(rows, kinds if kinds.any() else None)

    def _columns(self, slots: Array) -> list[pa.Array]:
        return rows_or_nulls(self._versions, slots)[: len(self.spec.right)]

    def _version_of(self, keys: list[pa.Array], times: Array) -> Array:
        """For each row the slot of its version, or -1."""
        result = np.full(len(times), -1, np.int64)
        known, versions = known_keys(keys, len(times)), self._versions
        rows = np.arange(len(times)) if known is None else known
        asked = keys if known is None else [key.take(pa.array(known)) for key in keys]
        codes, distinct = distinct_keys(asked, len(rows))
        owners, slots = versions.matches(distinct, len(distinct[0]) if distinct else min(len(rows), 1))
        if not len(slots):
            return result
        # Versions and rows of a key by time, rows behind versions of the same time; the last version before each row.
        both = np.concatenate((owners, codes))
        at = np.concatenate((versions.numbers(slots, _TIME), times[rows]))
        arrival = np.concatenate((versions.numbers(slots, _ORDER), np.full(len(rows), _NEVER)))
        in_order = np.lexsort((arrival, at, both))
        place = np.arange(len(in_order))
        is_version = in_order < len(slots)
        latest = np.maximum.accumulate(np.where(is_version, place, -1))
        found = np.flatnonzero(~is_version & (latest >= 0))
        version, row = in_order[latest[found]], in_order[found] - len(slots)
        same = owners[version] == codes[row]
        version, row = slots[version[same]], rows[row[same]]
        valid = versions.numbers(version, _CHANGE) != DELETE
        result[row[valid]] = version[valid]
        return result

    def _forget(self, watermark: int) -> None:
        """Removes versions that were replaced before any time that is still to come."""
        versions, table = self._versions, self._versions.table
        alive = np.flatnonzero(table.alive[: table.size])
        times = versions.numbers(alive, _TIME)
        # What waits may be older than the watermark, if it came late.
        past = times <= min(watermark, self._due - 1 if self._due > -_NEVER else watermark)
        slots, times = alive[past], times[past]
        if not len(slots):
            return
        stored = versions.rows(slots)
        codes, _ = distinct_keys([stored[key] for key in self._keys[1]], len(slots))
        in_order = np.lexsort((versions.numbers(slots, _ORDER), times, codes))
        slots, codes = slots[in_order], codes[in_order]
        last = np.append(codes[1:] != codes[:-1], True)
        ended = versions.numbers(slots, _CHANGE) == DELETE
        table.remove(slots[~last | ended])
