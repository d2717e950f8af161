"""Where in a statement an error belongs that was found later, in its plan or its tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from firesteel.table.physical.sinks import MisfitError
from firesteel.table.sql import statements, syntax
from firesteel.table.sql.errors import SqlError
from firesteel.table.sql.source import Span
from firesteel.table.sql.syntax.base import nodes_of

__all__ = ["placed"]

Qualified = Callable[[tuple[str, ...]], tuple[str, ...]]


def placed(error: SqlError, statement: statements.Statement, text: str, qualified: Qualified) -> SqlError:
    """The error with its place: the value that does not go into a column, or the table that it is about. The same error
    if it has a place, or none can be told."""
    if error.span is not None:
        return error
    span = _place(error, statement, qualified)
    return error if span is None else type(error)(error.message, text, span)


def _place(error: SqlError, statement: statements.Statement, qualified: Qualified) -> Span | None:
    if isinstance(error, MisfitError) and isinstance(statement, statements.Insert):
        return _value(statement, error.place)
    for node in nodes_of(statement):
        if isinstance(node, syntax.TableName) and node.as_of is not None and "FOR SYSTEM_TIME" in error.message:
            return node.as_of.span
    for name in _tables(statement):
        path = re.escape(".".join(qualified(name.parts)))
        if re.search(rf"(?<![\w.]){path}(?![\w.]*\w)", error.message):
            return name.span
    return None


def _value(statement: statements.Insert, place: int | None) -> Span:
    """What is written for a column, or the query where that cannot be told."""
    body = statement.query.body
    if place is None or not isinstance(body, syntax.Select) or place >= len(body.items):
        return statement.query.span
    # Behind a star columns have other numbers.
    stars = any(isinstance(item.expression, syntax.Star) for item in body.items)
    return statement.query.span if stars else body.items[place].span


def _tables(statement: statements.Statement) -> Iterator[syntax.Name]:
    for node in nodes_of(statement):
        if isinstance(node, statements.Insert):
            yield node.target
        elif isinstance(node, statements.CreateTable | syntax.TableName):
            yield node.name
        elif isinstance(node, syntax.TableArgument) and isinstance(node.table, syntax.Name):
            yield node.table
