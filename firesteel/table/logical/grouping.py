"""SELECT with GROUP BY or aggregates: what is computed before the groups, in them, and of their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from firesteel.table.functions.aggregates import AGGREGATES, KNOWN_AGGREGATES, aggregate_type
from firesteel.table.functions.binding import FunctionError
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import AggregateCall, Expression, InputRef
from firesteel.table.logical.plan import Aggregate, Plan, Project, unique_names
from firesteel.table.logical.scope import Scope
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import SqlError
from firesteel.table.types.data_types import DataType

__all__ = ["AggregateResolver", "has_aggregates"]


class AggregateResolver(ExpressionResolver):
    """Resolves what stands in SELECT and HAVING over the columns of an :class:`Aggregate`, and gathers its calls."""

    def __init__(self, input: Plan, scope: Scope, keys: Sequence[syntax.Node], text: str | None) -> None:
        super().__init__(scope, text)
        self._input = input
        self._inner = ExpressionResolver(scope, text)
        self._keys = [self._inner.resolve(key) for key in keys]
        self._key_names = [key.parts[-1] if isinstance(key, syntax.Name) else f"$f{i}" for i, key in enumerate(keys)]
        # What the groups are made of: the keys, then the arguments of aggregates.
        self._below: list[Expression] = list(self._keys)
        self._calls: list[AggregateCall] = []

    def resolve(self, node: syntax.Node) -> Expression:
        key = self._key(node)
        if key is not None:
            return key
        if isinstance(node, syntax.Name):
            found = self._inner.resolve(node)
            assert found is not None
            raise self.invalid(
                node,
                f"{node} is neither in GROUP BY nor inside an aggregate: a group has many values of it.",
            )
        return super().resolve(node)

    def _key(self, node: syntax.Node) -> Expression | None:
        if isinstance(node, syntax.Constant | syntax.Interval | syntax.Symbol) or has_aggregates(node):
            return None
        try:
            found = self._inner.resolve(node)
        except SqlError:
            return None
        if found in self._keys:
            index = self._keys.index(found)
            return InputRef(index, found.type)
        return None

    def aggregate(self, node: syntax.FunctionCall, name: str) -> Expression:
        if name not in AGGREGATES:
            raise self.unsupported(node, f"the aggregate {name}")
        if node.order or node.nulls:
            raise self.unsupported(node, f"{name} with an order of rows")
        stars = [argument for argument in node.args if isinstance(argument, syntax.Star)]
        if stars and (name != "COUNT" or len(node.args) > 1 or node.distinct):
            raise self.invalid(stars[0], "* may stand in COUNT(*) only.")
        args = [] if stars else [self._inner.resolve(argument) for argument in node.args]
        if name == "COUNT" and not args and not stars:
            raise self.invalid(node, "COUNT takes an argument: COUNT(*) counts rows.")
        if len(args) > 1:
            raise self.unsupported(node, f"{name} of several arguments")
        chosen = self._inner.condition(node.filter, "FILTER") if node.filter is not None else None
        if name == "COUNT" and args and not node.distinct and not args[0].type.is_nullable:
            # Nothing to look at: all rows count.
            args = []
        try:
            kinds = [argument.type for argument in args]
            result = aggregate_type(name, kinds, bool(self._keys), chosen is not None)
        except FunctionError as error:
            raise self.invalid(node, str(error)) from None
        return self._called(name, args, chosen, node.distinct, result)

    def _called(
        self, name: str, args: list[Expression], chosen: Expression | None, distinct: bool, result: DataType
    ) -> Expression:
        # MIN and MAX do not care how often a value is there.
        distinct = distinct and name not in ("MIN", "MAX")
        call = AggregateCall(
            name,
            tuple(self._column(argument) for argument in args),
            result,
            distinct,
            self._column(chosen) if chosen is not None else None,
        )
        if call not in self._calls:
            self._calls.append(call)
        return InputRef(len(self._keys) + self._calls.index(call), result)

    def _column(self, expression: Expression) -> int:
        if expression not in self._below:
            self._below.append(expression)
        return self._below.index(expression)

    def plan(self) -> Aggregate:
        """The groups, when everything has been resolved."""
        names = list(self._key_names)
        for index, each in enumerate(self._below[len(names) :], len(names)):
            names.append(self._input.names[each.index] if isinstance(each, InputRef) else f"$f{index}")
        below = Project(self._input, tuple(self._below), unique_names(names))
        aggregates = [f"EXPR${index}" for index in range(len(self._calls))]
        keys = tuple(range(len(self._keys)))
        return Aggregate(below, keys, tuple(self._calls), unique_names([*self._key_names, *aggregates]))


def has_aggregates(node: object) -> bool:
    """Whether an aggregate stands in what was written, outside of queries inside it."""
    if isinstance(node, tuple):
        return any(map(has_aggregates, node))
    if not isinstance(node, syntax.Node) or isinstance(node, syntax.Query):
        return False
    if isinstance(node, syntax.FunctionCall) and node.over is None and node.name.parts[-1].upper() in KNOWN_AGGREGATES:
        return True
    if isinstance(node, syntax.Binary):
        # Chains may be long, and they lean to the left.
        current: syntax.Node = node
        while isinstance(current, syntax.Binary):
            if has_aggregates(current.right):
                return True
            current = current.left
        return has_aggregates(current)
    return any(has_aggregates(getattr(node, each.name)) for each in fields(node) if each.name != "span")
