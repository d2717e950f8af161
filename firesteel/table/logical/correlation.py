"""Table functions and UNNEST in FROM: rows that are made of each row of what stands before them."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.functions.binding import FunctionError
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.logical.changelog_tables import CHANGELOG_FUNCTIONS
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Call, Expression, Literal, UserCall
from firesteel.table.logical.joins import with_condition
from firesteel.table.logical.plan import Correlate, Plan, Project, unique_names
from firesteel.table.logical.scope import Scope
from firesteel.table.logical.user_calls import fitted_arguments
from firesteel.table.logical.windows import WINDOW_FUNCTIONS
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.data_types import (
    ArrayType,
    IntType,
    MapType,
    MultisetType,
    RowField,
    RowType,
)

__all__ = ["check_lateral", "correlated", "lateral", "lateral_join", "makes_rows", "rows_of_user"]


def makes_rows(node: syntax.Node) -> bool:
    """Whether a relation of FROM makes rows of each row before it."""
    if isinstance(node, syntax.TableFunction):
        return (
            node.call.name.parts[-1].upper() not in (*WINDOW_FUNCTIONS, *CHANGELOG_FUNCTIONS)
            or node.call.user is not None
        )
    return isinstance(node, syntax.Unnest)


def lateral(node: syntax.Node, left: Plan, scope: Scope, kind: str, text: str | None) -> tuple[Plan, Scope]:
    """Each row of ``left`` with the rows that the relation makes of it."""
    assert isinstance(node, syntax.Relation)
    resolver = ExpressionResolver(scope, text)
    made = _rows_of_call(node, resolver)
    own = list(node.column_aliases) or _fields(made).field_names()
    if len(own) != len(_fields(made)):
        raise resolver.invalid(node, f"{len(own)} names for {len(_fields(made))} columns.")
    plan = correlated(left, made, kind, own)
    width = len(left.names)
    columns = Project(plan, tuple(plan.refs()[width:]), tuple(own))
    return plan, scope.beside(Scope.of(columns, node.alias), width)


def check_lateral(node: syntax.Join, text: str | None) -> str:
    """The kind of a join whose right side is made of the left one: INNER or LEFT."""
    kind = "INNER" if node.kind in ("CROSS", "COMMA") else node.kind
    if kind not in ("INNER", "LEFT") or node.natural or node.using:
        what = "NATURAL JOIN and USING" if kind in ("INNER", "LEFT") else f"{kind} JOIN"
        message = f"{what} cannot be used with rows that are made of the left side: CROSS, INNER and LEFT JOIN can."
        raise SqlValidationError(message, text, node.span)
    return kind


def lateral_join(node: syntax.Join, left: Plan, scope: Scope, text: str | None) -> tuple[Plan, Scope]:
    """``a CROSS JOIN UNNEST(a.b)``, ``a LEFT JOIN LATERAL TABLE(f(a.b)) ON TRUE``."""
    kind = check_lateral(node, text)
    plan, whole = lateral(node.right, left, scope, kind, text)
    if node.condition is None:
        return plan, whole
    condition = ExpressionResolver(whole, text).condition(node.condition, "ON")
    if isinstance(condition, Literal) and condition.value is True:
        return plan, whole
    if kind == "LEFT":
        message = "LEFT JOIN of rows that are made of the left side takes no condition but ON TRUE. Use WHERE."
        raise SqlValidationError(message, text, node.condition.span)
    return with_condition(plan, condition), whole


def correlated(
    left: Plan, made: Call, kind: str, names: Sequence[str] | None = None, kept: Sequence[int] | None = None
) -> Correlate:
    """Each row of ``left`` with the rows that are made of it. ``names``: of the columns that are made."""
    row_type = _fields(made)
    places = tuple(range(len(left.names)) if kept is None else kept)
    own = row_type.field_names() if names is None else list(names)
    columns = unique_names([*(left.names[index] for index in places), *own])
    return Correlate(left, made, kind, places, columns)


def _rows_of_call(node: syntax.Node, resolver: ExpressionResolver) -> Call:
    """What a relation of FROM makes of a row: its type is a ROW of the columns."""
    if isinstance(node, syntax.Unnest):
        return _unnested(node, resolver)
    assert isinstance(node, syntax.TableFunction)
    user = node.call.user
    if user is None:
        raise resolver.invalid(node.call, f"There is no table function {node.call.name}.")
    args = [resolver.resolve(argument) for argument in node.call.args]
    try:
        return rows_of_user(user, args)
    except FunctionError as error:
        raise resolver.invalid(node.call, str(error)) from None


def rows_of_user(user: UserFunction, args: Sequence[Expression]) -> Call:
    """A call of a table function."""
    if user.kind != "table":
        raise FunctionError(
            f"{user.name} is not a table function: it gives one value, and is called in SELECT or WHERE."
        )
    return UserCall(user, fitted_arguments(user, args), user.result_type)


def _fields(made: Call) -> RowType:
    assert isinstance(made.type, RowType)
    return made.type


def _unnested(node: syntax.Unnest, resolver: ExpressionResolver) -> Call:
    collection = resolver.resolve(node.expression)
    kind = collection.type
    if isinstance(kind, ArrayType | MultisetType):
        element = kind.element_type
        if isinstance(element, RowType):
            fields = [
                RowField(each.name, each.data_type.with_nullability(each.data_type.is_nullable or element.is_nullable))
                for each in element.fields
            ]
        else:
            fields = [RowField("EXPR$0", element.nullable() if isinstance(kind, MultisetType) else element)]
    elif isinstance(kind, MapType):
        fields = [RowField("KEY", kind.key_type), RowField("VALUE", kind.value_type)]
    else:
        raise resolver.invalid(node.expression, f"UNNEST takes an array, a map or a multiset, got {kind}.")
    if node.ordinality:
        fields.append(RowField("ORDINALITY", IntType(is_nullable=False)))
    name = "UNNEST WITH ORDINALITY" if node.ordinality else "UNNEST"
    return Call(name, (collection,), RowType(tuple(fields)))
