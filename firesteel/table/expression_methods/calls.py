"""What all methods of expressions are made of: nodes of SQL's syntax, and calls of functions."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from firesteel.errors import ProgramError, short_repr
from firesteel.table.logical.literals import python_literal
from firesteel.table.sql.source import Span
from firesteel.table.sql.syntax import Constant, FunctionCall, Name, Node, Symbol

if TYPE_CHECKING:
    from firesteel.table.expression import Expression

__all__ = [
    "NOWHERE",
    "HoldsNode",
    "TimeIntervalUnit",
    "TimePointUnit",
    "call_of",
    "given",
    "method_of",
    "node_of",
    "property_of",
]

NOWHERE = Span(0, 0)


class TimeIntervalUnit(enum.Enum):
    """Units of time."""

    YEAR = "YEAR"
    YEAR_TO_MONTH = "YEAR TO MONTH"
    QUARTER = "QUARTER"
    MONTH = "MONTH"
    WEEK = "WEEK"
    DAY = "DAY"
    DAY_TO_HOUR = "DAY TO HOUR"
    DAY_TO_MINUTE = "DAY TO MINUTE"
    DAY_TO_SECOND = "DAY TO SECOND"
    HOUR = "HOUR"
    SECOND = "SECOND"
    HOUR_TO_MINUTE = "HOUR TO MINUTE"
    HOUR_TO_SECOND = "HOUR TO SECOND"
    MINUTE = "MINUTE"
    MINUTE_TO_SECOND = "MINUTE TO SECOND"


class TimePointUnit(enum.Enum):
    """Units that lie between two times, for ``timestamp_diff``."""

    YEAR = 0
    MONTH = 1
    DAY = 2
    HOUR = 3
    MINUTE = 4
    SECOND = 5
    QUARTER = 6
    WEEK = 7
    MILLISECOND = 8
    MICROSECOND = 9


class HoldsNode:
    """What an expression is, whatever methods it has."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def _made(self, node: Node) -> Expression:
        return cast("Expression", type(self)(node))

    def _called(self, name: str, *args: Any, clauses: tuple[Any, ...] = ()) -> Expression:
        return self._made(call_of(name, *args, clauses=clauses))


def node_of(value: Any) -> Node:
    """What an expression holds; a Python value is a constant."""
    if isinstance(value, HoldsNode):
        return value._node
    if isinstance(value, TimeIntervalUnit):
        return Symbol(value.value, span=NOWHERE)
    if isinstance(value, TimePointUnit):
        return Symbol(value.name, span=NOWHERE)
    try:
        return Constant("python", python_literal(value), span=NOWHERE)
    except ValueError:
        raise ProgramError(f"{short_repr(value, 60)} is neither an expression nor a constant.") from None


def call_of(name: str, *args: Any, distinct: bool = False, clauses: tuple[Any, ...] = ()) -> FunctionCall:
    """A call of a function."""
    nodes = tuple(node_of(argument) for argument in args)
    return FunctionCall(Name((name,), span=NOWHERE), nodes, distinct, clauses=clauses, span=NOWHERE)


def given(*args: Any) -> tuple[Any, ...]:
    """Arguments without those at the end that were not given."""
    kept = list(args)
    while kept and kept[-1] is None:
        kept.pop()
    return tuple(kept)


def property_of(name: str) -> Expression:
    """``column.name`` without parentheses."""
    return cast("Expression", property(lambda self: self._called(name, self), doc=f"``{name}``."))


def method_of(name: str, *parameters: str) -> Callable[..., Expression]:
    """``column.name(...)``. Parameters have PyFlink's names, so that arguments may be given by them; ``=`` behind one
    says that it may be left out, ``*`` before one that it may have many arguments."""
    signature = inspect.Signature([_parameter("self"), *map(_parameter, parameters)])
    optional = sum(text.endswith("=") for text in parameters)

    def method(self: HoldsNode, *args: Any, **named: Any) -> Expression:
        try:
            bound = signature.bind(self, *args, **named)
        except TypeError as error:
            raise TypeError(f"{name} of a column: {error}") from None
        bound.apply_defaults()
        needed = bound.args[: len(bound.args) - optional]
        return self._called(name, *needed, *given(*bound.args[len(needed) :]))

    method.__doc__ = f"``{name}``."
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def _parameter(text: str) -> inspect.Parameter:
    if text.startswith("*"):
        return inspect.Parameter(text[1:], inspect.Parameter.VAR_POSITIONAL)
    default = None if text.endswith("=") else inspect.Parameter.empty
    return inspect.Parameter(text.removesuffix("="), inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
