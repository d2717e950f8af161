"""Expressions as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.table.sql.syntax.base import Node
from firesteel.table.types.data_types import DataType

if TYPE_CHECKING:
    from firesteel.table.sql.syntax.queries import Query

__all__ = [
    "ArrayConstructor",
    "Between",
    "Binary",
    "Case",
    "Cast",
    "Constant",
    "Descriptor",
    "Exists",
    "FieldAccess",
    "FunctionCall",
    "InList",
    "InQuery",
    "Interval",
    "IsTest",
    "ItemAccess",
    "Like",
    "MapConstructor",
    "Name",
    "NamedArgument",
    "OrderItem",
    "Over",
    "Quantified",
    "RowConstructor",
    "Star",
    "Subquery",
    "Symbol",
    "TableArgument",
    "Unary",
    "WindowFrame",
]


@dataclass(frozen=True)
class Name(Node):
    """``a`` or ``t.a``: a column, table or function."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class Star(Node):
    """``*`` or ``t.*``."""

    qualifier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Constant(Node):
    """A value. ``kind`` is one of number, string, bytes, boolean, null, date, time, timestamp."""

    kind: str
    value: Any


@dataclass(frozen=True)
class Interval(Node):
    """``INTERVAL '1-2' YEAR TO MONTH``: what is between the quotes, and its units."""

    text: str
    unit: str
    to: str | None
    negative: bool


@dataclass(frozen=True)
class Symbol(Node):
    """A word that a function takes: ``DAY`` in ``EXTRACT(DAY FROM d)``."""

    word: str


@dataclass(frozen=True)
class Unary(Node):
    """``-a``, ``NOT a``."""

    operator: str
    operand: Node


@dataclass(frozen=True)
class Binary(Node):
    """``a + b``, ``a AND b``."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Between(Node):
    """``a BETWEEN b AND c``."""

    operand: Node
    low: Node
    high: Node
    negated: bool
    symmetric: bool


@dataclass(frozen=True)
class InList(Node):
    """``a IN (b, c)``."""

    operand: Node
    items: tuple[Node, ...]
    negated: bool


@dataclass(frozen=True)
class InQuery(Node):
    """``a IN (SELECT ...)``."""

    operand: Node
    query: Query
    negated: bool


@dataclass(frozen=True)
class Like(Node):
    """``a LIKE b ESCAPE c``, ``a SIMILAR TO b``."""

    operator: str
    operand: Node
    pattern: Node
    escape: Node | None
    negated: bool


@dataclass(frozen=True)
class IsTest(Node):
    """``a IS NULL``; ``what`` is in capitals and without NOT."""

    operand: Node
    what: str
    negated: bool
    other: Node | None = None
    """Of ``IS DISTINCT FROM``."""


@dataclass(frozen=True)
class Case(Node):
    """``CASE a WHEN b THEN c ELSE d END``."""

    operand: Node | None
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None


@dataclass(frozen=True)
class Cast(Node):
    """``CAST(a AS type)``, ``TRY_CAST(a AS type)``."""

    operand: Node
    type: DataType
    safe: bool


@dataclass(frozen=True)
class OrderItem(Node):
    """``a DESC NULLS LAST``."""

    expression: Node
    descending: bool
    nulls_last: bool | None


@dataclass(frozen=True)
class WindowFrame(Node):
    """``ROWS BETWEEN 2 PRECEDING AND CURRENT ROW``. A bound is an expression, or None for UNBOUNDED; and its side:
    PRECEDING, FOLLOWING or CURRENT ROW."""

    rows: bool
    start: tuple[Node | None, str]
    end: tuple[Node | None, str] | None


@dataclass(frozen=True)
class Over(Node):
    """``OVER (PARTITION BY a ORDER BY b ROWS ...)``, or the name of a window."""

    name: str | None
    partition: tuple[Node, ...]
    order: tuple[OrderItem, ...]
    frame: WindowFrame | None


@dataclass(frozen=True)
class FunctionCall(Node):
    """``f(a, b)`` and everything that may come behind it."""

    name: Name
    args: tuple[Node, ...]
    distinct: bool = False
    order: tuple[OrderItem, ...] = ()
    filter: Node | None = None
    over: Over | None = None
    nulls: str | None = None
    """IGNORE or RESPECT."""
    clauses: tuple[tuple[str, Any], ...] = ()
    """Of the JSON functions: RETURNING and what happens ON EMPTY, ON ERROR."""
    bare: bool = False
    """Written without parentheses: CURRENT_DATE."""
    user: Any = None
    """The user's function that the name means."""


@dataclass(frozen=True)
class NamedArgument(Node):
    """``name => value``."""

    name: str
    value: Node


@dataclass(frozen=True)
class Descriptor(Node):
    """``DESCRIPTOR(a)``."""

    names: tuple[Name, ...]


@dataclass(frozen=True)
class TableArgument(Node):
    """``TABLE t``, or a query, as an argument of a table function."""

    table: Node
    partition: tuple[Node, ...] = ()
    order: tuple[OrderItem, ...] = ()


@dataclass(frozen=True)
class ArrayConstructor(Node):
    """``ARRAY[a, b]``."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class MapConstructor(Node):
    """``MAP[a, b, c, d]``: keys and values in turn."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class RowConstructor(Node):
    """``ROW(a, b)`` or ``(a, b)``."""

    items: tuple[Node, ...]
    prefix: str = "EXPR$"
    """Its fields have this and a number as their names."""


@dataclass(frozen=True)
class ItemAccess(Node):
    """``a[1]``."""

    operand: Node
    index: Node


@dataclass(frozen=True)
class FieldAccess(Node):
    """``(expression).field``."""

    operand: Node
    field_name: str | int
    """Its name; in the Table API its place, too."""


@dataclass(frozen=True)
class Exists(Node):
    """``EXISTS (SELECT ...)``."""

    query: Query


@dataclass(frozen=True)
class Subquery(Node):
    """A query that gives one value."""

    query: Query


@dataclass(frozen=True)
class Quantified(Node):
    """``a > ALL (SELECT ...)``."""

    operator: str
    operand: Node
    every: bool
    query: Query
