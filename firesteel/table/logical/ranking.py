"""Columns that rows are ordered by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression
from firesteel.table.logical.first_rows import extended, place_of, unordered
from firesteel.table.logical.plan import Plan, Project, Sort, SortOrder
from firesteel.table.sql import syntax

__all__ = ["limited", "order_columns", "placed_order"]


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
        return unordered(plan)
    return extended(plan, expressions), tuple(found)


def limited(plan: Plan, offset: int, limit: int | None) -> Plan:
    """Some rows of a relation, the first ones if it is ordered."""
    if isinstance(plan, Project) and isinstance(plan.input, Sort) and plan.input.limit is None:
        return replace(plan, input=limited(plan.input, offset, limit))
    if isinstance(plan, Sort) and plan.limit is None:
        return replace(plan, offset=plan.offset + offset, limit=limit)
    return Sort(plan, (), offset, limit)
