"""OVER on Spark: its own window functions where they mean the same, ours in its workers for the others."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window, WindowSpec

from firesteel.table.batch.groups import aggregate_column, is_native
from firesteel.table.batch.layout import is_number_in_spark
from firesteel.table.batch.native_times import micros
from firesteel.table.batch.operators import by_operators
from firesteel.table.batch.spark_types import column_names, spark_type
from firesteel.table.batch.translator import Translator, in_order, in_order_of, translates
from firesteel.table.logical.analytic_windows import RANKING, AnalyticWindow, Frame
from firesteel.table.logical.expressions import AggregateCall
from firesteel.table.logical.plan import Plan, Project
from firesteel.table.types.data_types import IntegralType, LocalZonedTimestampType, TimestampType

__all__: list[str] = []

_PLACES: dict[str, Callable[[], Column]] = {
    "ROW_NUMBER": F.row_number,
    "RANK": F.rank,
    "DENSE_RANK": F.dense_rank,
    "PERCENT_RANK": F.percent_rank,
    "CUME_DIST": F.cume_dist,
}


@translates(AnalyticWindow)
def _analytic(translator: Translator, plan: AnalyticWindow) -> DataFrame:
    native = [at for at in range(len(plan.calls)) if _spark_can(plan, at)]
    if not native:
        return by_operators(translator, plan, [plan.partition])
    if len(native) < len(plan.calls):
        return translator.frame(_split(plan, native))
    width = len(plan.input.names)
    results = [_column(plan, at).alias(f"c{width + at}") for at in native]
    return translator.frame(plan.input).select(*column_names(width), *results)


def _split(plan: AnalyticWindow, native: list[int]) -> Plan:
    """Those that Spark computes, and over their results the others."""
    others = [at for at in range(len(plan.calls)) if at not in native]
    width = len(plan.input.names)
    both: Plan = plan.input
    for chosen in (native, others):
        calls, frames = tuple(plan.calls[at] for at in chosen), tuple(plan.frames[at] for at in chosen)
        both = AnalyticWindow(both, plan.partition, plan.order, calls, frames)
    refs = both.refs()
    places = [*native, *others]
    results = [refs[width + places.index(at)] for at in range(len(plan.calls))]
    return Project(both, (*refs[:width], *results), plan.names)


def _spark_can(plan: AnalyticWindow, at: int) -> bool:
    call, frame = plan.calls[at], plan.frames[at]
    if call.function in RANKING and call.user is None:
        # Spark has no place without an order, Flink has any.
        return bool(plan.order)
    if not is_native(call) or call.distinct:
        return False
    if frame.rows or (frame.start in (None, 0) and frame.end in (None, 0)):
        return True
    kind = plan.input.types[plan.order[0].column]
    if isinstance(kind, IntegralType):
        return isinstance(frame.start, int | None) and isinstance(frame.end, int | None)
    return isinstance(kind, TimestampType | LocalZonedTimestampType) and not is_number_in_spark(kind)


def _column(plan: AnalyticWindow, at: int) -> Column:
    call, frame = plan.calls[at], plan.frames[at]
    window = Window.partitionBy(*[F.col(f"c{key}") for key in plan.partition])
    if call.function in RANKING and call.user is None:
        return _place(call, window.orderBy(*in_order(plan.order))).cast(spark_type(call.type))
    framed = _framed(plan, frame, window)
    return aggregate_column(call, plan.input.types, lambda column: column.over(framed))


def _place(call: AggregateCall, window: WindowSpec) -> Column:
    if call.function == "NTILE":
        return F.ntile(call.options[0]).over(window)
    if call.function not in ("LAG", "LEAD"):
        return _PLACES[call.function]().over(window)
    shift = F.lag if call.function == "LAG" else F.lead
    value, (offset,) = F.col(f"c{call.args[0]}"), call.options
    if len(call.args) == 1:
        return shift(value, offset).over(window)
    # Spark takes constants as defaults: whether there is a row is asked apart, for a NULL is a value.
    there = shift(F.lit(1), offset).over(window).isNotNull()
    return F.when(there, shift(value, offset).over(window)).otherwise(F.col(f"c{call.args[1]}"))


def _framed(plan: AnalyticWindow, frame: Frame, window: WindowSpec) -> WindowSpec:
    start = Window.unboundedPreceding if frame.start is None else int(frame.start)
    end = Window.unboundedFollowing if frame.end is None else int(frame.end)
    if frame.rows:
        return window.orderBy(*in_order(plan.order)).rowsBetween(start, end)
    if frame.start in (None, 0) and frame.end in (None, 0):
        return window.orderBy(*in_order(plan.order)).rangeBetween(start, end)
    (order,) = plan.order
    column = F.col(f"c{order.column}")
    if not isinstance(plan.input.types[order.column], IntegralType):
        column = micros(column)
        start = start if frame.start is None else start * 1000
        end = end if frame.end is None else end * 1000
    return window.orderBy(in_order_of(column.cast("bigint"), order)).rangeBetween(start, end)
