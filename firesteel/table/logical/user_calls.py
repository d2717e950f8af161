"""Finds the calls of users' functions in what was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from firesteel.table.functions.binding import FunctionError, cast_to
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.logical.expressions import Expression, UserCall
from firesteel.table.sql import syntax
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    BinaryType,
    CharType,
    DataType,
    NullType,
    VarBinaryType,
    VarCharType,
)
from firesteel.table.types.derivation import common_type

__all__ = ["FunctionLookup", "fitted_arguments", "user_call", "with_user_functions"]

FunctionLookup = Callable[[tuple[str, ...]], UserFunction | None]
"""The user's function that a name means, if it means one."""


def with_user_functions(written: Any, find: FunctionLookup, database: str | None = None) -> Any:
    """The same syntax tree, in which each call of a user's function knows the function, and in which
    ``CURRENT_DATABASE()`` is the name of that database."""
    if isinstance(written, tuple):
        items = tuple(with_user_functions(each, find, database) for each in written)
        return items if any(new is not old for new, old in zip(items, written, strict=True)) else written
    if not isinstance(written, syntax.Node):
        return written
    if isinstance(written, syntax.Binary):
        return _chain(written, find, database)
    changes = {}
    for each in fields(written):
        if each.name in ("span", "user"):
            continue
        value = getattr(written, each.name)
        changed = with_user_functions(value, find, database)
        if changed is not value:
            changes[each.name] = changed
    if isinstance(written, syntax.FunctionCall) and written.user is None and not written.bare:
        found = find(written.name.parts)
        if found is not None:
            changes["user"] = found
        elif database is not None and not written.args and written.name.parts[-1].upper() == "CURRENT_DATABASE":
            name = syntax.Constant("string", database, span=written.span)
            return syntax.Cast(name, VarCharType(MAX_LENGTH), False, span=written.span)
    return replace(written, **changes) if changes else written


def _chain(node: syntax.Binary, find: FunctionLookup, database: str | None) -> syntax.Node:
    """a AND b AND c leans to the left, and may be long."""
    spine: list[syntax.Binary] = []
    left: syntax.Node = node
    while isinstance(left, syntax.Binary):
        spine.append(left)
        left = left.left
    result: syntax.Node = with_user_functions(left, find, database)
    for each in reversed(spine):
        right = with_user_functions(each.right, find, database)
        if result is not each.left or right is not each.right:
            each = replace(each, left=result, right=right)
        result = each
    return result


def fitted_arguments(user: UserFunction, args: Sequence[Expression]) -> tuple[Expression, ...]:
    """The arguments as the types that the function was declared with, if it was."""
    wanted = user.input_types
    if wanted is None:
        return tuple(args)
    shown = ", ".join(map(str, wanted))
    given = ", ".join(str(argument.type) for argument in args)
    if len(wanted) != len(args):
        raise FunctionError(f"{user.name}({given}): the function takes {user.name}({shown}).")
    fitted = []
    for argument, kind in zip(args, wanted, strict=True):
        common = common_type([argument.type, kind])
        fits = common is not None and common.nullable() == kind.nullable()
        if not (fits or isinstance(argument.type, NullType) or _both_texts(argument.type, kind)):
            raise FunctionError(f"{user.name}({given}): the function takes {user.name}({shown}). Cast the arguments.")
        fitted.append(cast_to(argument, kind))
    return tuple(fitted)


def _both_texts(one: DataType, other: DataType) -> bool:
    """Texts are cut to the declared length, as bytes are."""
    texts, binaries = (CharType, VarCharType), (BinaryType, VarBinaryType)
    return any(isinstance(one, kinds) and isinstance(other, kinds) for kinds in (texts, binaries))


def user_call(user: UserFunction, args: Sequence[Expression]) -> UserCall:
    """A call with its arguments checked."""
    return UserCall(user, fitted_arguments(user, args), user.result_type)
