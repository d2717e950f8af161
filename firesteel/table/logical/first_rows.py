"""The first rows of an order, which is all of it that a stream can have."""

from __future__ import annotations

from firesteel.table.functions.binding import bind
from firesteel.table.logical.expressions import Expression, InputRef, Literal
from firesteel.table.logical.plan import Filter, Plan, Project, RowNumber, Sort, SortOrder, unique_names
from firesteel.table.types.data_types import BigIntType

__all__ = ["extended", "first_rows", "number", "place_of", "unordered"]


def number(value: int) -> Literal:
    """A whole number as a constant."""
    return Literal(value, BigIntType(is_nullable=False))


def first_rows(plan: Sort) -> Plan:
    """The first rows of an order by their places in it, which is how a stream has them."""
    order = plan.order
    below = plan.input
    if not order:
        # All are equal, and those that came first stay.
        below, order = unordered(below)
    numbered = RowNumber(below, (), order, "$row")
    place = InputRef(len(numbered.names) - 1, numbered.types[-1])
    bounds: list[Expression] = []
    if plan.limit is not None:
        bounds.append(bind("<=", [place, number(plan.offset + plan.limit)]))
    if plan.offset:
        bounds.append(bind(">", [place, number(plan.offset)]))
    condition = bounds[0] if len(bounds) == 1 else bind("AND", bounds)
    kept = numbered.refs()[: len(plan.names)]
    return Project(Filter(numbered, condition), tuple(kept), plan.names)


def unordered(plan: Plan) -> tuple[Plan, tuple[SortOrder, ...]]:
    """An order in which all rows are equal, so that those that came first stay."""
    expressions: list[Expression] = list(plan.refs())
    order = SortOrder(place_of(number(0), expressions))
    return extended(plan, expressions), (order,)


def place_of(expression: Expression, expressions: list[Expression]) -> int:
    """Where an expression is among others; it is put behind them if it is not."""
    if expression not in expressions:
        expressions.append(expression)
    return expressions.index(expression)


def extended(plan: Plan, expressions: list[Expression]) -> Plan:
    """The relation with more columns behind its own, which the expressions begin with."""
    added = len(expressions) - len(plan.names)
    if not added:
        return plan
    names = unique_names([*plan.names, *(f"$o{index}" for index in range(added))])
    return Project(plan, tuple(expressions), names)
