"""SELECT with GROUP BY or aggregates: what is computed before the groups, in them, and of their results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from typing import Any

from firesteel.table.functions.aggregates import AGGREGATES, KNOWN_AGGREGATES, aggregate_type
from firesteel.table.functions.binding import FunctionError, bind
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.logical.expression_resolver import Around, ExpressionResolver
from firesteel.table.logical.expressions import AggregateCall, Call, Expression, InputRef, Literal, OuterRef
from firesteel.table.logical.group_windows import GroupWindow
from firesteel.table.logical.plan import Aggregate, Expand, Plan, Project, WindowTable, unique_names
from firesteel.table.logical.scope import Scope
from firesteel.table.logical.subqueries import map_outer
from firesteel.table.logical.user_calls import fitted_arguments
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import SqlError
from firesteel.table.types.data_types import BigIntType, DataType, RowField, RowType

__all__ = ["AggregateResolver", "aggregate_calls", "has_aggregates", "has_over"]


class AggregateResolver(ExpressionResolver):
    """Resolves what stands in SELECT and HAVING over the columns of an :class:`Aggregate`, and gathers its calls."""

    def __init__(
        self,
        input: Plan,
        scope: Scope,
        keys: Sequence[syntax.Node],
        text: str | None,
        around: Around | None = None,
        sets: Sequence[tuple[int, ...]] = (),
        window: GroupWindow | None = None,
    ) -> None:
        """``sets``: which of the keys each grouping set has; none: there is one with all of them. ``window``: rows are
        in windows, whose columns are keys behind the others."""
        super().__init__(scope, text)
        self.around = around
        self._input = input
        self._inner = ExpressionResolver(scope, text)
        # What groups are made of has no queries inside, but it may refer to the query around.
        self._inner.around = Around(self._no_query, around.outer) if around is not None else None
        self._keys = [self._inner.resolve(key) for key in keys]
        self._key_names = [key.parts[-1] if isinstance(key, syntax.Name) else f"$f{i}" for i, key in enumerate(keys)]
        self._sets = tuple(sets) if len(sets) > 1 else ()
        self._window = window
        if window is not None:
            self._first_part = len(self._keys)
            self._keys += window.columns(input)
            self._key_names += ["window_start", "window_end", "window_time"]
        # What the groups are made of: the keys, then the arguments of aggregates.
        self._below: list[Expression] = list(self._keys)
        if window is not None and isinstance(input, WindowTable):
            # What sessions are made for stands in columns of its own.
            for at, column in enumerate(input.partition):
                self._below[at] = InputRef(column, input.types[column])
        self._calls: list[AggregateCall] = []
        self.windows: tuple[tuple[str, syntax.Over], ...] | None = None
        """Windows with a name, where functions may be over groups."""

    def resolve(self, node: syntax.Node) -> Expression:
        if isinstance(node, syntax.FunctionCall) and node.over is None:
            special = self._special(node, node.name.parts[-1].upper())
            if special is not None:
                return special
        key = self._key(node)
        if key is not None:
            return key
        if isinstance(node, syntax.Name):
            found = self._inner.resolve(node)
            if isinstance(found, OuterRef):
                return found
            raise self.invalid(
                node,
                f"{node} is neither in GROUP BY nor inside an aggregate: a group has many values of it.",
            )
        return super().resolve(node)

    def _no_query(self, node: syntax.Query, scope: Scope) -> Plan:
        raise self.unsupported(node, "a query inside GROUP BY or an aggregate")

    def _query(self, node: syntax.Exists | syntax.InQuery | syntax.Subquery | syntax.Quantified) -> Plan:
        plan: Plan = super()._query(node)

        def of_group(index: int) -> int:
            for place, key in enumerate(self._keys):
                if isinstance(key, InputRef) and key.index == index:
                    return place
            raise self.invalid(node, "The query refers to a column that the groups do not have.")

        return map_outer(plan, of_group)

    def _special(self, node: syntax.FunctionCall, name: str) -> Expression | None:
        """What only groups have: parts of their window, and which keys their grouping set has."""
        if self._window is not None:
            part = self._window.part(node, name)
            if part is not None:
                at = self._first_part + part
                return InputRef(at, self._keys[at].type)
        if name == "GROUP_ID" and not node.args:
            return self._by_set([self._sets[:at].count(kept) for at, kept in enumerate(self._sets)])
        if name in ("GROUPING", "GROUPING_ID"):
            return self._grouping(node, [self._inner.resolve(argument) for argument in node.args])
        return None

    def _grouping(self, node: syntax.FunctionCall, args: list[Expression]) -> Expression:
        """A bit for each argument: whether the grouping set does not have it."""
        for argument, written in zip(args, node.args, strict=True):
            if argument not in self._keys:
                raise self.invalid(written, f"{written} is not in GROUP BY.")
        places = [self._keys.index(argument) for argument in args]
        return self._by_set(
            [sum((at not in kept) << (len(places) - 1 - bit) for bit, at in enumerate(places)) for kept in self._sets]
        )

    def _by_set(self, numbers: list[int]) -> Expression:
        """A number for each grouping set."""
        kind = BigIntType(is_nullable=False)
        if len(set(numbers)) < 2:
            return Literal(numbers[0] if numbers else 0, kind)
        which = InputRef(len(self._keys), kind)
        branches: list[Expression] = []
        for at, number in enumerate(numbers[:-1]):
            branches += [bind("=", [which, Literal(at, kind)]), Literal(number, kind)]
        return Call("CASE", (*branches, Literal(numbers[-1], kind)), kind)

    def _key(self, node: syntax.Node) -> Expression | None:
        if isinstance(node, syntax.Constant | syntax.Interval | syntax.Symbol) or has_aggregates(node):
            return None
        try:
            found = self._inner.resolve(node)
        except SqlError:
            return None
        if found in self._keys:
            index = self._keys.index(found)
            missing = any(index not in kept for kept in self._sets) and index < self._width
            return InputRef(index, found.type.nullable() if missing else found.type)
        return None

    @property
    def _width(self) -> int:
        """How many keys grouping sets may leave out: those of windows are in all of them."""
        return self._first_part if self._window is not None else len(self._keys)

    def aggregate(self, node: syntax.FunctionCall, name: str) -> Expression:
        if name not in AGGREGATES:
            raise self.unsupported(node, f"the aggregate {name}")
        if node.order:
            raise self.unsupported(node, f"{name} with an order of rows")
        if node.nulls and name != "ARRAY_AGG":
            raise self.invalid(node, f"{node.nulls} NULLS is for ARRAY_AGG, as in Flink, and not for {name}.")
        stars = [argument for argument in node.args if isinstance(argument, syntax.Star)]
        if stars and (name != "COUNT" or len(node.args) > 1 or node.distinct):
            raise self.invalid(stars[0], "* may stand in COUNT(*) only.")
        args = [] if stars else [self._inner.resolve(argument) for argument in node.args]
        if name == "COUNT" and not args and not stars:
            raise self.invalid(node, "COUNT takes an argument: COUNT(*) counts rows.")
        if len(args) > 1 and name == "COUNT":
            raise self.invalid(node, f"COUNT takes one argument, as in Flink, got {len(args)}. COUNT(*) counts rows.")
        chosen = self._inner.condition(node.filter, "FILTER") if node.filter is not None else None
        if node.nulls == "IGNORE" and args:
            known = bind("IS NOT NULL", [args[0]])
            chosen = known if chosen is None else bind("AND", [chosen, known])
        if name == "COUNT" and args and not node.distinct and not args[0].type.is_nullable:
            # Nothing to look at: all rows count.
            args = []
        try:
            if name == "JSON_OBJECTAGG" and len(args) == 2:
                # One column with both.
                fields = tuple(RowField(label, each.type) for label, each in zip(("key", "value"), args, strict=True))
                args = [Call("ROW", tuple(args), RowType(fields, is_nullable=False))]
            args, options = AGGREGATES[name].constants(args)
            if name.startswith("JSON_"):
                options = tuple(value for clause, value in node.clauses if clause == "ON NULL")
            kinds = [argument.type for argument in args]
            grouped = bool(self._keys) and all(self._sets)
            result = aggregate_type(name, kinds, grouped, chosen is not None, options)
        except FunctionError as error:
            raise self.invalid(node, str(error)) from None
        return self._called(name, args, chosen, node.distinct, result, options)

    def over(self, node: syntax.FunctionCall, name: str) -> Expression:
        """Only the aggregates in it: the function itself is over the groups, when all of them are known."""
        if self.windows is None:
            return super().over(node, name)
        for window in (node.over, *(named for _, named in self.windows)):
            if window is not None:
                for part in (*window.partition, *(item.expression for item in window.order)):
                    self.resolve(part)
        for argument in node.args:
            if not isinstance(argument, syntax.Star):
                self.resolve(argument)
        return Literal(None, BigIntType())

    def user_aggregate(self, node: syntax.FunctionCall) -> Expression:
        user = node.user
        if node.order or node.nulls:
            raise self.unsupported(node, f"{user.name} with an order of rows")
        if node.distinct and not node.args:
            raise self.invalid(node, f"DISTINCT needs arguments, and {user.name} is called without any.")
        try:
            args = fitted_arguments(user, [self._inner.resolve(argument) for argument in node.args])
        except FunctionError as error:
            raise self.invalid(node, str(error)) from None
        return self.user_called(user, args, node.distinct, node.filter)

    def user_called(
        self, user: UserFunction, args: Sequence[Expression], distinct: bool = False, filter: syntax.Node | None = None
    ) -> Expression:
        """A call of a user's aggregate function, as a column of the groups."""
        chosen = self._inner.condition(filter, "FILTER") if filter is not None else None
        places = tuple(self._column(argument) for argument in (*_known_by(args, distinct), *args))
        condition = self._column(chosen) if chosen is not None else None
        call = AggregateCall(user.name, places, user.result_type, distinct, condition, user=user)
        if call not in self._calls or not user.deterministic:
            self._calls.append(call)
        return InputRef(len(self._keys) + bool(self._sets) + self._calls.index(call), user.result_type)

    def _called(
        self,
        name: str,
        args: list[Expression],
        chosen: Expression | None,
        distinct: bool,
        result: DataType,
        options: tuple[Any, ...] = (),
    ) -> Expression:
        # MIN and MAX do not care how often a value is there.
        distinct = distinct and name not in ("MIN", "MAX")
        call = AggregateCall(
            name,
            tuple(self._column(argument) for argument in args),
            result,
            distinct,
            self._column(chosen) if chosen is not None else None,
            options=options,
        )
        if call not in self._calls:
            self._calls.append(call)
        return InputRef(len(self._keys) + bool(self._sets) + self._calls.index(call), result)

    def _column(self, expression: Expression) -> int:
        # A grouping set clears keys, but not what is aggregated.
        first = len(self._keys) if self._sets else 0
        if expression not in self._below[first:]:
            self._below.append(expression)
        return self._below.index(expression, first)

    def plan(self) -> Aggregate:
        """The groups, when everything has been resolved."""
        names = list(self._key_names)
        for index, each in enumerate(self._below[len(names) :], len(names)):
            names.append(self._input.names[each.index] if isinstance(each, InputRef) else f"$f{index}")
        below = Project(self._input, tuple(self._below), unique_names(names))
        aggregates = [f"EXPR${index}" for index in range(len(self._calls))]
        keys = tuple(range(len(self._keys)))
        if self._sets:
            others = tuple(range(self._width, len(self._keys)))
            sets = tuple((*kept, *others) for kept in self._sets)
            expanded = Expand(below, sets, keys)
            key_names = [*self._key_names, "$e"]
            return Aggregate(
                expanded, (*keys, len(below.names)), tuple(self._calls), unique_names([*key_names, *aggregates])
            )
        return Aggregate(below, keys, tuple(self._calls), unique_names([*self._key_names, *aggregates]))


