"""Columns that rows are ordered by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firesteel.table.functions.binding import bind
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef, Literal
from firesteel.table.logical.plan import Filter, Plan, Project, RowNumber, Sort, SortOrder, unique_names
from firesteel.table.sql import syntax
from firesteel.table.types.data_types import BigIntType

__all__ = ["extended", "first_rows", "limited", "number", "order_columns", "place_of", "placed_order"]


def number(value: int) -> Literal:
    """A whole number as a constant."""
    return Literal(value, BigIntType(is_nullable=False))


def order_columns(
    plan: Plan, order: Sequence[syntax.OrderItem], resolver: ExpressionResolver
) -> tuple[Plan, tuple[SortOrder, ...]]:
    """The relation with a column for everything that rows are ordered by."""
    return placed_order(plan, order, [resolver.resolve(item.expression) for item in order])


def placed_order(
    plan: Plan, order: Sequence[syntax.OrderItem], resolved: Sequence[Expression]
) -> tuple[Plan, tuple[SortOrder, ...]]:
    """The same, where the expressions are known."""
    expressions: list[Expression] = list(plan.refs())
    found = []
    for item, expression in zip(order, resolved, strict=True):
        # NULLs come first in ascending order, last in descending order.
        last = item.descending if item.nulls_last is None else item.nulls_last
        found.append(SortOrder(place_of(expression, expressions), item.descending, last))
    if not order:
        # All are equal, and those that came first stay.
        found.append(SortOrder(place_of(number(0), expressions)))
    return extended(plan, expressions), tuple(found)


def first_rows(plan: Sort) -> Plan:
    """The first rows of an order by their places in it, which is how a stream has them."""
    order = plan.order
    below = plan.input
    if not order:
        # All are equal, and those that came first stay.
        below, order = placed_order(below, (), ())
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


def limited(plan: Plan, offset: int, limit: int | None) -> Plan:
    """Some rows of a relation, the first ones if it is ordered."""
    if isinstance(plan, Project) and isinstance(plan.input, Sort) and plan.input.limit is None:
        return replace(plan, input=limited(plan.input, offset, limit))
    if isinstance(plan, Sort) and plan.limit is None:
        return replace(plan, offset=plan.offset + offset, limit=limit)
    return Sort(plan, (), offset, limit)


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
