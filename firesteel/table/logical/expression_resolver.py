"""From what was written to typed expressions over the columns of one input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from firesteel.errors import ProgramError
from firesteel.table.functions.aggregates import KNOWN_AGGREGATES
from firesteel.table.functions.binding import FunctionError, bind, cast_to, unknown_function, with_text_read
from firesteel.table.functions.casts import can_cast
from firesteel.table.functions.registry import find
from firesteel.table.logical.expressions import Call, Expression, InputRef, Literal, OuterRef, Subquery, rewrite
from firesteel.table.logical.json_calls import JSON_CALLS, json_call
from firesteel.table.logical.literals import LEAST, constant, interval
from firesteel.table.logical.periods import overlaps
from firesteel.table.logical.quantified import CONTRARY, compared_with_any
from firesteel.table.logical.scope import Scope, UnknownNameError, field_of
from firesteel.table.logical.user_calls import user_call
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    BooleanType,
    CharType,
    DataType,
    IntegralType,
    IntType,
    MapType,
    NullType,
    RowField,
    RowType,
    VarCharType,
)
from firesteel.table.types.derivation import common_type, is_text, printable

__all__ = ["Around", "ExpressionResolver"]

_ALIASES = {
    "POW": "POWER",
    "CEILING": "CEIL",
    "CHARACTER_LENGTH": "CHAR_LENGTH",
    "LENGTH": "CHAR_LENGTH",
    "SUBSTR": "SUBSTRING",
    "UCASE": "UPPER",
    "LCASE": "LOWER",
}


@dataclass(frozen=True)
class Around:
    """What an expression of a query may refer to besides the columns of its input."""

    plan: Callable[[syntax.Query, Scope], Any]
    """Plans a query inside the expression; names may mean columns of the scope."""
    outer: Scope | None = None
    """The columns of the query around this one."""


class ExpressionResolver:
    """Resolves expressions in a scope. ``text`` is the statement, for errors; None in the Table API."""

    def __init__(self, scope: Scope, text: str | None = None) -> None:
        self.scope = scope
        self.text = text
        self.around: Around | None = None
        """None where queries inside expressions have no place."""

    def resolve(self, node: syntax.Node) -> Expression:
        """The typed expression."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise self.unsupported(node, _described(node))
        try:
            return handler(self, node)
        except UnknownNameError as error:
            raise self.invalid(node, str(error)) from None
        except FunctionError as error:
            raise self.invalid(node, str(error)) from None

    def condition(self, node: syntax.Node, where: str) -> Expression:
        """A BOOLEAN."""
        found = self.resolve(node)
        if isinstance(found.type, NullType):
            return cast_to(found, BooleanType())
        if not isinstance(found.type, BooleanType):
            raise self.invalid(node, f"{where} takes a BOOLEAN, got {found.type}.")
        return found

    def invalid(self, node: syntax.Node, message: str) -> SqlValidationError:
        """An error at the node."""
        return SqlValidationError(message, self.text, node.span)

    def unsupported(self, node: syntax.Node, what: str) -> NotSupportedError:
        """What Flink can and this cannot yet."""
        return NotSupportedError(f"Not supported yet: {what}.", self.text, node.span)

    def bound(self, node: syntax.Node, name: str, args: Sequence[Expression]) -> Expression:
        """A call, with errors at the node."""
        try:
            return bind(name, args)
        except FunctionError as error:
            raise self.invalid(node, str(error)) from None

    # Leaves.

    def _name(self, node: syntax.Name) -> Expression:
        outer = self.around.outer if self.around is not None else None
        try:
            return self.scope.find(node.parts)
        except UnknownNameError:
            if outer is None:
                raise
            try:
                found = outer.find(node.parts)
            except UnknownNameError:
                found = None
            if found is None:
                raise
            return rewrite(found, _outer)

    def _constant(self, node: syntax.Constant | syntax.Interval) -> Expression:
        try:
            return constant(node) if isinstance(node, syntax.Constant) else interval(node)
        except (ValueError, ProgramError) as error:
            raise self.invalid(node, str(error)) from None

    def _symbol(self, node: syntax.Symbol) -> Expression:
        return Literal(node.word, CharType(len(node.word), is_nullable=False))

    def _star(self, node: syntax.Star) -> Expression:
        raise self.invalid(node, "* may stand in SELECT and in COUNT(*) only.")

    # Operators.

    def _unary(self, node: syntax.Unary) -> Expression:
        inner = node.operand
        if node.operator == "-" and isinstance(inner, syntax.Constant) and inner.kind == "number":
            least = LEAST.get(-inner.value)
            if least is not None:
                return least
        operand = self.resolve(inner)
        if node.operator == "NOT":
            return self.bound(node, "NOT", [operand])
        if node.operator == "+":
            return operand
        if isinstance(operand, Literal) and not isinstance(operand.value, str | bool | None) and operand.value:
            value = -operand.value
            if -value in LEAST:
                return self._constant(syntax.Constant("number", value, span=node.span))
            if isinstance(operand.type, IntegralType) or value not in LEAST:
                return Literal(value, operand.type)
        return self.bound(node, "NEGATE", [operand])

    def _binary(self, node: syntax.Binary) -> Expression:
        if node.operator in ("AND", "OR"):
            return self._junction(node)
        if node.operator == "OVERLAPS":
            try:
                return overlaps(node.left, node.right, self.resolve)
            except FunctionError as error:
                raise self.invalid(node, str(error)) from None
        left, right = self.resolve(node.left), self.resolve(node.right)
        if node.operator == "+" and self.text is None and is_text(left.type) and printable(right.type):
            # The Table API's + puts texts together, SQL's does not.
            return bind("CONCAT", [left, cast_to(right, VarCharType(MAX_LENGTH))])
        return self.bound(node, node.operator, [left, right])

    def _junction(self, node: syntax.Binary) -> Expression:
        """a AND b AND c is one call, however many there are."""
        parts: list[syntax.Node] = []
        left: syntax.Node = node
        while isinstance(left, syntax.Binary) and left.operator == node.operator:
            parts.append(left.right)
            left = left.left
        parts.append(left)
        args = [self.condition(part, node.operator) for part in reversed(parts)]
        flat: list[Expression] = []
        for argument in args:
            same = isinstance(argument, Call) and argument.function == node.operator
            flat += argument.args if same and isinstance(argument, Call) else (argument,)
        return self.bound(node, node.operator, flat)

    def _between(self, node: syntax.Between) -> Expression:
        value, low, high = self.resolve(node.operand), self.resolve(node.low), self.resolve(node.high)
        found = self._inside(node, value, low, high)
        if node.symmetric:
            found = bind("OR", [found, self._inside(node, value, high, low)])
        return bind("NOT", [found]) if node.negated else found

    def _inside(self, node: syntax.Node, value: Expression, low: Expression, high: Expression) -> Expression:
        return bind("AND", [self.bound(node, ">=", [value, low]), self.bound(node, "<=", [value, high])])

    def _in_list(self, node: syntax.InList) -> Expression:
        value = self.resolve(node.operand)
        items = [self.resolve(item) for item in node.items]
        common = common_type([value.type, *(item.type for item in items)])
        simple = common is not None and not isinstance(common, RowType | ArrayType | MapType)
        if simple and common is not None and all(isinstance(item, Literal) for item in items):
            constants = [_as_constant(item, common) for item in items]
            if all(each is not None for each in constants):
                found: Expression = bind(
                    "IN", [cast_to(value, common), *[each for each in constants if each is not None]]
                )
                return bind("NOT", [found]) if node.negated else found
        equal = [self.bound(node, "=", with_text_read(value, item)) for item in items]
        found = equal[0] if len(equal) == 1 else bind("OR", equal)
        return bind("NOT", [found]) if node.negated else found

    def _like(self, node: syntax.Like) -> Expression:
        args = [self.resolve(node.operand), self.resolve(node.pattern)]
        if node.escape is not None:
            args.append(self.resolve(node.escape))
        found = self.bound(node, node.operator, args)
        return bind("NOT", [found]) if node.negated else found

    def _is_test(self, node: syntax.IsTest) -> Expression:
        operand = self.resolve(node.operand)
        negation = "NOT " if node.negated else ""
        if node.other is not None:
            return self.bound(node, f"IS {negation}DISTINCT FROM", [operand, self.resolve(node.other)])
        return self.bound(node, f"IS {negation}{node.what}", [operand])

    def _case(self, node: syntax.Case) -> Expression:
        operand = self.resolve(node.operand) if node.operand is not None else None
        conditions, results = [], []
        for condition, result in node.branches:
            if operand is None:
                conditions.append(self.condition(condition, "WHEN"))
            else:
                conditions.append(self.bound(condition, "=", [operand, self.resolve(condition)]))
            results.append(self.resolve(result))
        otherwise = self.resolve(node.otherwise) if node.otherwise is not None else Literal(None, NullType())
        results.append(otherwise)
        return self._chosen(node, conditions, results)

    def _chosen(
        self, node: syntax.Node, conditions: list[Expression], results: list[Expression], nullable: bool = False
    ) -> Expression:
        common = self._common(node, results, "The results of CASE")
        common = common.nullable() if nullable else common
        args: list[Expression] = []
        for condition, result in zip(conditions, results[:-1], strict=True):
            args += [condition, cast_to(result, common)]
        return Call("CASE", (*args, cast_to(results[-1], common)), common)

    def _common(self, node: syntax.Node, values: Sequence[Expression], what: str) -> DataType:
        common = common_type([value.type for value in values])
        if common is None:
            shown = ", ".join(dict.fromkeys(str(value.type) for value in values))
            raise self.invalid(node, f"{what} have no common type: {shown}. Cast them to one.")
        return common

    def _cast(self, node: syntax.Cast) -> Expression:
        operand = self.resolve(node.operand)
        if isinstance(operand, Literal) and operand.value is None:
            return Literal(None, node.type.nullable())
        if not can_cast(operand.type, node.type):
            raise self.invalid(node, f"{operand.type} cannot be cast to {node.type}.")
        nullable = True if node.safe else operand.type.is_nullable
        return Call("TRY_CAST" if node.safe else "CAST", (operand,), node.type.with_nullability(nullable))

    # Queries.

    def _query(self, node: syntax.Exists | syntax.InQuery | syntax.Subquery | syntax.Quantified) -> Any:
        if self.around is None:
            raise self.unsupported(node, f"{_described(node)} here")
        return self.around.plan(node.query, self.scope)

    def _exists(self, node: syntax.Exists) -> Expression:
        return Subquery("EXISTS", (), self._query(node), BooleanType(is_nullable=False), node.span)

    def _in_query(self, node: syntax.InQuery) -> Expression:
        found = self._one_of(node, node.operand)
        return bind("NOT", [found]) if node.negated else found

    def _quantified(self, node: syntax.Quantified) -> Expression:
        # What holds for all is what the contrary holds for none of.
        operator = CONTRARY[node.operator] if node.every else node.operator
        if operator == "=":
            found = self._one_of(node, node.operand)
        else:
            operand = self.resolve(node.operand)
            plan = self._query(node)
            if len(plan.names) != 1:
                raise self.invalid(
                    node, f"{node.operator} compares one value with a query of {len(plan.names)} columns."
                )
            self.bound(node, operator, [operand, plan.refs()[0]])
            found = compared_with_any(operand, operator, plan, node.span)
        return bind("NOT", [found]) if node.every else found

    def _one_of(self, node: syntax.InQuery | syntax.Quantified, operand: syntax.Node) -> Expression:
        items = operand.items if isinstance(operand, syntax.RowConstructor) else (operand,)
        args = tuple(self.resolve(item) for item in items)
        plan = self._query(node)
        if len(plan.names) != len(args):
            raise self.invalid(node, f"IN compares {len(args)} values with a query of {len(plan.names)} columns.")
        for argument, column in zip(args, plan.refs(), strict=True):
            self.bound(node, "=", [argument, column])
        nullable = any(each.is_nullable for each in (*plan.types, *(argument.type for argument in args)))
        return Subquery("IN", args, plan, BooleanType(is_nullable=nullable), node.span)

    def _value_of_query(self, node: syntax.Subquery) -> Expression:
        plan = self._query(node)
        if len(plan.names) != 1:
            raise self.invalid(node, f"A query that stands for a value has one column, this one has {len(plan.names)}.")
        return Subquery("SCALAR", (), plan, plan.types[0].nullable(), node.span)

    # Constructors and access.

    def _array(self, node: syntax.ArrayConstructor) -> Expression:
        items = [self.resolve(item) for item in node.items]
        if not items:
            raise self.invalid(node, "An array has at least one element here: its type would be unknown.")
        common = self._common(node, items, "The elements")
        return Call("ARRAY", tuple(cast_to(item, common) for item in items), ArrayType(common, is_nullable=False))

    def _map(self, node: syntax.MapConstructor) -> Expression:
        items = [self.resolve(item) for item in node.items]
        if not items or len(items) % 2:
            raise self.invalid(node, "MAP takes keys and values in turn.")
        key = self._common(node, items[::2], "The keys")
        value = self._common(node, items[1::2], "The values")
        args = [cast_to(item, value if index % 2 else key) for index, item in enumerate(items)]
        return Call("MAP", tuple(args), MapType(key, value, is_nullable=False))

    def _row(self, node: syntax.RowConstructor) -> Expression:
        items = [self.resolve(item) for item in node.items]
        fields = tuple(RowField(f"{node.prefix}{index}", item.type) for index, item in enumerate(items))
        return Call("ROW", tuple(items), RowType(fields, is_nullable=False))

    def _item(self, node: syntax.ItemAccess) -> Expression:
        operand, index = self.resolve(node.operand), self.resolve(node.index)
        kind = operand.type
        if isinstance(kind, ArrayType):
            if not isinstance(index.type, IntegralType):
                raise self.invalid(node.index, f"An array is accessed by a whole number, got {index.type}.")
            if isinstance(index, Literal) and isinstance(index.value, int) and index.value < 1:
                raise self.invalid(node.index, f"The elements of an array are counted from 1, got {index.value}.")
            return Call("ITEM", (operand, index), kind.element_type.nullable())
        if isinstance(kind, MapType):
            return Call("ITEM", (operand, cast_to(index, kind.key_type)), kind.value_type.nullable())
        if isinstance(kind, RowType) and isinstance(index, Literal) and isinstance(index.value, str):
            return field_of(operand, index.value)
        raise self.invalid(node, f"{kind} has no elements.")

    def _field(self, node: syntax.FieldAccess) -> Expression:
        return field_of(self.resolve(node.operand), node.field_name)

    # Functions.

    def _function(self, node: syntax.FunctionCall) -> Expression:
        name = node.name.parts[-1].upper()
        if name == "SUM0" and node.user is None and self.text is None:
            total = self.resolve(replace(node, name=syntax.Name(("SUM",), span=node.name.span)))
            return self.call(node, "COALESCE", [total, Literal(0, IntType(is_nullable=False))])
        if node.over is not None:
            return self.over(node, name)
        if node.user is not None:
            return self._user_function(node)
        if name in KNOWN_AGGREGATES:
            return self.aggregate(node, name)
        if name in JSON_CALLS:
            try:
                return json_call(name, [self.resolve(argument) for argument in node.args], node.clauses, self.resolve)
            except FunctionError as error:
                raise self.invalid(node, str(error)) from None
        if node.clauses:
            raise self.unsupported(node, f"{name} with {node.clauses[0][0]}")
        if node.distinct or node.filter is not None or node.order:
            raise self.invalid(
                node, f"{name} is not an aggregate: DISTINCT, FILTER and ORDER BY have no meaning for it."
            )
        if name in _WINDOWS:
            raise self.invalid(node, f"{name} belongs to the window of the same name in GROUP BY.")
        name = _ALIASES.get(name, name)
        if find(name) is None and name != "TYPEOF":
            # Told before anything is said about the arguments.
            raise self.invalid(node, str(unknown_function(name, KNOWN_AGGREGATES)))
        return self.call(node, name, [self.resolve(argument) for argument in node.args])

    def _user_function(self, node: syntax.FunctionCall) -> Expression:
        user = node.user
        if user.kind == "aggregate":
            return self.user_aggregate(node)
        if user.kind == "table":
            raise self.invalid(
                node,
                f"{user.name} gives rows, not a value: it stands in FROM, as LATERAL TABLE({user.name}(...)) AS t.",
            )
        if user.kind == "table aggregate":
            raise self.invalid(node, f"{user.name} gives rows for a group: it is called with flat_aggregate().")
        if node.distinct or node.filter is not None or node.order:
            raise self.invalid(
                node, f"{user.name} is not an aggregate: DISTINCT, FILTER and ORDER BY have no meaning for it."
            )
        return user_call(user, [self.resolve(argument) for argument in node.args])

    def user_aggregate(self, node: syntax.FunctionCall) -> Expression:
        """A user's aggregate function, where there may be one."""
        return self.aggregate(node, node.user.name)

    def call(self, node: syntax.Node, name: str, args: list[Expression]) -> Expression:
        """A scalar function."""
        if name in ("COALESCE", "IFNULL", "GREATEST", "LEAST") and args:
            common = self._common(node, args, f"The arguments of {name}")
            args = [cast_to(argument, common) for argument in args]
        if name == "IF" and len(args) == 3:
            # As in Flink IF, other than CASE, may be NULL where its condition may.
            return self._chosen(node, [args[0]], args[1:], args[0].type.is_nullable)
        if name == "TYPEOF" and args:
            return Literal(str(args[0].type), VarCharType(MAX_LENGTH))
        if name == "TRIM" and len(args) == 1:
            blank = Literal(" ", CharType(1, is_nullable=False))
            args = [Literal("BOTH", CharType(4, is_nullable=False)), blank, *args]
        return self.bound(node, name, args)

    def over(self, node: syntax.FunctionCall, name: str) -> Expression:
        """A function over a window of rows, where there may be one."""
        raise self.unsupported(node, "OVER windows")

    def aggregate(self, node: syntax.FunctionCall, name: str) -> Expression:
        """An aggregate function, where there may be one."""
        raise self.invalid(
            node, f"{name} is an aggregate: it may stand in SELECT and HAVING, and not inside another one."
        )

    def _unsupported(self, node: syntax.Node) -> Expression:
        raise self.unsupported(node, _described(node))


