"""A source of batches that a function makes, thousands of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from firesteel.connectors.sequence import IndexEnumerator
from firesteel.connectors.source import Records, SourceReader
from firesteel.datastream.connectors.base import Source
from firesteel.runtime.columns.types import ColumnsType

__all__ = ["BATCH_ROWS", "BatchGeneratorSource"]

BATCH_ROWS = 32_768
"""Rows of a batch."""

Generate = Callable[[int, int], pa.RecordBatch]
"""The rows from one index up to, and not including, another one."""


class _BatchReader(SourceReader[None, pa.RecordBatch]):
    def __init__(self, generate: Generate) -> None:
        self._generate = generate

    def read(self, split: None, start: int, end: int) -> Iterator[Records[pa.RecordBatch]]:
        for low in range(start, end, BATCH_ROWS):
            yield Records([self._generate(low, min(low + BATCH_ROWS, end))])


class BatchGeneratorSource(Source[None, pa.RecordBatch]):
    """Rows 0, 1, 2, … as batches. The function must make the same rows of the same indexes, however they are cut, or a
    replayed batch would differ.

    >>> def squares(start, end):
    ...     return pa.record_batch({"square": [n * n for n in range(start, end)]})
    >>> source = BatchGeneratorSource(squares, pa.schema([("square", pa.int64())]), count=5)
    >>> [records.values[0].to_pydict() for records in source.create_reader().read(None, 3, 5)]
    [{'square': [9, 16]}]
    """

    def __init__(
        self, generate: Generate, schema: pa.Schema, count: int | None, records_per_second: float | None = None
    ) -> None:
        self.generate = generate
        self._schema = schema
        self.count = count
        """How many rows there are; None without an end."""
        self._per_second = records_per_second

    def create_enumerator(self) -> IndexEnumerator:
        return IndexEnumerator(self.count, self._per_second)

    def create_reader(self) -> _BatchReader:
        return _BatchReader(self.generate)

    def get_produced_type(self) -> ColumnsType:
        return ColumnsType(self._schema)
