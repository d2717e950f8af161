"""Joins of two changing streams, as a changelog.

A batch of one side meets the rows of the other side, which do not change meanwhile. So all matches of a batch are found
at once. Where rows without a match count (outer, semi and anti joins), each row of such a side has a *degree*: how many
rows it matches now. The moments at which a degree leaves zero or comes back to it are found by a running sum.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.errors import ProgramError
from firesteel.runtime.columns.kinds import DELETE, INSERT, data_of, kinds_of, signs_of, with_kinds
from firesteel.runtime.columns.scans import Segments
from firesteel.runtime.context import OperatorContext
from firesteel.runtime.operators.table.join_state import JoinSide
from firesteel.runtime.operators.table.pairs import both_sides, known_keys, places_of, rows_or_nulls, true_rows
from firesteel.runtime.operators.table.specs import Join
from firesteel.runtime.operators.table.user_functions import UserFunctions

__all__ = ["JoinOperator"]

Array = npt.NDArray[Any]

_OUTER = {
    "INNER": (False, False),
    "LEFT": (True, False),
    "RIGHT": (False, True),
    "FULL": (True, True),
    "SEMI": (True, False),
    "ANTI": (True, False),
}
"""By kind: the sides whose rows count without a match."""
_NOBODY = -1


class _Emitted(NamedTuple):
    """Rows of the result."""

    own: Array
    """The place of the row in the batch, or -1."""
    other: Array
    """The slot of the other side's row, or -1."""
    kinds: Array
    row: Array
    """What they are sorted by: the row of the batch, its match, and what comes first of that."""
    match: Array


