"""DataFrames of the user's as tables, and tables as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from firesteel.common.configuration import Configuration
from firesteel.datastream.dependencies import NOTHING_NEEDED, Dependencies
from firesteel.engine.settings import Settings
from firesteel.errors import ConfigurationError, ProgramError, short_repr
from firesteel.table.batch.bounds import check_plan
from firesteel.table.batch.layout import from_spark, is_number_in_spark
from firesteel.table.batch.on_spark import SparkExecutor
from firesteel.table.batch.sessions import in_session, users_session
from firesteel.table.batch.spark_types import type_of_spark
from firesteel.table.catalog.tables import SparkTable
from firesteel.table.logical.expressions import Call
from firesteel.table.logical.plan import Plan, Project
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    DataType,
    DayTimeIntervalType,
    RowField,
    RowType,
    TimestampType,
    TimeType,
    VarCharType,
    YearMonthIntervalType,
)

__all__ = ["frame_of_plan", "spark_table"]


def spark_table(frame: Any, schema: Sequence[str] | None = None) -> SparkTable:
    """A table of a DataFrame, which is read when a query runs."""
    if not isinstance(frame, DataFrame):
        raise ProgramError(f"from_spark() takes a DataFrame of Spark, got {short_repr(frame, 60)}.")
    names = list(schema) if schema is not None else frame.columns
    if len(names) != len(frame.columns):
        raise ProgramError(f"from_spark(): {len(names)} names for {len(frame.columns)} columns.")
    kinds = [type_of_spark(each.dataType, each.name).with_nullability(each.nullable) for each in frame.schema.fields]
    row_type = RowType(tuple(RowField(name, kind) for name, kind in zip(names, kinds, strict=True)))
    return SparkTable(row_type, frame, lambda: _read(frame, row_type))


def _read(frame: DataFrame, row_type: RowType) -> list[pa.RecordBatch]:
    layout = arrow_schema(row_type.field_names(), row_type.field_types())
    found = frame.toDF(*[f"c{index}" for index in range(len(row_type))]).toArrow()
    return [
        pa.RecordBatch.from_arrays(
            [from_spark(column, kind) for column, kind in zip(batch.columns, row_type.field_types(), strict=True)],
            schema=layout,
        )
        for batch in found.to_batches()
    ]


def frame_of_plan(
    plan: Plan, configuration: Configuration, time_zone: str, dependencies: Dependencies = NOTHING_NEEDED
) -> DataFrame:
    """The rows of a plan as a DataFrame of the user's session."""
    settings = Settings.of(configuration)
    if settings.master == "memory":
        raise ConfigurationError(
            "to_spark() needs Spark: firesteel.master should be local or a Spark master, got 'memory'."
        )
    check_plan(plan, configuration)
    user = users_session(settings)
    plan = _with_times_as_text(plan)
    frame = SparkExecutor(configuration, settings, time_zone, dependencies).translator().frame(plan)
    named = [
        _natural(F.col(f"c{index}"), kind).alias(name)
        for index, (name, kind) in enumerate(zip(plan.names, plan.types, strict=True))
    ]
    return in_session(frame.select(*named), user)


def _with_times_as_text(plan: Plan) -> Plan:
    """Spark has no times of day unless it is told to."""
    text = VarCharType(MAX_LENGTH)
    if not any(isinstance(kind, TimeType) for kind in plan.types):
        return plan
    columns = [Call("CAST", (ref,), text) if isinstance(ref.type, TimeType) else ref for ref in plan.refs()]
    return Project(plan, tuple(columns), plan.names)


def _natural(column: Column, kind: DataType) -> Column:
    """A value of Spark's own type where ours is kept as a number."""
    if isinstance(kind, DayTimeIntervalType):
        zero = F.lit(0)
        return F.make_dt_interval(zero, zero, zero, (column / F.lit(1000)).cast("decimal(18,6)"))
    if isinstance(kind, YearMonthIntervalType):
        return F.make_ym_interval(F.lit(0), column)
    if is_number_in_spark(kind):
        moment = F.timestamp_micros(F.floor(column / F.lit(1000)))
        return moment.cast("timestamp_ntz") if isinstance(kind, TimestampType) else moment
    return column
