"""How batches leave a task: split by target, joined to frames of about a megabyte, packed as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.errors import ProgramError
from firesteel.graph.transformations import Partitioning, Ship
from firesteel.runtime.columns.packing import Packed, joined
from firesteel.runtime.columns.routing import KeyColumns, key_groups, row_hashes, subtasks_by_group
from firesteel.runtime.frames import Mark, Step, Watermark
from firesteel.runtime.outputs import Sender, Targets

__all__ = ["ColumnSender"]


class ColumnSender(Sender):
    """One exchange of batches, seen from one sending subtask.

    Batches wait as they came. When there are enough rows for a frame, they are joined, and each row is copied once, to
    its target.
    """

    def _strategy(self, partitioning: Partitioning) -> Targets:
        selector = partitioning.selector
        if partitioning.ship is Ship.HASH and not isinstance(selector, KeyColumns):
            raise ProgramError(
                f"A stream of batches is keyed by columns: key_by(KeyColumns(…)), got {type(selector).__name__}."
            )
        if partitioning.ship is Ship.CUSTOM:
            raise ProgramError("A stream of batches cannot be partitioned by a partitioner of rows.")
        if partitioning.ship is Ship.HASH:
            self._by_group = subtasks_by_group(self._target.max_parallelism, self._width)
        return lambda values: (None, None)

    def _fresh_buffers(self) -> None:
        self._batches: list[pa.RecordBatch] = []

    def take(self, values: list[Any], timestamps: list[int] | None) -> None:
        for batch in values:
            self._batches.append(batch)
            self._weight += batch.nbytes
            self._sent_later(batch.num_rows)

    def _seal(self) -> None:
        batches, self._batches = self._batches, []
        if not batches:
            return
        whole = joined(batches)
        partitioning = self._exchange.edge.partitioning
        match partitioning.ship:
            case Ship.HASH if self._width > 1:
                self._seal_by_key(whole, partitioning.selector.indices)
            case Ship.REBALANCE | Ship.RESCALE | Ship.SHUFFLE:
                self._seal_in_turn(whole)
            case Ship.HASH:
                self._add(0, whole)
            case _:
                for target in self._everywhere():
                    self._add(target, whole)

    def _seal_by_key(self, whole: pa.RecordBatch, indices: tuple[int, ...]) -> None:
        hashed = row_hashes([whole.column(index) for index in indices], whole.num_rows)
        targets = self._by_group[key_groups(hashed, self._target.max_parallelism)]
        counts = np.bincount(targets, minlength=self._width)
        if counts.max() == whole.num_rows:
            self._add(int(counts.argmax()), whole)
            return
        # Stable, so that the rows of a key stay in their order.
        ordered = whole.take(pa.array(np.argsort(targets, kind="stable")))
        at = 0
        for target, count in enumerate(counts.tolist()):
            self._add(target, ordered.slice(at, count))
            at += count

    def _seal_in_turn(self, whole: pa.RecordBatch) -> None:
        lanes = list(range(self._width)) if self._shuffles else self._lanes()
        bounds = [whole.num_rows * n // len(lanes) for n in range(len(lanes) + 1)]
        for n, start in enumerate(bounds[:-1]):
            self._add(lanes[(self._turn + n) % len(lanes)], whole.slice(start, bounds[n + 1] - start))
        self._turn = (self._turn + 1) % len(lanes)

    @property
    def _shuffles(self) -> bool:
        return self._exchange.edge.partitioning.ship is Ship.SHUFFLE

    def _add(self, target: int, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._elements[target].append((None, [Packed(batch)], None))

    def _unsent_to(self, target: int) -> list[Any]:
        chunks = [e for e in self._elements[target] if not isinstance(e, Watermark | Step | Mark)]
        return [packed.batch for chunk in chunks for packed in chunk[1]]
