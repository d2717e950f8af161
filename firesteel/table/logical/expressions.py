"""Expressions over the columns of one input, every one with its type. They are plain data and travel by value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from firesteel.table.types.data_types import DataType

__all__ = [
    "AggregateCall",
    "Call",
    "Expression",
    "InputRef",
    "Literal",
    "OuterRef",
    "Subquery",
    "UserCall",
    "calls_of",
    "columns_of",
    "has_user_calls",
    "parts_of",
    "rewrite",
    "shifted",
]


@dataclass(frozen=True)
class Expression:
    """The root of all expressions."""

    @property
    def type(self) -> DataType:
        """The type of the result."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Typed(Expression):
    data_type: DataType = field(kw_only=True)

    @property
    def type(self) -> DataType:
        return self.data_type


@dataclass(frozen=True, init=False)
class InputRef(_Typed):
    """A column of the input, by position.

    >>> from firesteel.table.types import DataTypes
    >>> print(InputRef(0, DataTypes.INT()))
    $0
    """

    index: int

    def __init__(self, index: int, type: DataType) -> None:
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "data_type", type)

    def __str__(self) -> str:
        return f"${self.index}"


@dataclass(frozen=True, init=False)
class Literal(_Typed):
    """A constant: the value as Python has it, None for NULL."""

    value: Any

    def __init__(self, value: Any, type: DataType) -> None:
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "data_type", type)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        same = (self.data_type, self.value) == (other.data_type, other.value)
        # Equal zeros may have different signs: these are two constants.
        return same and (not isinstance(self.value, float) or str(self.value) == str(other.value))

    def __str__(self) -> str:
        if self.value is None:
            return f"null:{self.data_type.sql}"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + f"':{self.data_type.sql}"
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return str(self.value)


@dataclass(frozen=True, init=False)
class Call(_Typed):
    """A function of other expressions; operators are functions with a sign for a name.

    >>> from firesteel.table.types import DataTypes
    >>> one = Literal(1, DataTypes.INT(False))
    >>> print(Call("+", (InputRef(0, DataTypes.INT()), one), DataTypes.INT()))
    +($0, 1)
    """

    function: str
    args: tuple[Expression, ...]

    def __init__(self, function: str, args: tuple[Expression, ...] | list[Expression], type: DataType) -> None:
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "args", tuple(args))
        object.__setattr__(self, "data_type", type)

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.args))
        if self.function in ("CAST", "TRY_CAST"):
            return f"{self.function}({shown}):{self.data_type}"
        return f"{self.function}({shown})"

    def with_args(self, args: tuple[Expression, ...]) -> Call:
        """The same function of other expressions."""
        return Call(self.function, args, self.data_type)


@dataclass(frozen=True, init=False)
class UserCall(Call):
    """A call of a user's function."""

    user: Any
    """A :class:`~firesteel.table.functions.user_functions.UserFunction`."""

    def __init__(self, user: Any, args: tuple[Expression, ...] | list[Expression], type: DataType) -> None:
        super().__init__(user.name, args, type)
        object.__setattr__(self, "user", user)

    def with_args(self, args: tuple[Expression, ...]) -> Call:
        return UserCall(self.user, args, self.data_type)

    def __str__(self) -> str:
        return super().__str__()


@dataclass(frozen=True, init=False)
class OuterRef(_Typed):
    """A column of the query around this one, by position. Joins take its place before anything runs."""

    index: int

    def __init__(self, index: int, type: DataType) -> None:
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "data_type", type)

    def __str__(self) -> str:
        return f"$cor0.{self.index}"


@dataclass(frozen=True, init=False)
class Subquery(_Typed):
    """A query inside an expression, which joins take the place of: SCALAR is its only value, EXISTS whether it has
    rows, IN whether the arguments are one of them."""

    kind: str
    args: tuple[Expression, ...]
    plan: Any
    span: Any = field(compare=False, repr=False)

    def __init__(self, kind: str, args: tuple[Expression, ...], plan: Any, type: DataType, span: Any = None) -> None:
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "args", args)
        object.__setattr__(self, "plan", plan)
        object.__setattr__(self, "data_type", type)
        object.__setattr__(self, "span", span)

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.args))}, <query>)"


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate of a group: the function, its arguments as columns of the input, and what it counts."""

    function: str
    args: tuple[int, ...]
    """DISTINCT rows of a user's function with several arguments are told apart by the column before them."""
    type: DataType
    distinct: bool = False
    filter: int | None = None
    """A BOOLEAN column: only rows where it is TRUE count."""
    name: str = ""
    user: Any = field(default=None, repr=False)
    """The user's function, if it is one: then ``function`` is its name."""
    options: tuple[Any, ...] = ()
    """Constants that the function takes besides: the separator of LISTAGG."""

    @property
    def given(self) -> tuple[int, ...]:
        """What the function gets."""
        several = self.user is not None and self.distinct and len(self.args) > 1
        return self.args[1:] if several else self.args

    def __str__(self) -> str:
        shown = ", ".join([*(f"${index}" for index in self.given), *map(repr, self.options)]) or "*"
        inner = f"DISTINCT {shown}" if self.distinct else shown
        return f"{self.function}({inner})" + (f" FILTER ${self.filter}" if self.filter is not None else "")


def columns_of(expression: Expression) -> Iterator[int]:
    """The columns of the input that the expression needs, as often as it names them."""
    for part in parts_of(expression):
        if isinstance(part, InputRef):
            yield part.index


def parts_of(expression: Expression) -> Iterator[Expression]:
    """The expression, and everything inside it."""
    yield expression
    if isinstance(expression, Call | Subquery):
        for argument in expression.args:
            yield from parts_of(argument)


def calls_of(function: str, expression: Expression) -> Iterator[Call]:
    """The calls of a built-in function in it."""
    for part in parts_of(expression):
        if isinstance(part, Call) and not isinstance(part, UserCall) and part.function == function:
            yield part


def has_user_calls(expression: Expression) -> bool:
    """Whether a user's function is in it."""
    if not isinstance(expression, Call):
        return False
    return isinstance(expression, UserCall) or any(map(has_user_calls, expression.args))


def rewrite(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with parts exchanged: ``change`` gives another one, or None where the part stays as it is."""
    changed = change(expression)
    if changed is not None:
        return changed
    if not isinstance(expression, Call | Subquery):
        return expression
    args = tuple(rewrite(argument, change) for argument in expression.args)
    if args == expression.args:
        return expression
    if isinstance(expression, Subquery):
        return Subquery(expression.kind, args, expression.plan, expression.type, expression.span)
    return expression.with_args(args)


def shifted(expression: Expression, by: int) -> Expression:
    """The expression over an input with ``by`` more columns in front."""

    def shift(part: Expression) -> Expression | None:
        return InputRef(part.index + by, part.type) if isinstance(part, InputRef) else None

    return rewrite(expression, shift)
