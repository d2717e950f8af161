"""What is given to ``select``, ``group_by`` and their like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.errors import ProgramError, short_repr
from firesteel.table.expression import Expression, node_of
from firesteel.table.logical.plan import unique_names
from firesteel.table.sql.errors import SqlValidationError, near_names
from firesteel.table.sql.syntax import Constant, Name, Node, SelectItem, Star

__all__ = ["ColumnChoice", "ColumnRange", "checked_names", "chosen_columns", "field_node", "name_of", "named_node"]


@dataclass(frozen=True)
class ColumnRange(Node):
    """Columns from one to another one: by their names, or by their numbers, which begin with 1."""

    first: str | int
    last: str | int


@dataclass(frozen=True)
class ColumnChoice(Node):
    """Some columns of a table, or all but these."""

    items: tuple[Node, ...]
    without: bool = False


def chosen_columns(node: Node, names: Sequence[str]) -> list[str] | None:
    """The columns that stand for ``*``, a range or a choice of columns; None for an expression."""
    if isinstance(node, Star):
        return list(names)
    if isinstance(node, ColumnRange):
        return list(names[_place(node.first, names) : _place(node.last, names) + 1])
    if not isinstance(node, ColumnChoice):
        return None
    found = []
    for item in node.items:
        several = chosen_columns(item, names)
        found += [names[_place(_named(item), names)]] if several is None else several
    return [name for name in names if name not in found] if node.without else found


def _named(node: Node) -> str | int:
    if isinstance(node, Name) and len(node.parts) == 1:
        return node.parts[0]
    value = getattr(node.value, "value", None) if isinstance(node, Constant) else None
    if isinstance(value, int):
        return value
    raise ProgramError("Columns are chosen by col('name'), by their numbers, or with range_().")


def _place(column: str | int, names: Sequence[str]) -> int:
    if isinstance(column, int):
        if not 1 <= column <= len(names):
            raise SqlValidationError(f"There is no column {column}: the columns are numbered from 1 to {len(names)}.")
        return column - 1
    if column not in names:
        raise SqlValidationError(f"There is no column {column}.{near_names(column, list(names))}")
    return list(names).index(column)


def field_node(field: Any) -> Node:
    """What an expression holds; nothing else is a column."""
    if isinstance(field, Expression):
        return node_of(field)
    raise ProgramError(f"Columns are expressions such as col('a'), got {short_repr(field, 60)}.")


def named_node(node: Node) -> tuple[Node, str | None]:
    """What is selected, and the name that it was given."""
    return (node.expression, node.alias) if isinstance(node, SelectItem) else (node, None)


def name_of(node: Node) -> str | None:
    """The name of a column; None for what is computed."""
    return node.parts[-1] if isinstance(node, Name) else None


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, none of them twice."""
    doubled = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
    if doubled:
        raise SqlValidationError(f"Two columns are called {doubled[0]}: give one of them another name with alias().")
    return unique_names(names)
