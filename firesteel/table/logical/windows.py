"""TUMBLE, HOP and CUMULATE: tables with the windows of each row."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import InputRef, Literal
from firesteel.table.logical.plan import Filter, Plan, Project, Scan, WindowTable
from firesteel.table.logical.scope import Scope
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.data_types import DayTimeIntervalType, TimestampType

__all__ = ["WINDOW_FUNCTIONS", "is_rowtime", "window_table"]

WINDOW_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
}


def is_rowtime(plan: Plan, index: int) -> bool:
    """Whether a column is the one that the table's watermark is for."""
    while isinstance(plan, Project | Filter):
        if isinstance(plan, Project):
            expression = plan.expressions[index]
            computed = plan.column_names[index] in getattr(plan.input, "rowtimes", ())
            if computed:
                return True
            if not isinstance(expression, InputRef):
                return False
            index = expression.index
        plan = plan.input
    return isinstance(plan, Scan) and plan.names[index] in plan.rowtimes


def window_table(
    call: syntax.FunctionCall, tables: Callable[[syntax.TableArgument], Plan], text: str | None
) -> WindowTable:
    """The table that a window function gives."""

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
    for parameter in (*parameters[:-1], *given):
        if parameter not in given or parameter not in parameters:
            raise invalid(call, f"{name} takes {', '.join(parameters)}; {parameter} is missing or unknown.")
    data, column = given["DATA"], given["TIMECOL"]
    if not isinstance(data, syntax.TableArgument) or not isinstance(column, syntax.Descriptor):
        raise invalid(call, f"{name}(TABLE t, DESCRIPTOR(time), ...) takes a table and its time column.")
    plan = tables(data)
    place = ExpressionResolver(Scope.of(plan, None), text).resolve(column.names[0])
    if not isinstance(place, InputRef) or not is_rowtime(plan, place.index):
        message = f"{column.names[0]} is no time attribute: the table needs WATERMARK FOR {column.names[0]} AS ...."
        raise invalid(column, message)
    if not isinstance(place.type, TimestampType):
        raise invalid(column, f"Windows need a TIMESTAMP(3) column, {column.names[0]} is {place.type}.")

    def span(parameter: str) -> int:
        node = given[parameter]
        found = ExpressionResolver(Scope([]), text).resolve(node)
        if not isinstance(found, Literal) or not isinstance(found.type, DayTimeIntervalType):
            raise invalid(node, f"{parameter} is an interval of days or less: INTERVAL '10' MINUTES.")
        return int(found.value.total_seconds() * 1000)

    size = span("SIZE")
    slide = span(parameters[2]) if name != "TUMBLE" else 0
    if size <= 0 or slide < 0 or (slide and name == "CUMULATE" and size % slide):
        raise invalid(call, f"{name}: the size is above zero, and of CUMULATE a multiple of the step.")
    return WindowTable(plan, place.index, name, size, slide, span("OFFSET") if "OFFSET" in given else 0)
