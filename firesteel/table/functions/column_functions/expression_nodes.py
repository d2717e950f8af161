"""The expression that a user's function is: frozen, plain data, which is pickled with the function."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Argument",
    "Bound",
    "Choice",
    "Constant",
    "Let",
    "Node",
    "OneOf",
    "Operation",
    "Outer",
    "Plain",
    "Raises",
]

Plain = int | float | str | bool | None
"""Constants that functions may have."""


@dataclass(frozen=True)
class Node:
    """The root of all nodes."""


@dataclass(frozen=True)
class Argument(Node):
    """An argument of the function, from 0."""

    index: int


@dataclass(frozen=True)
class Constant(Node):
    """A constant of the function's source."""

    value: Plain


@dataclass(frozen=True)
class Outer(Node):
    """A name from outside of the function: global, or of the function around it. It is read anew for each batch."""

    name: str


@dataclass(frozen=True)
class OneOf(Node):
    """Whether a value is one of a collection from outside of the function, which is read anew for each batch."""

    value: Node
    name: str


@dataclass(frozen=True)
class Let(Node):
    """A value that the body uses under a number. It is computed even if the body does not use it: it may fail."""

    slot: int
    value: Node
    body: Node


@dataclass(frozen=True)
class Bound(Node):
    """The value of a :class:`Let` around it."""

    slot: int


@dataclass(frozen=True)
class Choice(Node):
    """One of two values. Each is needed only for the rows that choose it."""

    test: Node
    chosen: Node
    otherwise: Node


@dataclass(frozen=True)
class Raises(Node):
    """An exception, for every row that comes here."""


@dataclass(frozen=True)
class Operation(Node):
    """An operator or a function of Python's, by name; ``options`` are those of its operands that are no columns."""

    name: str
    operands: tuple[Node, ...]
    options: tuple[Plain, ...] = ()
