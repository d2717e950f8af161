"""Rows that are made of rows, in Spark's workers: table functions and UNNEST, each row by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firesteel.runtime.operators.table import Correlate as CorrelateSpec
from firesteel.runtime.operators.table.correlate import correlated
from firesteel.runtime.operators.table.user_functions import UserFunctions
from firesteel.table.batch.kernels import KernelContext
from firesteel.table.batch.layout import from_spark, to_spark
from firesteel.table.batch.operators import by_operators
from firesteel.table.batch.spark_types import column_names, spark_schema
from firesteel.table.batch.task_functions import TaskRuntime
from firesteel.table.batch.translator import Translator, translates
from firesteel.table.functions.watermarks import CURRENT_WATERMARK
from firesteel.table.logical.expressions import calls_of
from firesteel.table.logical.plan import Correlate
from firesteel.table.physical.made_rows import made_rows
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import DataType

__all__: list[str] = []


class _Make:
    """Runs in workers: the functions are opened and closed once for the rows of a partition."""

    def __init__(
        self, spec: CorrelateSpec, given: tuple[DataType, ...], results: tuple[DataType, ...], context: KernelContext
    ) -> None:
        self._spec, self._given, self._results, self._context = spec, given, results, context

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Functions register themselves when their modules are loaded.
        import firesteel.table.functions  # noqa: F401

        functions = UserFunctions((self._spec.made,), TaskRuntime(self._context.job_parameters))
        try:
            for batch in batches:
                found = correlated(self._spec, self._ours(batch), int(self._context.now * 1000))
                columns = [to_spark(column, kind) for column, kind in zip(found.columns, self._results, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, column_names(len(columns)))
        finally:
            functions.close()

    def _ours(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [from_spark(column, kind) for column, kind in zip(batch.columns, self._given, strict=False)]
        return pa.RecordBatch.from_arrays(columns, column_names(len(columns))) if columns else batch


@translates(Correlate)
def _correlate(translator: Translator, plan: Correlate) -> DataFrame:
    if any(True for _ in calls_of(CURRENT_WATERMARK, plan.call)):
        return by_operators(translator, plan, None)
    context = translator.context
    made = made_rows(plan.call, context.time_zone)
    spec = CorrelateSpec(made, plan.kept, arrow_schema(plan.names, plan.types), plan.kind == "LEFT")
    make = context.shipped(_Make(spec, plan.input.types, plan.types, context), "Correlate, or a function in it,")
    frame = translator.frame(plan.input)
    if not frame.columns:
        # Arrow counts rows by columns: this is one that nobody asks for.
        frame = frame.select(F.lit(0).alias("rows"))
    return frame.mapInArrow(lambda batches: make(batches), spark_schema(plan.types))
