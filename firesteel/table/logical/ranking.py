"""ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...): what Top-N and deduplication are written with."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef, Literal
from firesteel.table.logical.plan import Plan, Project, RowNumber, SortOrder, unique_names
from firesteel.table.logical.scope import Scope
from firesteel.table.sql import syntax
from firesteel.table.types.data_types import BigIntType

__all__ = ["RowNumberResolver", "number", "order_columns"]


def number(value: int) -> Literal:
    """A whole number as a constant."""
    return Literal(value, BigIntType(is_nullable=False))


def order_columns(
    plan: Plan, order: Sequence[syntax.OrderItem], resolver: ExpressionResolver
) -> tuple[Plan, tuple[SortOrder, ...]]:
    """The relation with a column for everything that rows are ordered by."""
    expressions: list[Expression] = list(plan.refs())
    found = []
    for item in order:
        expression = resolver.resolve(item.expression)
        # NULLs come first in ascending order, last in descending order.
        last = item.descending if item.nulls_last is None else item.nulls_last
        found.append(SortOrder(_place(expression, expressions), item.descending, last))
    if not order:
        # All are equal, and those that came first stay.
        found.append(SortOrder(_place(number(0), expressions)))
    return _extended(plan, expressions), tuple(found)


def _place(expression: Expression, expressions: list[Expression]) -> int:
    if expression not in expressions:
        expressions.append(expression)
    return expressions.index(expression)


def _extended(plan: Plan, expressions: list[Expression]) -> Plan:
    added = len(expressions) - len(plan.names)
    if not added:
        return plan
    names = unique_names([*plan.names, *(f"$o{index}" for index in range(added))])
    return Project(plan, tuple(expressions), names)


class RowNumberResolver(ExpressionResolver):
    """Resolves a SELECT that may have one ROW_NUMBER(). ``plan`` is what its expressions are over."""

    def __init__(
        self, plan: Plan, scope: Scope, windows: tuple[tuple[str, syntax.Over], ...], text: str | None
    ) -> None:
        super().__init__(scope, text)
        self.plan = plan
        self._windows = dict(windows)
        self._seen: syntax.Over | None = None

    def over(self, node: syntax.FunctionCall, name: str) -> Expression:
        window = node.over
        assert window is not None
        if window.name is not None:
            if window.name not in self._windows:
                raise self.invalid(window, f"There is no window {window.name}.")
            window = self._windows[window.name]
        if name != "ROW_NUMBER" or window.frame is not None:
            raise self.unsupported(node, f"OVER windows of {name}; ROW_NUMBER() for Top-N and deduplication is there")
        if self._seen is not None and self._seen != window:
            raise self.unsupported(node, "several ROW_NUMBER() with different windows")
        if self._seen is None:
            self._seen = window
            self.plan = self._numbered(window, node)
        return InputRef(len(self.plan.names) - 1, BigIntType(is_nullable=False))

    def _numbered(self, window: syntax.Over, node: syntax.FunctionCall) -> Plan:
        if not window.order:
            raise self.invalid(node, "ROW_NUMBER() needs an ORDER BY in its window.")
        expressions: list[Expression] = list(self.plan.refs())
        keys = [_place(self.resolve(key), expressions) for key in window.partition]
        ordered, order = order_columns(_extended(self.plan, expressions), window.order, self)
        return RowNumber(ordered, tuple(keys), order, "$row_number")
