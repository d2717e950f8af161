"""What stands behind FROM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.table.sql.syntax.base import Node
from firesteel.table.sql.syntax.expressions import FunctionCall, Name, OrderItem

if TYPE_CHECKING:
    from firesteel.table.sql.syntax.queries import Query, SelectItem

__all__ = [
    "DerivedTable",
    "Hint",
    "Join",
    "MatchRecognize",
    "PatternNode",
    "Relation",
    "TableFunction",
    "TableName",
    "Unnest",
]


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
