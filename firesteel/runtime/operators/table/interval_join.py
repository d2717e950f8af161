"""Joins of rows whose times are near: state is what time has not passed by yet."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.errors import ProgramError
from firesteel.runtime.columns.kinds import data_of
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.join_state import JoinSide
from firesteel.runtime.operators.table.pairs import both_sides, known_keys, rows_or_nulls, true_rows
from firesteel.runtime.operators.table.specs import IntervalJoin
from firesteel.runtime.operators.table.user_functions import UserFunctions
from firesteel.runtime.operators.table.window_times import milliseconds
from firesteel.runtime.watermarks import MAX_WATERMARK, MIN_TIMESTAMP

__all__ = ["IntervalJoinOperator"]

Array = npt.NDArray[Any]

_OUTER = {"INNER": (False, False), "LEFT": (True, False), "RIGHT": (False, True), "FULL": (True, True)}
_NEVER = 1 << 62
_MARKS = [pa.field("$bucket", pa.int64()), pa.field("$time", pa.int64())]
"""Behind the columns of a row: its time, and in which piece of time that is. A piece is as long as the interval is
wide, so that what a row can match lies in two of them."""


@handles(IntervalJoin)
class IntervalJoinOperator(StreamOperator[IntervalJoin]):
    """Matches go out as soon as both rows are there. A row of a side stays until time is past the last row that it
    could match; ``_due`` is when that is so for the first one."""

    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._kind = spec.kind.upper()
        if self._kind not in _OUTER:
            raise ProgramError(f"An interval join of the kind {spec.kind} is not known. There are {', '.join(_OUTER)}.")
        self._outer = _OUTER[self._kind]
        self._keys = (spec.left_keys, spec.right_keys)
        self._schemas = (spec.left, spec.right)
        # Behind the time of a row comes the last time of the other side that is near enough.
        self._reach = (-spec.lower, spec.upper)
        self._width = max(spec.upper - spec.lower + 1, 1)
        self._stored = tuple(pa.schema([*schema, *_MARKS]) for schema in self._schemas)
        self._sides = tuple(
            JoinSide(schema, keys, near=(len(schema) - 2,))
            for schema, keys in zip(self._stored, self._keys, strict=True)
        )
        for name, side in zip(("left", "right"), self._sides, strict=True):
            context.keep_columns(name, side.table)
        self._both = both_sides(spec.left, spec.right)
        self._generations = (-1, -1)
        self._functions = UserFunctions((spec.condition,), runtime_context)

    def close(self) -> None:
        self._functions.close()

    def _look_anew(self) -> None:
        """Where state was read again nothing is known about it."""
        left, right = self._sides
        generations = left.table.generation, right.table.generation
        if generations != self._generations:
            self._generations = generations
            self._due = [-_NEVER, -_NEVER]

    def _now(self) -> int:
        timers = self.context.timer_service()
        return timers.current_processing_time() if self.spec.processing_time else timers.current_watermark()

    def process(self, records: Records) -> None:
        now = self._now()
        self._look_anew()
        if self.spec.processing_time:
            self._expire(now)
        results = [each for batch in records.values for each in self._join(data_of(batch), records.input, now)]
        if results:
            self.context.emit(results)

    def on_watermark(self, watermark: int) -> None:
        if not self.spec.processing_time:
            self._expire(watermark)

    def output_watermark(self, watermark: int) -> int:
        """A row that comes on time may match one as much earlier as the interval is wide."""
        if self.spec.processing_time or watermark == MAX_WATERMARK:
            return watermark
        return max(watermark - max(*self._reach, 0) - 1, MIN_TIMESTAMP)

    def end_batch(self) -> None:
        if self.spec.processing_time:
            self._expire(self._now())

    def _join(self, batch: pa.RecordBatch, number: int, now: int) -> list[pa.RecordBatch]:
        spec, other = self.spec, self._sides[1 - number]
        rows = batch.num_rows
        if spec.processing_time:
            times = np.full(rows, now, np.int64)
        else:
            times = milliseconds(batch.column(spec.times[number]))
        keys = [batch.column(key) for key in self._keys[number]]
        known = known_keys(keys, rows)
        places, matched = self._near(other, keys, times, known, number)
        others = self._times(other, matched)
        apart = times[places] - others if number == 0 else others - times[places]
        near = (apart >= spec.lower) & (apart <= spec.upper)
        places, matched = places[near], matched[near]
        if spec.condition is not None and len(places):
            mine, theirs = batch.take(pa.array(places)).columns, other.rows(matched)[: -len(_MARKS)]
            columns = [*mine, *theirs] if number == 0 else [*theirs, *mine]
            now = self.context.timer_service().current_processing_time()
            true = true_rows(spec.condition, columns, self._both, now)
            places, matched = places[true], matched[true]
        results = []
        times_there = other.counts[matched]
        met = np.bincount(places, minlength=rows) > 0
        if len(places):
            results.append(self._pairs(batch, number, np.repeat(places, times_there), np.repeat(matched, times_there)))
        if self._outer[1 - number]:
            other.set_degrees(matched, np.ones(len(matched), np.int64))
        results += self._keep(batch, number, times, met, known, now)
        return results

    def _near(
        self, other: JoinSide, keys: list[pa.Array], times: Array, known: Array | None, number: int
    ) -> tuple[Array, Array]:
        """Rows of the other side with the same keys, in the pieces of time that a match may be in."""
        spec, asked = self.spec, np.arange(len(times)) if known is None else known
        earliest = times[asked] + (-spec.upper if number == 0 else spec.lower)
        first, last = earliest // self._width, (earliest + self._width - 1) // self._width
        # Both pieces of a row one behind the other; one, if they are the same.
        rows, pieces = np.repeat(asked, 2), np.empty(2 * len(asked), np.int64)
        pieces[0::2], pieces[1::2] = first, last
        wanted = np.ones(len(rows), bool)
        wanted[1::2] = first != last
        rows, pieces = rows[wanted], pieces[wanted]
        columns = [*(key.take(pa.array(rows)) for key in keys), pa.array(pieces)]
        places, matched = other.matches(columns, len(rows))
        return rows[places], matched

    def _keep(
        self, batch: pa.RecordBatch, number: int, times: Array, met: Array, known: Array | None, now: int
    ) -> list[pa.RecordBatch]:
        """Rows that may still be matched stay. Others are done: alone, if they have not met anything."""
        own = self._sides[number]
        last = times + self._reach[number]
        stays = last > now
        if known is not None:
            without_null = np.zeros(len(times), bool)
            without_null[known] = True
            stays &= without_null
        chosen = np.flatnonzero(stays)
        if len(chosen):
            kept = batch if len(chosen) == batch.num_rows else batch.take(pa.array(chosen))
            marks = [pa.array(times[chosen] // self._width), pa.array(times[chosen])]
            stored = pa.RecordBatch.from_arrays([*kept.columns, *marks], schema=self._stored[number])
            slots = own.add(stored, np.ones(len(chosen), np.int64))
            if self._outer[number]:
                own.set_degrees(slots, np.maximum(own.degrees[slots], met[chosen].astype(np.int64)))
            self._due[number] = min(self._due[number], int(last[chosen].min()))
        alone = np.flatnonzero(~stays & ~met) if self._outer[number] else np.zeros(0, np.int64)
        return [self._pairs(batch, number, alone, np.full(len(alone), -1))] if len(alone) else []

    def _times(self, side: JoinSide, slots: Array) -> Array:
        """When the rows of some slots were: the last column."""
        return side.numbers(slots, -1)

    def _pairs(self, batch: pa.RecordBatch, number: int, places: Array, slots: Array) -> pa.RecordBatch:
        mine = batch.take(pa.array(places)).columns
        theirs = rows_or_nulls(self._sides[1 - number], slots)[: -len(_MARKS)]
        columns = [*mine, *theirs] if number == 0 else [*theirs, *mine]
        return pa.RecordBatch.from_arrays(columns, schema=self.spec.schema)

    def _expire(self, now: int) -> None:
        self._look_anew()
        for number, side in enumerate(self._sides):
            if now <= self._due[number]:
                continue
            table = side.table
            alive = np.flatnonzero(table.alive[: table.size])
            last = self._times(side, alive) + self._reach[number]
            over = last < now
            self._due[number] = int(last[~over].min()) if not over.all() else _NEVER
            gone = alive[over]
            if not len(gone):
                continue
            if self._outer[number]:
                alone = gone[side.degrees[gone] == 0]
                if len(alone):
                    self._emit_alone(number, np.repeat(alone, side.counts[alone]))
            table.remove(gone)

    def _emit_alone(self, number: int, slots: Array) -> None:
        mine = self._sides[number].rows(slots)[: -len(_MARKS)]
        nulls = [pa.nulls(len(slots), field.type) for field in self._schemas[1 - number]]
        columns = [*mine, *nulls] if number == 0 else [*nulls, *mine]
        self.context.emit([pa.RecordBatch.from_arrays(columns, schema=self.spec.schema)])
