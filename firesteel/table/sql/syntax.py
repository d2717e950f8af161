"""The tree that the parser makes: what was written, and where. Names are not looked up and nothing has a type yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel.table.sql.source import Span
from firesteel.table.types.data_types import DataType

__all__ = [
    "ArrayConstructor",
    "Between",
    "Binary",
    "Case",
    "Cast",
    "Constant",
    "Cte",
    "DerivedTable",
    "Descriptor",
    "Exists",
    "FieldAccess",
    "FunctionCall",
    "GroupingSets",
    "Hint",
    "InList",
    "InQuery",
    "Interval",
    "IsTest",
    "ItemAccess",
    "Join",
    "Like",
    "MapConstructor",
    "MatchRecognize",
    "Name",
    "NamedArgument",
    "Node",
    "OrderItem",
    "Over",
    "PatternNode",
    "Quantified",
    "Query",
    "Relation",
    "RowConstructor",
    "Select",
    "SelectItem",
    "SetOperation",
    "Star",
    "Subquery",
    "Symbol",
    "TableArgument",
    "TableFunction",
    "TableName",
    "Unary",
    "Unnest",
    "Values",
    "WindowFrame",
]


@dataclass(frozen=True)
class Node:
    """Something that was written, and where."""

    span: Span = field(kw_only=True, compare=False, repr=False)


# Expressions.


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


@dataclass(frozen=True)
class ItemAccess(Node):
    """``a[1]``."""

    operand: Node
    index: Node


@dataclass(frozen=True)
class FieldAccess(Node):
    """``(expression).field``."""

    operand: Node
    field_name: str


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


# Relations.


@dataclass(frozen=True)
class Hint(Node):
    """``STATE_TTL('a' = '1d')``."""

    name: str
    options: tuple[tuple[str, str], ...]
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Relation(Node):
    """What FROM may name."""

    alias: str | None = None
    column_aliases: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TableName(Relation):
    """A table by name."""

    name: Name
    hints: tuple[Hint, ...] = ()
    as_of: Node | None = None
    """``FOR SYSTEM_TIME AS OF``."""


@dataclass(frozen=True, kw_only=True)
class DerivedTable(Relation):
    """A query in FROM."""

    query: Query
    lateral: bool = False


@dataclass(frozen=True, kw_only=True)
class TableFunction(Relation):
    """``TABLE(TUMBLE(...))``, ``LATERAL TABLE(f(a))``."""

    call: FunctionCall
    lateral: bool = False


@dataclass(frozen=True, kw_only=True)
class Unnest(Relation):
    """``UNNEST(array)``."""

    expression: Node
    ordinality: bool = False


@dataclass(frozen=True, kw_only=True)
class Join(Relation):
    """Two relations. ``kind``: INNER, LEFT, RIGHT, FULL, CROSS, COMMA."""

    left: Node
    right: Node
    kind: str
    natural: bool = False
    condition: Node | None = None
    using: tuple[str, ...] = ()


@dataclass(frozen=True)
class PatternNode(Node):
    """A part of a row pattern: ``kind`` is variable, sequence, alternative, permute, exclusion or quantified."""

    kind: str
    items: tuple[PatternNode, ...] = ()
    variable: str = ""
    least: int = 1
    most: int | None = 1
    greedy: bool = True


@dataclass(frozen=True, kw_only=True)
class MatchRecognize(Relation):
    """Patterns in the rows of a relation."""

    input: Node
    partition: tuple[Node, ...]
    order: tuple[OrderItem, ...]
    measures: tuple[SelectItem, ...]
    all_rows: bool
    skip: tuple[str, str | None]
    """NEXT ROW, PAST LAST ROW, FIRST or LAST with a variable."""
    pattern: PatternNode
    within: Node | None
    subsets: tuple[tuple[str, tuple[str, ...]], ...]
    definitions: tuple[tuple[str, Node], ...]


# Queries.


@dataclass(frozen=True)
class SelectItem(Node):
    """``a AS b``."""

    expression: Node
    alias: str | None


@dataclass(frozen=True)
class GroupingSets(Node):
    """``GROUPING SETS``, ``ROLLUP`` or ``CUBE``; an element is a tuple of expressions or another of these."""

    kind: str
    elements: tuple[tuple[Node, ...] | GroupingSets, ...]


@dataclass(frozen=True)
class Select(Node):
    """``SELECT ... FROM ... WHERE ...``."""

    items: tuple[SelectItem, ...]
    distinct: bool
    source: Node | None
    where: Node | None
    group_by: tuple[Node, ...] | None
    having: Node | None
    windows: tuple[tuple[str, Over], ...]
    qualify: Node | None
    hints: tuple[Hint, ...]


@dataclass(frozen=True)
class Values(Node):
    """``VALUES (1, 'a'), (2, 'b')``."""

    rows: tuple[RowConstructor, ...]


@dataclass(frozen=True)
class SetOperation(Node):
    """``a UNION ALL b``."""

    operator: str
    all: bool
    left: Node
    right: Node


@dataclass(frozen=True)
class Cte(Node):
    """A named query of WITH."""

    name: str
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True)
class Query(Node):
    """``WITH ... body ORDER BY ... LIMIT ...``; the body is a Select, Values, SetOperation, TableName or Query."""

    body: Node
    ctes: tuple[Cte, ...] = ()
    order: tuple[OrderItem, ...] = ()
    limit: Node | None = None
    offset: Node | None = None
