"""Functions of whole rows and of groups in the Table API: ``map``, ``flat_map``, ``aggregate``, ``flat_aggregate``,
and joins with table functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from firesteel.errors import ProgramError, short_repr
from firesteel.table.functions.binding import FunctionError
from firesteel.table.logical.correlation import correlated, rows_of_user
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import AggregateCall, Call, InputRef, Literal
from firesteel.table.logical.expressions import Expression as Typed
from firesteel.table.logical.grouping import AggregateResolver
from firesteel.table.logical.joins import with_condition
from firesteel.table.logical.plan import Plan, Project, TableAggregate, unique_names
from firesteel.table.logical.scope import Scope, field_of
from firesteel.table.logical.user_calls import fitted_arguments, user_call
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError
from firesteel.table.sql.syntax import FieldAccess, FunctionCall, Name, Node, SelectItem
from firesteel.table.types.data_types import DataType, RowType
from firesteel.table.udf import UserDefinedFunctionWrapper, wrapped

__all__ = [
    "aggregated",
    "flat_aggregated",
    "flat_mapped",
    "joined_laterally",
    "mapped",
    "with_names",
    "wrapped_call",
]


def _row(plan: Plan) -> Typed:
    """All columns as one row."""
    return Call("ROW", tuple(plan.refs()), RowType.of(list(plan.names), list(plan.types)).not_null())


class Invocation:
    """A user's function with its arguments: what was given to a method, as an expression or as a bare function."""

    def __init__(self, plan: Plan, given: Any, written: Any, kind: str, method: str) -> None:
        given = wrapped(given)
        self.names: tuple[str, ...] = ()
        if isinstance(given, UserDefinedFunctionWrapper):
            self.user, self.names = given._definition(), given._alias_names
            self.args: Sequence[Typed] = (_row(plan),)
        else:
            node: Node = written(given)
            while isinstance(node, SelectItem):
                self.names = self.names or ((node.alias or ""), *node.more)
                node = node.expression
            if not isinstance(node, FunctionCall) or node.user is None:
                raise ProgramError(f"{method}() takes a call of a user's function, got {short_repr(given, 80)}.")
            self.user = node.user
            resolver = ExpressionResolver(Scope.of(plan, None))
            self.args = [resolver.resolve(argument) for argument in node.args]
        if self.user.kind != kind:
            article = "an" if kind.startswith("a") else "a"
            raise ProgramError(
                f"{method}() takes {article} {kind} function, {self.user.name} is one of {self.user.kind}."
            )
        try:
            self.args = fitted_arguments(self.user, self.args)
        except FunctionError as error:
            raise SqlValidationError(str(error)) from None

    def named(self, kind: DataType) -> list[str]:
        """The names of the result's columns."""
        own = kind.field_names() if isinstance(kind, RowType) else [""]
        if self.names and len(self.names) != len(own):
            raise SqlValidationError(f"{self.user.name} gives {len(own)} columns, alias() has {len(self.names)} names.")
        return list(self.names) or own


def mapped(plan: Plan, given: Any, written: Any) -> Plan:
    """``map``: the fields of the row that a function gives."""
    call = Invocation(plan, given, written, "scalar", "map")
    made = user_call(call.user, call.args)
    whole = Project(plan, (made,), ("$row",))
    return _flattened(whole, InputRef(0, made.type), call.named(made.type), [])


def _flattened(plan: Plan, column: Typed, names: list[str], before: list[tuple[str, Typed]]) -> Plan:
    kind = column.type
    columns: list[Typed] = (
        [field_of(column, name) for name in kind.field_names()] if isinstance(kind, RowType) else [column]
    )
    titles = [name or f"_c{len(before) + index}" for index, name in enumerate(names)]
    every = [*before, *zip(titles, columns, strict=True)]
    return Project(plan, tuple(each for _, each in every), unique_names([name for name, _ in every]))


def flat_mapped(plan: Plan, given: Any, written: Any) -> Plan:
    """``flat_map``: the rows that a table function gives."""
    call = Invocation(plan, given, written, "table", "flat_map")
    made = rows_of_user(call.user, call.args)
    return correlated(plan, made, "INNER", call.named(made.type), ())