@handles(Join)
class JoinOperator(StreamOperator[Join]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec, context = self.spec, cast(OperatorContext, runtime_context)
        self._pieces = context.pieces
        self._kind = spec.kind.upper()
        if self._kind not in _OUTER:
            raise ProgramError(f"A join of the kind {spec.kind} is not known here. There are {', '.join(_OUTER)}.")
        self._outer = _OUTER[self._kind]
        self._filters = self._kind in ("SEMI", "ANTI")
        self._keys = (spec.left_keys, spec.right_keys)
        left, right = spec.state_ttl
        self._sides = (JoinSide(spec.left, spec.left_keys, left), JoinSide(spec.right, spec.right_keys, right))
        for name, side in zip(("left", "right"), self._sides, strict=True):
            context.keep_columns(name, side.table, paged=bool(spec.left_keys))
        self._both = both_sides(spec.left, spec.right)
        self._functions = UserFunctions((spec.condition,), runtime_context)

    def close(self) -> None:
        self._functions.close()

    def process(self, records: Records) -> None:
        if self.spec.state_ttl != (None, None):
            for side in self._sides:
                side.table.expire(self.context.timer_service().current_processing_time())
        keys = self._keys[records.input]
        results = [
            result
            for batch in records.values
            for piece in self._pieces(batch, keys)
            if (result := self._join(piece, records.input)) is not None
        ]
        if results:
            self.context.emit(results)

    def _join(self, whole: pa.RecordBatch, number: int) -> pa.RecordBatch | None:
        own, other = self._sides[number], self._sides[1 - number]
        kinds = kinds_of(whole)
        kinds = np.zeros(whole.num_rows, np.int8) if kinds is None else kinds
        batch = data_of(whole)
        signs = signs_of(kinds)
        # A key that is NULL equals nothing, so such a row is neither looked up nor kept.
        known = self._known(batch, number)
        if known is None:
            places, matched = other.matches([batch.column(key) for key in self._keys[number]], batch.num_rows)
        else:
            chosen = batch.take(pa.array(known))
            places, matched = other.matches([chosen.column(key) for key in self._keys[number]], len(known))
            places = known[places]
        places, matched = self._fulfilled(batch, number, places, matched)
        emitted = []
        met = np.bincount(places, weights=other.counts[matched], minlength=batch.num_rows).astype(np.int64)
        if self._outer[number]:
            emitted.append(self._of_outer_side(kinds, signs, met, places, matched))
        if self._outer[1 - number]:
            emitted.append(self._against_outer_side(other, kinds, signs, places, matched))
        elif not self._outer[number]:
            emitted.append(_Emitted(places, matched, kinds[places], places, np.arange(len(places))))
        if known is None:
            slots = own.add(batch, signs)
            own.set_degrees(slots, met)
        else:
            own.set_degrees(own.add(batch.take(pa.array(known)), signs[known]), met[known])
        return self._result(batch, number, other, emitted)

    def _known(self, batch: pa.RecordBatch, number: int) -> Array | None:
        equal = self.spec.null_equal
        keys = [batch.column(key) for at, key in enumerate(self._keys[number]) if not (equal and equal[at])]
        return known_keys(keys, batch.num_rows)

    def _fulfilled(self, batch: pa.RecordBatch, number: int, places: Array, matched: Array) -> tuple[Array, Array]:
        """The matches for which the condition is true."""
        if self.spec.condition is None or not len(places):
            return places, matched
        own = batch.take(pa.array(places)).columns
        others = self._sides[1 - number].rows(matched)
        now = self.context.timer_service().current_processing_time()
        both = [*own, *others] if number == 0 else [*others, *own]
        true = true_rows(self.spec.condition, both, self._both, now)
        return places[true], matched[true]

    def _of_outer_side(self, kinds: Array, signs: Array, met: Array, places: Array, matched: Array) -> _Emitted:
        """Rows of a side that counts without a match."""
        plain = np.where(signs > 0, INSERT, DELETE).astype(np.int8)
        alone = np.flatnonzero(met == 0)
        if self._filters:
            chosen = alone if self._kind == "ANTI" else np.flatnonzero(met)
            return _Emitted(chosen, np.full(len(chosen), _NOBODY), kinds[chosen], chosen, chosen)
        if self._outer == (True, True):
            # The matches come with what they do to the other side.
            return _Emitted(alone, np.full(len(alone), _NOBODY), plain[alone], alone, alone)
        own = np.concatenate((alone, places))
        others = np.concatenate((np.full(len(alone), _NOBODY), matched))
        return _Emitted(own, others, plain[own], own, np.arange(len(own)))

    def _against_outer_side(
        self, other: JoinSide, kinds: Array, signs: Array, places: Array, matched: Array
    ) -> _Emitted:
        """Matches with rows of a side that counts without one: some get their first one, some lose their last one."""
        order = np.argsort(matched, kind="stable")
        slots, rows = matched[order], places[order]
        nobody = np.full(len(rows), _NOBODY)
        if not len(rows):
            return _Emitted(rows, slots, np.zeros(0, np.int8), rows, rows)
        begins = np.ones(len(slots), bool)
        begins[1:] = slots[1:] != slots[:-1]
        segments = Segments(np.flatnonzero(begins), len(slots))
        base = other.degrees[slots[segments.starts]]
        degrees = np.maximum(segments.running_sums(signs[rows].astype(np.int64), base), 0)
        before = segments.before(degrees, base)
        other.set_degrees(slots[segments.starts], degrees[segments.ends])
        first, last = (before == 0) & (degrees > 0), (degrees == 0) & (before > 0)
        if self._filters:
            gains, loses = (DELETE, INSERT) if self._kind == "ANTI" else (INSERT, kinds[rows])
            changed = first | last
            changed_kinds = np.where(first, gains, loses).astype(np.int8)[changed]
            return _Emitted(nobody[changed], slots[changed], changed_kinds, rows[changed], order[changed])
        adds = signs[rows] > 0
        plain = np.where(adds, INSERT, DELETE if self._outer == (True, True) else kinds[rows]).astype(np.int8)
        return _Emitted(
            np.concatenate((nobody[first], rows, nobody[last])),
            np.concatenate((slots[first], slots, slots[last])),
            np.concatenate((np.full(first.sum(), DELETE), plain, np.full(last.sum(), INSERT))).astype(np.int8),
            np.concatenate((rows[first], rows, rows[last])),
            np.concatenate((4 * order[first], 4 * order + 1, 4 * order[last] + 2)),
        )

    def _result(
        self, batch: pa.RecordBatch, number: int, other: JoinSide, emitted: list[_Emitted]
    ) -> pa.RecordBatch | None:
        own, others, kinds, row, match = (
            np.concatenate([getattr(one, name) for one in emitted]) for name in _Emitted._fields
        )
        if not len(own):
            return None
        in_order = np.lexsort((match, row))
        own, others, kinds = own[in_order], others[in_order], kinds[in_order]
        # A row that is there several times matches as often.
        times = np.where(others >= 0, other.counts[others], 1)
        if (times != 1).any():
            own, others, kinds = np.repeat(own, times), np.repeat(others, times), np.repeat(kinds, times)
        mine = batch.take(places_of(own)).columns
        if self._filters:
            columns = mine if number == 0 else other.rows(others)
        else:
            theirs = rows_or_nulls(other, others)
            columns = [*mine, *theirs] if number == 0 else [*theirs, *mine]
        return with_kinds(pa.RecordBatch.from_arrays(columns, schema=self.spec.schema), kinds if kinds.any() else None)
