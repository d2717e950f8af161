"""Where rows come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firesteel.connectors.table.datagen import BATCH_ROWS, Counting, DatagenSource, Draw
from firesteel.table.batch.layout import spark_layout, to_spark
from firesteel.table.batch.reading import read_table, rows_in_memory
from firesteel.table.batch.sessions import in_session, new_frame
from firesteel.table.batch.spark_types import column_names, spark_schema, spark_type
from firesteel.table.batch.translator import Translator, translates
from firesteel.table.catalog.tables import DeclaredTable, InlineTable, SparkTable
from firesteel.table.functions.evaluation import EvaluationContext, Evaluator
from firesteel.table.logical.plan import Scan, Values
from firesteel.table.physical.external.datagen import datagen_source
from firesteel.table.sql.errors import NotSupportedError
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import DataType

__all__ = ["frame_of_batches"]


def frame_of_batches(translator: Translator, batches: Sequence[pa.RecordBatch], kinds: Sequence[DataType]) -> DataFrame:
    """Rows of the program as a DataFrame."""
    names = column_names(len(kinds))
    schema = pa.schema([pa.field(name, spark_layout(kind)) for name, kind in zip(names, kinds, strict=True)])
    converted = [
        pa.RecordBatch.from_arrays(
            [to_spark(column, kind) for column, kind in zip(batch.columns, kinds, strict=True)], schema=schema
        )
        for batch in batches
    ]
    return new_frame(translator.session, pa.Table.from_batches(converted, schema), spark_schema(kinds))


@translates(Scan)
def _scan(translator: Translator, plan: Scan) -> DataFrame:
    table = plan.table
    if isinstance(table, InlineTable):
        return frame_of_batches(translator, table.batches, plan.types)
    if isinstance(table, SparkTable):
        # The same plan, under our settings.
        return in_session(table.frame, translator.session).toDF(*column_names(len(plan.names)))
    if isinstance(table, DeclaredTable):
        if table.options.get("connector") == "datagen":
            return _generated(translator, plan)
        found = read_table(translator, plan)
        if found is not None:
            return found
        rows = rows_in_memory(plan, translator.configuration, translator.context.time_zone)
        return frame_of_batches(translator, rows, plan.types)
    raise NotSupportedError(f"Not supported yet in batch mode: reading {type(table).__name__} {'.'.join(plan.path)}.")


class _Generate:
    """Runs in workers: numbers of rows become rows."""

    def __init__(self, source: DatagenSource, kinds: tuple[DataType, ...]) -> None:
        self._source, self._kinds, self._draw = source, kinds, Draw.fresh()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = self._source.create_reader()
        names = column_names(len(self._kinds))
        for batch in batches:
            for start, end in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                for records in reader.read(self._draw, start, end):
                    for rows in records.values:
                        columns = [to_spark(each, kind) for each, kind in zip(rows.columns, self._kinds, strict=True)]
                        yield pa.RecordBatch.from_arrays(columns, names)


def _generated(translator: Translator, plan: Scan) -> DataFrame:
    source = datagen_source(plan.table.readable, plan.table.options, ".".join(plan.path))
    assert source.count is not None, "It was checked before."
    counting = [field for field in source.fields if isinstance(field, Counting) and pa.types.is_integer(field.type)]
    if len(counting) == len(source.fields):
        # Spark counts by itself.
        rows = translator.session.range(source.count)
        kinds = zip(counting, plan.types, strict=True)
        return rows.select(
            *[
                (F.col("id") + F.lit(field.first)).cast(spark_type(kind)).alias(f"c{index}")
                for index, (field, kind) in enumerate(kinds)
            ]
        )
    pieces = translator.session.range(0, source.count, BATCH_ROWS)
    ranges = pieces.select(F.col("id").alias("a"), F.least(F.col("id") + BATCH_ROWS, F.lit(source.count)).alias("b"))
    generate = translator.context.shipped(_Generate(source, plan.types), f"Table {'.'.join(plan.path)}")
    return ranges.mapInArrow(lambda batches: generate(batches), spark_schema(plan.types))


@translates(Values)
def _values(translator: Translator, plan: Values) -> DataFrame:
    if not plan.names:
        # A row without columns.
        return translator.session.range(len(plan.rows)).select()
    one = pa.record_batch({"$row": pa.array([0], pa.int8())})
    context = EvaluationContext(1, translator.context.time_zone, translator.context.now)
    schema = arrow_schema(plan.names, plan.types)
    rows = [pa.RecordBatch.from_arrays(Evaluator(row).columns(one, context), schema=schema) for row in plan.rows]
    return frame_of_batches(translator, pa.Table.from_batches(rows, schema).combine_chunks().to_batches(), plan.types)