_WINDOWS = frozenset(
    f"{name}{part}" for name in ("TUMBLE", "HOP", "SESSION") for part in ("", "_START", "_END", "_ROWTIME", "_PROCTIME")
)


def _outer(part: Expression) -> Expression | None:
    return OuterRef(part.index, part.type) if isinstance(part, InputRef) else None


def _described(node: syntax.Node) -> str:
    return _DESCRIBED.get(type(node), type(node).__name__)


_DESCRIBED: dict[type, str] = {
    syntax.InQuery: "IN with a query",
    syntax.Exists: "EXISTS",
    syntax.Subquery: "a query as a value",
    syntax.Quantified: "ALL and ANY",
    syntax.Descriptor: "DESCRIPTOR outside of a window function",
    syntax.TableArgument: "a table as an argument",
    syntax.NamedArgument: "named arguments",
}


def _as_constant(item: Expression, kind: DataType) -> Literal | None:
    """A constant as one of another type, where that changes nothing but the type."""
    if not isinstance(item, Literal):
        return None
    same = item.type.not_null() == kind.not_null() or (is_text(item.type) and is_text(kind))
    whole = isinstance(item.type, IntegralType) and isinstance(kind, IntegralType)
    if item.value is None or same or whole:
        return Literal(item.value, kind)
    return None


