"""Queries as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.table.sql.syntax.base import Node
from firesteel.table.sql.syntax.expressions import OrderItem, Over, RowConstructor
from firesteel.table.sql.syntax.relations import Hint

__all__ = [
    "Cte",
    "GroupingSets",
    "PlannedQuery",
    "Query",
    "Select",
    "SelectItem",
    "SetOperation",
    "Values",
]


@dataclass(frozen=True)
class SelectItem(Node):
    """``a AS b``."""

    expression: Node
    alias: str | None
    more: tuple[str, ...] = ()
    """Further names, where an expression of the Table API stands for several columns."""


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


@dataclass(frozen=True)
class PlannedQuery(Node):
    """A table of the Table API as the body of a query."""

    plan: Any