def joined_laterally(plan: Plan, given: Any, written: Any, kind: str, predicate: Node | None) -> Plan:
    """``join_lateral``: each row with those that a table function makes of it."""
    call = Invocation(plan, given, written, "table", "join_lateral" if kind == "INNER" else "left_outer_join_lateral")
    made = rows_of_user(call.user, call.args)
    names = call.named(made.type)
    both = [name for name in names if name in plan.names]
    if both:
        raise SqlValidationError(
            f"Both sides have a column {both[0]}: give the function's columns others with alias()."
        )
    result = correlated(plan, made, kind, names)
    if predicate is None:
        return result
    condition = ExpressionResolver(Scope.of(result, None)).condition(predicate, "join_lateral()")
    if kind == "LEFT":
        if isinstance(condition, Literal) and condition.value is True:
            return result
        raise SqlValidationError("left_outer_join_lateral() takes no condition but TRUE. Use where().")
    return with_condition(result, condition)


def aggregated(plan: Plan, keys: Sequence[Node], given: Any, written: Any) -> Plan:
    """``aggregate``: the keys, and the fields of what an aggregate function gives."""
    call = Invocation(plan, given, written, "aggregate", "aggregate")
    resolver = AggregateResolver(plan, Scope.of(plan, None), [_inner(key) for key in keys], None)
    column = resolver.user_called(call.user, call.args)
    groups = resolver.plan()
    before = [(_title(key, name), ref) for key, name, ref in zip(keys, groups.names, groups.refs(), strict=False)]
    return _flattened(groups, column, call.named(column.type), list(before))


def wrapped_call(given: Any, written: Any) -> dict[str, Node]:
    """What the columns of an aggregate's result are, by their names."""
    if isinstance(wrapped(given), UserDefinedFunctionWrapper):
        raise NotSupportedError("Not supported yet: aggregate() of windows with whole rows. Call it with columns.")
    node: Node = written(given)
    names: tuple[str, ...] = ()
    while isinstance(node, SelectItem):
        names = names or ((node.alias or ""), *node.more)
        node = node.expression
    if not isinstance(node, FunctionCall) or node.user is None or node.user.kind != "aggregate":
        raise ProgramError(f"aggregate() takes a call of an aggregate function, got {short_repr(given, 80)}.")
    kind = node.user.result_type
    if not isinstance(kind, RowType):
        return {(names or ("EXPR$0",))[0]: node}
    names = names or tuple(kind.field_names())
    if len(names) != len(kind):
        raise SqlValidationError(f"{node.user.name} gives {len(kind)} columns, alias() has {len(names)} names.")
    return {
        name: FieldAccess(node, field, span=node.span) for name, field in zip(names, kind.field_names(), strict=True)
    }


def with_names(node: Any, meant: dict[str, Node]) -> Any:
    """What was written, with what names mean in their place."""
    if isinstance(node, tuple):
        return tuple(with_names(each, meant) for each in node)
    if not isinstance(node, Node):
        return node
    if isinstance(node, Name):
        return meant.get(node.parts[-1], node) if len(node.parts) == 1 else node
    parts = {each.name: getattr(node, each.name) for each in fields(node) if each.name not in ("span", "user", "name")}
    return replace(node, **{name: with_names(part, meant) for name, part in parts.items()})


def flat_aggregated(plan: Plan, keys: Sequence[Node], given: Any, written: Any) -> Plan:
    """``flat_aggregate``: the keys, and the rows that a table aggregate function gives."""
    call = Invocation(plan, given, written, "table aggregate", "flat_aggregate")
    resolver = ExpressionResolver(Scope.of(plan, None))
    below: list[Typed] = [resolver.resolve(_inner(key)) for key in keys]
    key_names = [_title(key, f"$f{index}") for index, key in enumerate(keys)]
    width = len(below)
    below += call.args
    names = unique_names([*key_names, *(f"$a{index}" for index in range(len(call.args)))])
    made = AggregateCall(call.user.name, tuple(range(width, len(below))), call.user.result_type, user=call.user)
    columns = unique_names([*key_names, *call.named(call.user.result_type)])
    return TableAggregate(Project(plan, tuple(below), names), tuple(range(width)), made, columns)


def _inner(key: Node) -> Node:
    return key.expression if isinstance(key, SelectItem) else key


def _title(key: Node, name: str) -> str:
    if isinstance(key, SelectItem) and key.alias is not None:
        return key.alias
    return key.parts[-1] if isinstance(key, Name) else name