def _known_by(args: Sequence[Expression], distinct: bool) -> tuple[Expression, ...]:
    """What rows are told apart by if they are DISTINCT and there are several arguments: one column with all that differ
    from row to row."""
    if not distinct or len(args) < 2:
        return ()
    columns = [each for each in args if not isinstance(each, Literal)] or list(args[:1])
    if len(columns) == 1:
        return (columns[0],)
    fields = tuple(RowField(f"f{at}", each.type) for at, each in enumerate(columns))
    return (Call("ROW", tuple(columns), RowType(fields, is_nullable=False)),)


def has_aggregates(node: object) -> bool:
    """Whether an aggregate stands in what was written, outside of queries inside it."""
    return any(True for _ in aggregate_calls(node))


def aggregate_calls(node: object, others: Collection[str] = ()) -> Iterator[syntax.FunctionCall]:
    """The aggregates in what was written, and calls of ``others``, in their order, outside of queries inside it."""
    if isinstance(node, tuple):
        for each in node:
            yield from aggregate_calls(each, others)
        return
    if not isinstance(node, syntax.Node) or isinstance(node, syntax.Query):
        return
    if isinstance(node, syntax.FunctionCall) and node.over is None:
        name = node.name.parts[-1].upper()
        known = name in KNOWN_AGGREGATES if node.user is None else node.user.kind == "aggregate"
        if known or name in others:
            yield node
            return
    if isinstance(node, syntax.Binary):
        # Chains may be long, and they lean to the left.
        rights: list[syntax.Node] = []
        current: syntax.Node = node
        while isinstance(current, syntax.Binary):
            rights.append(current.right)
            current = current.left
        yield from aggregate_calls(current, others)
        yield from aggregate_calls(tuple(reversed(rights)), others)
        return
    for part in fields(node):
        if part.name not in ("span", "user"):
            yield from aggregate_calls(getattr(node, part.name), others)


def has_over(node: object) -> bool:
    """Whether a function with OVER stands in what was written, outside of queries inside it."""
    if isinstance(node, tuple):
        return any(map(has_over, node))
    if not isinstance(node, syntax.Node) or isinstance(node, syntax.Query):
        return False
    if isinstance(node, syntax.FunctionCall) and node.over is not None:
        return True
    return any(has_over(getattr(node, each.name)) for each in fields(node) if each.name not in ("span", "user"))
