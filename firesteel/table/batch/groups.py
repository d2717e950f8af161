"""Aggregates of groups, and the windows of time that groups may be of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from firesteel.table.batch.native_times import micros, moment_of_micros
from firesteel.table.batch.operators import by_operators
from firesteel.table.batch.spark_types import column_names, spark_type
from firesteel.table.batch.translator import Translator, translates
from firesteel.table.logical.expressions import AggregateCall
from firesteel.table.logical.plan import Aggregate, Expand, OverWindow, TableAggregate, WindowTable
from firesteel.table.sql.errors import NotSupportedError
from firesteel.table.types.data_types import DataType, DecimalType, IntegralType, LocalZonedTimestampType

__all__ = ["AGGREGATES", "aggregate_column", "is_native"]


Applied: TypeAlias = Callable[[Column], Column]
"""What becomes of an aggregate function before anything is computed of it: nothing, or ``OVER (...)``."""


def _summed(argument: Column, distinct: bool, applied: Applied) -> Column:
    return applied(F.sum_distinct(argument) if distinct else F.sum(argument))


def _count(call: AggregateCall, argument: Column, kind: DataType, applied: Applied) -> Column:
    return applied(F.count_distinct(argument) if call.distinct else F.count(argument))


def _sum(call: AggregateCall, argument: Column, kind: DataType, applied: Applied) -> Column:
    """In 64 bits, so that it wraps around in its own type when it is cut to it."""
    return _summed(argument, call.distinct, applied).cast(spark_type(call.type))


def _average(call: AggregateCall, argument: Column, kind: DataType, applied: Applied) -> Column:
    count = _count(call, argument, kind, applied)
    if isinstance(kind, IntegralType):
        # Towards zero, as Java divides.
        total = _summed(argument, call.distinct, applied)
        return F.call_function("div", total, count).cast(spark_type(call.type))
    if isinstance(kind, DecimalType):
        total = _summed(argument, call.distinct, applied)
        wide = total.cast(f"decimal(38,{kind.scale})") / count.cast("decimal(20,0)")
        return wide.cast(spark_type(call.type))
    return (_summed(argument.cast("double"), call.distinct, applied) / count).cast(spark_type(call.type))


AGGREGATES: dict[str, Callable[[AggregateCall, Column, DataType, Applied], Column]] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _average,
    "MIN": lambda call, argument, kind, applied: applied(F.min(argument)),
    "MAX": lambda call, argument, kind, applied: applied(F.max(argument)),
}
"""Those that Spark computes."""


def is_native(call: AggregateCall) -> bool:
    """Whether Spark computes the aggregate."""
    return call.function in AGGREGATES and call.user is None and len(call.args) <= 1 and not call.options


def aggregate_column(call: AggregateCall, kinds: tuple[DataType, ...], applied: Applied | None = None) -> Column:
    """One aggregate over the columns c0, c1 and so on."""
    argument = F.col(f"c{call.args[0]}") if call.args else F.lit(1)
    kind = kinds[call.args[0]] if call.args else call.type
    if call.filter is not None:
        argument = F.when(F.col(f"c{call.filter}"), argument)
    return AGGREGATES[call.function](call, argument, kind, applied or _as_it_is)


def _as_it_is(column: Column) -> Column:
    return column


@translates(Aggregate)
def _aggregate(translator: Translator, plan: Aggregate) -> DataFrame:
    if not all(is_native(call) for call in plan.calls):
        return by_operators(translator, plan, [plan.keys])
    frame = translator.frame(plan.input)
    keys = [F.col(f"c{key}") for key in plan.keys]
    renamed = [F.col(f"c{key}").alias(f"c{index}") for index, key in enumerate(plan.keys)]
    if not plan.calls:
        return frame.select(*renamed).distinct() if keys else frame.limit(1).select()
    kinds = plan.input.types
    results = [aggregate_column(call, kinds).alias(f"c{len(keys) + index}") for index, call in enumerate(plan.calls)]
    if not keys:
        return frame.agg(*results)
    # By names that are no result's.
    named = [key.alias(f"k{index}") for index, key in enumerate(keys)]
    grouped = frame.groupBy(*named).agg(*results)
    names = [f"c{len(keys) + index}" for index in range(len(results))]
    return grouped.select(*[F.col(f"k{i}").alias(f"c{i}") for i in range(len(keys))], *names)


@translates(TableAggregate)
def _table_aggregate(translator: Translator, plan: TableAggregate) -> DataFrame:
    return by_operators(translator, plan, [plan.keys])


@translates(OverWindow)
def _over(translator: Translator, plan: OverWindow) -> DataFrame:
    if not all(is_native(call) and not call.distinct for call in plan.calls):
        return by_operators(translator, plan, [plan.partition])
    time = F.col(f"c{plan.time}")
    window = Window.partitionBy(*[F.col(f"c{key}") for key in plan.partition])
    if plan.rows:
        first = Window.unboundedPreceding if plan.preceding is None else -plan.preceding
        window = window.orderBy(time.asc_nulls_first()).rowsBetween(first, Window.currentRow)
    else:
        # Rows of the same time are in it together.
        first = Window.unboundedPreceding if plan.preceding is None else -1000 * plan.preceding
        window = window.orderBy(micros(time).asc_nulls_first()).rangeBetween(first, Window.currentRow)
    width = len(plan.input.names)
    results = [
        aggregate_column(call, plan.input.types, lambda column: column.over(window)).alias(f"c{width + index}")
        for index, call in enumerate(plan.calls)
    ]
    return translator.frame(plan.input).select(*column_names(width), *results)


@translates(Expand)
def _expand(translator: Translator, plan: Expand) -> DataFrame:
    """Each row once for each grouping set."""
    width = len(plan.input.names)
    numbers = F.explode(F.array(*[F.lit(number).cast("bigint") for number in range(len(plan.sets))]))
    frame = translator.frame(plan.input).withColumn(f"c{width}", numbers)
    columns = []
    for index in range(width):
        column = F.col(f"c{index}")
        if index in plan.cleared:
            kept = [number for number, stays in enumerate(plan.sets) if index in stays]
            column = F.when(F.col(f"c{width}").isin(kept), column).alias(f"c{index}")
        columns.append(column)
    return frame.select(*columns, f"c{width}")


@translates(WindowTable)
def _window_table(translator: Translator, plan: WindowTable) -> DataFrame:
    """Every row as often as there are windows that it is in. Windows are in milliseconds."""
    if plan.kind == "SESSION":
        return by_operators(translator, plan, [plan.partition])
    if isinstance(plan.input.types[plan.time], LocalZonedTimestampType):
        # Days of the zone have different lengths.
        return by_operators(translator, plan, None)
    frame = translator.frame(plan.input).filter(F.col(f"c{plan.time}").isNotNull())
    time = F.floor(micros(F.col(f"c{plan.time}")) / F.lit(1000)).cast("bigint")
    size, slide = F.lit(plan.size), F.lit(plan.slide or plan.size)
    frame = frame.withColumn("t", time)
    since = F.col("t") - F.lit(plan.offset)
    if plan.kind == "TUMBLE":
        frame = frame.withColumn("s", F.col("t") - F.pmod(since, size))
        end = F.col("s") + size
    elif plan.kind == "HOP":
        last = F.col("t") - F.pmod(since, slide)
        # The first one that is not over at the row's time.
        first = last - F.floor((size - F.lit(1) - (F.col("t") - last)) / slide).cast("bigint") * slide
        # With gaps between windows a row may be in none.
        frame = frame.withColumn("s", F.explode(F.sequence(F.least(first, last), last, slide)))
        frame = frame.filter(F.col("s") + size > F.col("t"))
        end = F.col("s") + size
    elif plan.kind == "CUMULATE":
        frame = frame.withColumn("s", F.col("t") - F.pmod(since, size))
        inside = F.col("t") - F.col("s")
        earliest = F.col("s") + inside - F.pmod(inside, slide) + slide
        frame = frame.withColumn("e", F.explode(F.sequence(earliest, F.col("s") + size, slide)))
        end = F.col("e")
    else:
        raise NotSupportedError(f"Not supported yet in batch mode: {plan.kind}.")
    width = len(plan.input.names)
    return frame.select(
        *[F.col(f"c{index}") for index in range(width)],
        _moment(F.col("s")).alias(f"c{width}"),
        _moment(end).alias(f"c{width + 1}"),
        _moment(end - F.lit(1)).alias(f"c{width + 2}"),
    )


def _moment(millis: Column) -> Column:
    return moment_of_micros(millis * F.lit(1000))