Handler = Callable[[ExpressionResolver, Any], Expression]
_HANDLERS: dict[type, Handler] = {
    syntax.Name: ExpressionResolver._name,
    syntax.Constant: ExpressionResolver._constant,
    syntax.Interval: ExpressionResolver._constant,
    syntax.Symbol: ExpressionResolver._symbol,
    syntax.Star: ExpressionResolver._star,
    # An alias inside an expression means nothing, as in Flink.
    syntax.SelectItem: lambda self, node: self.resolve(node.expression),
    syntax.Unary: ExpressionResolver._unary,
    syntax.Binary: ExpressionResolver._binary,
    syntax.Between: ExpressionResolver._between,
    syntax.InList: ExpressionResolver._in_list,
    syntax.Like: ExpressionResolver._like,
    syntax.IsTest: ExpressionResolver._is_test,
    syntax.Case: ExpressionResolver._case,
    syntax.Cast: ExpressionResolver._cast,
    syntax.ArrayConstructor: ExpressionResolver._array,
    syntax.MapConstructor: ExpressionResolver._map,
    syntax.RowConstructor: ExpressionResolver._row,
    syntax.ItemAccess: ExpressionResolver._item,
    syntax.FieldAccess: ExpressionResolver._field,
    syntax.FunctionCall: ExpressionResolver._function,
    syntax.Exists: ExpressionResolver._exists,
    syntax.InQuery: ExpressionResolver._in_query,
    syntax.Quantified: ExpressionResolver._quantified,
    syntax.Subquery: ExpressionResolver._value_of_query,
}
