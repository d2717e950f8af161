"""Reads tables of connectors: the splits of a source are read by Spark's tasks, side by side."""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pyarrow as pa
from pyspark.sql import DataFrame

from firesteel.common.configuration import Configuration
from firesteel.connectors.source import Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.graph.specs import SourceSpec
from firesteel.table.batch.bounds import table_stream
from firesteel.table.batch.in_memory import MemoryExecutor
from firesteel.table.batch.layout import to_spark
from firesteel.table.batch.sessions import new_frame
from firesteel.table.batch.spark_types import column_names, spark_schema
from firesteel.table.batch.translator import Translator
from firesteel.table.logical.plan import Scan
from firesteel.table.physical.external.connector import Changes
from firesteel.table.physical.sources import declared_changes
from firesteel.table.types.data_types import DataType

__all__ = ["ranges_of", "read_table", "rows_in_memory"]

_ALL = 1 << 50
_PAUSE = 0.02


def read_table(translator: Translator, scan: Scan) -> DataFrame | None:
    """The rows of a table that is nothing but a source of insertions; None for others."""
    spec = table_stream(scan, translator.configuration).transformation.spec
    if not isinstance(spec, SourceSpec) or declared_changes(scan.table, scan.path) is not Changes.INSERT:
        return None
    assert spec.enumerator is not None
    session = translator.session
    tasks = ranges_of(spec.enumerator, 2 * session.sparkContext.defaultParallelism)
    if not tasks:
        return new_frame(session, [], spark_schema(scan.types))
    plans = new_frame(session, [(bytearray(cloudpickle.dumps(each)),) for each in tasks], "ranges binary")
    read = translator.context.shipped(_Read(spec.reader, scan.types), f"Table {'.'.join(scan.path)}")
    return plans.repartition(len(tasks)).mapInArrow(lambda batches: read(batches), spark_schema(scan.types))


def rows_in_memory(scan: Scan, configuration: Configuration, time_zone: str) -> list[pa.RecordBatch]:
    """The final rows of a table, read in this process."""
    settings = Configuration(configuration)
    settings.set_string("firesteel.master", "memory")
    return list(MemoryExecutor(settings, time_zone).rows(scan, ".".join(scan.path)))


def ranges_of(enumerator: SplitEnumerator[Any], parallelism: int) -> list[list[SplitRange[Any]]]:
    """What each of several tasks reads, if all is read from the beginning to the end."""
    with tempfile.TemporaryDirectory(prefix="fs-") as folder:
        enumerator.start(folder)
        try:
            first = position = enumerator.initial()
            while not enumerator.ended(position):
                further = enumerator.latest(position, _ALL)
                if further == position:
                    time.sleep(_PAUSE)
                position = further
            return [ranges for ranges in enumerator.plan(first, position, parallelism) if ranges]
        finally:
            enumerator.stop()


class _Read:
    """Runs in workers."""

    def __init__(self, reader: SourceReader[Any, Any], kinds: tuple[DataType, ...]) -> None:
        self._reader, self._kinds = reader, kinds

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = column_names(len(self._kinds))
        for batch in batches:
            for task in batch.column(0).to_pylist():
                for rows in self._rows(pickle.loads(task)):
                    columns = [to_spark(each, kind) for each, kind in zip(rows.columns, self._kinds, strict=True)]
                    yield pa.RecordBatch.from_arrays(columns, names)

    def _rows(self, ranges: list[SplitRange[Any]]) -> Iterator[pa.RecordBatch]:
        reader = self._reader
        reader.open(None)
        try:
            reader.begin(ranges)
            for split, start, end, _ in ranges:
                for records in reader.read(split, start, end):
                    if isinstance(records, Records):
                        yield from records.values
        finally:
            reader.close()
