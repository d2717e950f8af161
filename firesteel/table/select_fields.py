"""What is given to ``select``, ``group_by`` and their like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from firesteel.errors import ProgramError, short_repr
from firesteel.table.expression import Expression, node_of
from firesteel.table.expression_methods.collection_methods import FlattenedRow
from firesteel.table.logical.plan import unique_names
from firesteel.table.sql.errors import SqlValidationError, near_names
from firesteel.table.sql.syntax import (
    Binary,
    Cast,
    Constant,
    FieldAccess,
    FunctionCall,
    Name,
    Node,
    Query,
    SelectItem,
    Star,
)
from firesteel.table.types.data_types import DataType, RowType

__all__ = [
    "ColumnChoice",
    "ColumnRange",
    "FieldExpansion",
    "checked_names",
    "chosen_columns",
    "field_node",
    "name_of",
    "named_node",
]


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


class FieldExpansion:
    """Puts what they mean in the place of ``*``, ranges, choices of columns and flattened rows, also among the
    arguments of functions.

    ``columns`` are what the names of the input stand for, ``type_of`` says of what type an expression is.
    """

    def __init__(self, columns: Mapping[str, Node], type_of: Callable[[Node], DataType]) -> None:
        self._columns = columns
        self._type_of = type_of

    def fields(self, nodes: Sequence[Node]) -> list[Node]:
        """What ``select`` and its like are given."""
        return [each for node in nodes for each in self._several(node)]

    def inside(self, node: Node) -> Node:
        """An expression, which stays one."""
        if isinstance(node, Query):
            # It has columns of its own.
            return node
        if isinstance(node, Binary):
            return self._chain(node)
        changes: dict[str, Any] = {}
        for each in fields(node):
            value = getattr(node, each.name)
            if isinstance(value, Node):
                changed: Any = self._single(value)
            elif isinstance(value, tuple):
                changed = self._items(node, value)
            else:
                continue
            if changed is not value:
                changes[each.name] = changed
        return replace(node, **changes) if changes else node

    def _items(self, node: Node, items: tuple[Any, ...]) -> tuple[Any, ...]:
        if not any(isinstance(each, Node | tuple) for each in items) or _counts_rows(node):
            return items
        found: list[Any] = []
        for each in items:
            if isinstance(each, Node):
                found += self._several(each)
            else:
                found.append(self._items(node, each) if isinstance(each, tuple) else each)
        same = len(found) == len(items) and all(new is old for new, old in zip(found, items, strict=True))
        return items if same else tuple(found)

    def _chain(self, node: Binary) -> Node:
        """a & b & c leans to the left, and may be long."""
        spine: list[Binary] = []
        left: Node = node
        while isinstance(left, Binary):
            spine.append(left)
            left = left.left
        result = self._single(left)
        for each in reversed(spine):
            right = self._single(each.right)
            if result is not each.left or right is not each.right:
                each = replace(each, left=result, right=right)
            result = each
        return result

    def _single(self, node: Node) -> Node:
        found = self._several(node)
        if len(found) != 1:
            raise ProgramError(
                f"One value is needed, got {len(found)} columns. Several may stand in select() and among the arguments "
                "of functions."
            )
        return found[0]

    def _several(self, node: Node) -> list[Node]:
        chosen = chosen_columns(node, tuple(self._columns))
        if chosen is not None:
            return [self._columns[name] for name in chosen]
        return self._flattened(node) if isinstance(node, FlattenedRow) else [self.inside(node)]

    def _flattened(self, node: FlattenedRow) -> list[Node]:
        operand = self._single(node.operand)
        kind = self._type_of(operand)
        if not isinstance(kind, RowType):
            # As in Flink: what is no row stays as it is.
            return [operand]
        return [FieldAccess(operand, name, span=node.span) for name in kind.field_names()]


def _counts_rows(node: Node) -> bool:
    """``COUNT(*)``, as call_sql() writes it."""
    return isinstance(node, FunctionCall) and node.name.parts[-1].upper() == "COUNT" and len(node.args) == 1


def field_node(field: Any) -> Node:
    """What an expression holds; nothing else is a column."""
    if isinstance(field, Expression):
        return node_of(field)
    raise ProgramError(f"Columns are expressions such as col('a'), got {short_repr(field, 60)}.")


def named_node(node: Node) -> tuple[Node, str | None]:
    """What is selected, and the name that it was given."""
    name: str | None = None
    while isinstance(node, SelectItem):
        # Of an alias of an alias the last one counts.
        name, node = name or node.alias, node.expression
    return node, name


def name_of(node: Node) -> str | None:
    """The name of a column, of a field of one, and of one as another type; None for what else is computed."""
    if isinstance(node, Cast) and not node.safe:
        inner = name_of(node.operand)
        return None if inner is None else f"{inner}-{node.type.nullable()}"
    if isinstance(node, FieldAccess):
        row, field = name_of(node.operand), node.field_name
        return None if row is None else f"{row}${field if isinstance(field, str) else f'_{field}'}"
    return node.parts[-1] if isinstance(node, Name) else None


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, none of them twice."""
    doubled = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
    if doubled:
        raise SqlValidationError(f"Two columns are called {doubled[0]}: give one of them another name with alias().")
    return unique_names(names)
