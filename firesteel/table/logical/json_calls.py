"""Calls of JSON functions: their clauses become arguments, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.functions.binding import FunctionError, bind, cast_to
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.sql import syntax
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    BooleanType,
    CharType,
    DataType,
    DoubleType,
    IntType,
    VarCharType,
)

__all__ = ["JSON_CALLS", "json_call"]

JSON_CALLS = frozenset(["JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "JSON_ARRAY"])
_STRING = VarCharType(MAX_LENGTH)
_WRAPPERS = {"WITHOUT": "NEVER", "WITHOUT ARRAY": "NEVER", "WITH CONDITIONAL": "SCALARS"}
"""When JSON_QUERY puts what it finds into an array; all other wrappers always do."""
Resolve = Callable[[syntax.Node], Expression]


def json_call(
    name: str, args: Sequence[Expression], clauses: Sequence[tuple[str, Any]], resolve: Resolve
) -> Expression:
    """A call with its clauses.

    >>> from firesteel.table.types import DataTypes
    >>> text = Literal("{}", DataTypes.STRING())
    >>> [each.value for each in json_call("JSON_EXISTS", [text, text], [("ON ERROR", "TRUE")], None).args[2:]]
    ['TRUE']
    """
    given = dict(clauses)
    kind = given.pop("RETURNING", None)
    if name == "JSON_OBJECT" or name == "JSON_ARRAY":
        return bind(name, [_word(given.get("ON NULL", "NULL" if name == "JSON_OBJECT" else "ABSENT")), *args])
    if name == "JSON_EXISTS":
        return bind(name, [*args, _word(given.get("ON ERROR", "FALSE"))])
    if name == "JSON_QUERY":
        wrapper = _WRAPPERS.get(given.get("WRAPPER", "WITHOUT"), "ALWAYS")
        return _typed(
            bind(
                name, [*args, _word(wrapper), *(_word(given.get(f"ON {when}", "NULL")) for when in ("EMPTY", "ERROR"))]
            ),
            kind,
            isinstance(kind, VarCharType) or kind == ArrayType(_STRING),
            "STRING and ARRAY<STRING>",
        )
    returned = kind or _STRING
    behaviours = [
        part for when in ("EMPTY", "ERROR") for part in _default(given.get(f"ON {when}", "NULL"), returned, resolve)
    ]
    possible = isinstance(returned, VarCharType | BooleanType | IntType | DoubleType)
    return _typed(bind(name, [*args, *behaviours]), kind, possible, "STRING, BOOLEAN, INT and DOUBLE")


def _default(behaviour: Any, kind: DataType, resolve: Resolve) -> list[Expression]:
    """A word, and the value that stands for what is missing."""
    if isinstance(behaviour, str):
        return [_word(behaviour), Literal(None, kind.nullable())]
    return [_word("DEFAULT"), cast_to(resolve(behaviour), kind)]


def _typed(call: Call, kind: DataType | None, possible: bool, types: str) -> Call:
    if kind is None:
        return call
    if not possible:
        raise FunctionError(f"{call.function} returns {types}, not {kind}.")
    return Call(call.function, call.args, kind.nullable())


def _word(text: str) -> Literal:
    return Literal(text, CharType(len(text), is_nullable=False))
