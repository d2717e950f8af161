"""TUMBLE, HOP, CUMULATE and SESSION: tables with the windows of each row."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.table.functions.binding import bind
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef, Literal
from firesteel.table.logical.plan import Filter, Plan, WindowTable
from firesteel.table.logical.scope import Scope
from firesteel.table.logical.time_attributes import time_attribute
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.data_types import DayTimeIntervalType, LocalZonedTimestampType, TimestampType

__all__ = ["WINDOW_FUNCTIONS", "milliseconds_of", "window_table", "with_times"]

WINDOW_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}


def window_table(
    call: syntax.FunctionCall, tables: Callable[[syntax.TableArgument], Plan], text: str | None, streaming: bool = True
) -> WindowTable:
    """The table that a window function gives. In batch mode all rows are there, so that any time will do."""

    def invalid(node: syntax.Node, message: str) -> SqlValidationError:
        return SqlValidationError(message, text, node.span)

    name = call.name.parts[-1].upper()
    parameters = WINDOW_FUNCTIONS[name]
    given: dict[str, syntax.Node] = {}
    for position, argument in enumerate(call.args):
        if isinstance(argument, syntax.NamedArgument):
            given[argument.name.upper()] = argument.value
        elif position < len(parameters):
            given[parameters[position]] = argument
        else:
            raise invalid(argument, f"{name} takes {', '.join(parameters)}.")
    needed = parameters if name == "SESSION" else parameters[:-1]
    for parameter in (*needed, *given):
        if parameter not in given or parameter not in parameters:
            raise invalid(call, f"{name} takes {', '.join(parameters)}; {parameter} is missing or unknown.")
    data, column = given["DATA"], given["TIMECOL"]
    if isinstance(data, syntax.Subquery):
        data = syntax.TableArgument(data.query, span=data.span)
    if not isinstance(data, syntax.TableArgument):
        meant = data if isinstance(data, syntax.Name) else "t"
        raise invalid(data, f"{name} takes a table first, which is written TABLE {meant}.")
    if not isinstance(column, syntax.Descriptor):
        meant = column if isinstance(column, syntax.Name) else "time"
        raise invalid(column, f"{name} takes its time column as DESCRIPTOR({meant}).")
    plan = tables(data)
    if data.partition and name != "SESSION":
        raise invalid(data.partition[0], f"{name} takes no PARTITION BY: its windows are the same for all rows.")
    resolver = ExpressionResolver(Scope.of(plan, None), text)
    partition = [resolver.resolve(key) for key in data.partition]
    for key, node in zip(partition, data.partition, strict=True):
        if not isinstance(key, InputRef):
            raise invalid(node, "PARTITION BY takes columns of the table.")
    place = resolver.resolve(column.names[0])
    if not isinstance(place, InputRef) or (streaming and time_attribute(plan, place.index) is None):
        message = f"{column.names[0]} is not a time attribute: the table needs WATERMARK FOR {column.names[0]} AS ...."
        raise invalid(column, message)
    if not isinstance(place.type, TimestampType | LocalZonedTimestampType):
        raise invalid(column, f"Windows need a TIMESTAMP(3) or TIMESTAMP_LTZ(3), {column.names[0]} is {place.type}.")

    if not streaming:
        plan = with_times(plan, place)

    def span(parameter: str) -> int:
        return milliseconds_of(given[parameter], parameter, text)

    size = span("GAP" if name == "SESSION" else "SIZE")
    slide = span(parameters[2]) if name in ("HOP", "CUMULATE") else 0
    if size <= 0 or slide < 0 or (name in ("HOP", "CUMULATE") and not slide):
        raise invalid(call, f"{name}: intervals are above zero.")
    if name == "CUMULATE" and size % slide:
        raise invalid(call, "CUMULATE: the size is a multiple of the step.")
    offset = span("OFFSET") if "OFFSET" in given else 0
    keys = tuple(key.index for key in partition if isinstance(key, InputRef))
    return WindowTable(plan, place.index, name, size, slide, offset, keys)


def with_times(plan: Plan, time: Expression) -> Plan:
    """The rows that have a time, for windows of batch mode; on streams one without ends the job."""
    return Filter(plan, bind("IS NOT NULL", [time])) if time.type.is_nullable else plan


def milliseconds_of(node: syntax.Node, what: str, text: str | None) -> int:
    """A constant interval of days or less."""
    found = ExpressionResolver(Scope([]), text).resolve(node)
    if not isinstance(found, Literal) or not isinstance(found.type, DayTimeIntervalType):
        message = f"{what} is an interval of days or less: INTERVAL '10' MINUTES."
        raise SqlValidationError(message, text, node.span)
    return int(found.value.total_seconds() * 1000)
