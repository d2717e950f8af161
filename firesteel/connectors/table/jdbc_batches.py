"""Batches into tables of databases: rows that are inserted, or by key replaced and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.datastream.connectors.base import Sink, SinkWriter, WriterContext
from firesteel.datastream.functions import SinkFunction
from firesteel.runtime.columns.kinds import DELETE, UPDATE_BEFORE, data_of, kinds_of

__all__ = ["UpsertBatchSink", "rows_as_tuples"]


def rows_as_tuples(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch of insertions."""
    return zip(*(column.to_pylist() for column in data_of(batch).columns), strict=True)


class UpsertBatchSink(Sink):
    """Writes the last row of each key, or deletes the key. Both are idempotent, so the table ends up exact."""

    def __init__(self, upserts: Sink, deletions: Sink, keys: tuple[int, ...], max_rows: int) -> None:
        self._upserts, self._deletions, self._keys, self._max_rows = upserts, deletions, keys, max_rows

    def create_writer(self, context: WriterContext) -> SinkWriter:
        writers = self._upserts.create_writer(context), self._deletions.create_writer(context)
        return _UpsertWriter(*writers, self._keys, self._max_rows)


class _UpsertWriter(SinkWriter):
    """Keeps the last state of each key until so many have changed. Then keys that are deleted and keys that are written
    are different ones, and their order does not matter."""

    def __init__(self, upserts: SinkWriter, deletions: SinkWriter, keys: tuple[int, ...], max_rows: int) -> None:
        self._upserts, self._deletions, self._keys, self._max_rows = upserts, deletions, keys, max_rows
        self._changed: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}

    def write(self, value: pa.RecordBatch, context: SinkFunction.Context) -> None:
        kinds = kinds_of(value)
        rows = list(rows_as_tuples(value))
        keys = list(zip(*(data_of(value).column(key).to_pylist() for key in self._keys), strict=True))
        if kinds is None:
            self._changed.update(zip(keys, rows, strict=True))
        else:
            for key, row, kind in zip(keys, rows, np.asarray(kinds).tolist(), strict=True):
                if kind != UPDATE_BEFORE:
                    self._changed[key] = None if kind == DELETE else row
        if self._max_rows and len(self._changed) >= self._max_rows:
            self._send(context)

    def _send(self, context: Any) -> None:
        changed, self._changed = self._changed, {}
        for key, row in changed.items():
            if row is None:
                self._deletions.write(key, context)
            else:
                self._upserts.write(row, context)
        self._deletions.flush(False)
        self._upserts.flush(False)

    def flush(self, end_of_input: bool) -> None:
        self._send(None)

    def close(self) -> None:
        self._upserts.close()
        self._deletions.close()
