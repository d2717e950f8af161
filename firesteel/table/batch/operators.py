"""What Spark SQL cannot say runs on the operators of streams, inside Spark's workers: rows that belong together come
into one partition, and what the operators have of it in the end is the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firesteel.runtime.columns.kinds import INSERT, KIND
from firesteel.table.batch.kernels import KernelContext
from firesteel.table.batch.layout import from_spark, to_spark
from firesteel.table.batch.rewriting import with_inputs
from firesteel.table.batch.spark_types import column_names, spark_schema, spark_type
from firesteel.table.batch.translator import Translator
from firesteel.table.catalog.tables import InlineTable
from firesteel.table.logical.plan import Plan, Scan
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import DataType, RowType

__all__ = ["by_operators"]

_NOBODY = -1
"""The side of a row that is there so that a partition is."""


def by_operators(translator: Translator, plan: Plan, keys: Sequence[Sequence[int]] | None) -> DataFrame:
    """The rows of a relation, for whose inputs ``keys`` names the columns that say which rows belong together. Without
    columns all do; None is for a relation that looks at each row by itself."""
    inputs = plan.inputs
    alone = keys is None
    keys = keys or [()] * len(inputs)
    kinds = [each.types for each in inputs]
    whole: DataFrame | None = None
    for side, (each, own) in enumerate(zip(inputs, keys, strict=True)):
        frame = _tagged(translator.frame(each), side, own, kinds)
        whole = frame if whole is None else whole.unionByName(frame)
    assert whole is not None
    columns = [f"k{index}" for index in range(len(keys[0]))]
    if alone:
        together = whole
    elif columns:
        together = whole.repartition(*[F.col(name) for name in columns]).drop(*columns)
    else:
        together = whole.union(_empty_frame(translator, kinds)).repartition(1)
    names = [each.names for each in inputs]
    run = translator.context.shipped(
        _Run(plan, names, kinds, translator.context, alone),
        f"{type(plan).__name__}, or a function in it,",
    )
    return together.mapInArrow(lambda batches: run(batches), spark_schema(plan.types))


def _tagged(frame: DataFrame, side: int, keys: Sequence[int], kinds: Sequence[Sequence[DataType]]) -> DataFrame:
    """The columns of all inputs, NULL but for one, and the input's number."""
    columns = [F.lit(side).alias("side")]
    for number, own in enumerate(kinds):
        for index, kind in enumerate(own):
            value = F.col(f"c{index}") if number == side else F.lit(None).cast(spark_type(kind))
            columns.append(value.alias(f"i{number}_{index}"))
    columns += [F.col(f"c{key}").alias(f"k{index}") for index, key in enumerate(keys)]
    return frame.select(*columns)


def _empty_frame(translator: Translator, kinds: Sequence[Sequence[DataType]]) -> DataFrame:
    columns = [F.lit(_NOBODY).alias("side")]
    for number, own in enumerate(kinds):
        columns += [F.lit(None).cast(spark_type(kind)).alias(f"i{number}_{i}") for i, kind in enumerate(own)]
    return translator.session.range(1).select(*columns)


class _Run:
    """Runs in workers: the relation over the rows of one partition."""

    def __init__(
        self,
        plan: Plan,
        names: list[tuple[str, ...]],
        kinds: list[tuple[DataType, ...]],
        context: KernelContext,
        alone: bool = False,
    ) -> None:
        numbers = iter(range(len(names)))
        # A column of time stays one, without the table that it came from.
        time = getattr(plan, "time", None)
        self._rowtimes = (names[0][time],) if isinstance(time, int) else ()
        # What is below is not needed there, and may be large.
        self._plan = with_inputs(plan, lambda each: _scan(next(numbers), each.names, each.types, (), self._rowtimes))
        self._names, self._kinds, self._time_zone, self._alone = names, kinds, context.time_zone, alone
        self._job_parameters = context.job_parameters

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self._alone:
            for batch in batches:
                yield from self._results([batch])
            return
        rows = list(batches)
        if rows:
            yield from self._results(rows)

    def _results(self, rows: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Here: the worker needs the memory engine for this, and for nothing else.
        import firesteel.table.functions  # noqa: F401
        from firesteel.common.configuration import Configuration
        from firesteel.table.batch.in_memory import MemoryExecutor

        found: list[list[pa.RecordBatch]] = [[] for _ in self._names]
        for batch in rows:
            first = 1
            for side, (names, kinds) in enumerate(zip(self._names, self._kinds, strict=True)):
                chosen = batch.filter(pc.equal(batch.column(0), side))
                columns = [from_spark(chosen.column(first + index), kind) for index, kind in enumerate(kinds)]
                if chosen.num_rows:
                    found[side].append(_batch(columns, names, kinds, chosen.num_rows))
                first += len(kinds)
        numbers = iter(range(len(found)))

        def filled(each: Plan) -> Plan:
            side = next(numbers)
            return _scan(side, each.names, each.types, tuple(found[side]), self._rowtimes)

        plan = with_inputs(self._plan, filled)
        settings = Configuration.from_dict({"firesteel.master": "memory", "parallelism.default": "1"})
        settings.set_string("pipeline.global-job-parameters", self._job_parameters)
        for result in MemoryExecutor(settings, self._time_zone).rows(plan, "partition"):
            columns = [to_spark(column, kind) for column, kind in zip(result.columns, plan.types, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, column_names(len(columns)))


def _batch(columns: list[pa.Array], names: Sequence[str], kinds: Sequence[DataType], rows: int) -> pa.RecordBatch:
    """Rows without columns have nothing but their kinds: Arrow counts rows by columns."""
    if not kinds:
        return pa.record_batch({KIND: pa.repeat(pa.scalar(INSERT, pa.int8()), rows)})
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(names, kinds))


def _scan(
    side: int,
    names: Sequence[str],
    kinds: Sequence[DataType],
    batches: tuple[pa.RecordBatch, ...],
    rowtimes: tuple[str, ...],
) -> Scan:
    row_type = RowType.of(list(names), list(kinds))
    return Scan((f"input {side}",), row_type, InlineTable(row_type, batches), rowtimes)
