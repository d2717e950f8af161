"""Joins with a table of a connector: rows of a batch are looked up together, each key once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firesteel.connectors.table.lookup import LookupCache
from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.operators import Records, StreamOperator, handles
from firesteel.runtime.columns.kinds import data_of, kinds_of, with_kinds
from firesteel.runtime.operators.table.pairs import both_sides, known_keys, places_of, true_rows
from firesteel.runtime.operators.table.specs import LookupJoin
from firesteel.runtime.operators.table.user_functions import UserFunctions
from firesteel.runtime.state.columnar.key_words import distinct_keys

__all__ = ["AnswerCache", "LookupJoinOperator"]

Array = npt.NDArray[Any]
Key = tuple[Any, ...]


class AnswerCache:
    """Rows by key.

    >>> cache = AnswerCache(LookupCache(max_rows=1, expire_after_write=10), now=lambda: 5)
    >>> cache.put((1,), "one"); cache.put((2,), "two")
    >>> cache.get((1,)), cache.get((2,))
    (None, 'two')
    """

    def __init__(self, options: LookupCache, now: Callable[[], float]) -> None:
        self._options, self._now = options, now
        self._answers: OrderedDict[Key, tuple[float, float, Any]] = OrderedDict()

    def get(self, key: Key) -> Any | None:
        """What is remembered."""
        known = self._answers.get(key)
        if known is None:
            return None
        written, used, rows = known
        now = self._now()
        write, access = self._options.expire_after_write, self._options.expire_after_access
        if (write is not None and now - written >= write) or (access is not None and now - used >= access):
            del self._answers[key]
            return None
        self._answers[key] = (written, now, rows)
        self._answers.move_to_end(key)
        return rows

    def put(self, key: Key, rows: Any) -> None:
        """Remembers an answer."""
        now = self._now()
        self._answers[key] = (now, now, rows)
        self._answers.move_to_end(key)
        most = self._options.max_rows
        while most is not None and len(self._answers) > most:
            self._answers.popitem(last=False)


@handles(LookupJoin)
class LookupJoinOperator(StreamOperator[LookupJoin]):
    def open(self, runtime_context: RuntimeContext) -> None:
        spec = self.spec
        self._names = [spec.right.field(key).name for key in spec.right_keys]
        self._cache = AnswerCache(spec.cache, lambda: time.monotonic() * 1000) if spec.cache is not None else None
        self._both = both_sides(spec.left, spec.right)
        self._nothing = pa.RecordBatch.from_arrays(
            [pa.array([], field.type) for field in spec.right], schema=spec.right
        )
        self._functions = UserFunctions((spec.condition,), runtime_context)
        spec.table.open()

    def close(self) -> None:
        self.spec.table.close()
        self._functions.close()

    def process(self, records: Records) -> None:
        results = [result for batch in records.values if (result := self._join(batch)) is not None]
        if results:
            self.context.emit(results)

    def _join(self, whole: pa.RecordBatch) -> pa.RecordBatch | None:
        spec, batch, kinds = self.spec, data_of(whole), kinds_of(whole)
        keys = [batch.column(key) for key in spec.left_keys]
        known = known_keys(keys, batch.num_rows)
        rows = np.arange(batch.num_rows) if known is None else known
        asked = keys if known is None else [key.take(pa.array(known)) for key in keys]
        codes, distinct = distinct_keys(asked, len(rows))
        found, owners = self._answers(distinct)
        # Rows of the table by the number of their key, then for each row of the batch those of its key.
        counts = np.bincount(owners, minlength=len(distinct[0]))
        firsts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        each = counts[codes]
        places = np.repeat(rows, each)
        starts = np.repeat(firsts[codes] - (np.cumsum(each) - each), each)
        matched = np.arange(len(places)) + starts
        if spec.condition is not None and len(places):
            columns = [*batch.take(pa.array(places)).columns, *found.take(pa.array(matched)).columns]
            now = self.context.timer_service().current_processing_time()
            true = true_rows(spec.condition, columns, self._both, now)
            places, matched = places[true], matched[true]
        if spec.kind.upper() == "LEFT":
            alone = np.setdiff1d(np.arange(batch.num_rows), places)
            places = np.concatenate((places, alone))
            matched = np.concatenate((matched, np.full(len(alone), -1)))
            order = np.argsort(places, kind="stable")
            places, matched = places[order], matched[order]
        if not len(places):
            return None
        columns = [*batch.take(pa.array(places)).columns, *found.take(places_of(matched)).columns]
        result = pa.RecordBatch.from_arrays(columns, schema=spec.schema)
        return with_kinds(result, None if kinds is None else kinds[places])

    def _answers(self, keys: list[pa.Array]) -> tuple[pa.RecordBatch, Array]:
        """The rows of all keys, and for each the number of its key, ascending."""
        wanted = list(zip(*(key.to_pylist() for key in keys), strict=True))
        answers: list[pa.RecordBatch | None] = [
            self._cache.get(key) if self._cache is not None else None for key in wanted
        ]
        missing = [number for number, answer in enumerate(answers) if answer is None]
        # Not a retry library: nothing has failed, and only keys that the table had no row for are asked for again.
        for attempt in range(self.spec.attempts):
            if not missing:
                break
            if attempt:
                time.sleep(self.spec.delay / 1000)
            self._ask(keys, wanted, missing, answers)
            missing = [number for number in missing if answers[number] is None]
        parts = [self._nothing if answer is None else answer for answer in answers]
        owners = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
        filled = [part for part in parts if part.num_rows]
        whole = pa.Table.from_batches(filled, self.spec.right).combine_chunks().to_batches() if filled else []
        return (whole[0] if whole else self._nothing), owners

    def _ask(
        self, keys: list[pa.Array], wanted: list[Key], missing: list[int], answers: list[pa.RecordBatch | None]
    ) -> None:
        chosen = pa.array(missing)
        question = pa.RecordBatch.from_arrays([key.take(chosen) for key in keys], names=self._names)
        batch = self.spec.table.lookup(question).select(self.spec.right.names).cast(self.spec.right)
        columns = [batch.column(name).to_pylist() for name in self._names]
        by_key: dict[Key, list[int]] = {}
        for place, key in enumerate(zip(*columns, strict=True)):
            by_key.setdefault(key, []).append(place)
        for number in missing:
            places = by_key.get(wanted[number])
            rows = batch.take(pa.array(places)) if places else None
            answers[number] = rows
            remembers = rows is not None or (self.spec.cache is not None and self.spec.cache.cache_missing_key)
            if self._cache is not None and remembers:
                self._cache.put(wanted[number], rows if rows is not None else self._nothing)
