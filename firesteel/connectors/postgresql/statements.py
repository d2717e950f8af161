"""SQL with question marks, as JDBC has it, for a server that numbers its parameters; and the SQL of an upsert."""

from __future__ import annotations

import re
from collections.abc import Sequence

from firesteel.connectors.postgresql.loading import load_driver
from firesteel.errors import ProgramError

__all__ = ["quoted", "upsert", "with_numbers"]

_PIECES = re.compile(
    r"""
      [eE]'(?:[^'\\]|''|\\.)*'         # a string with escapes
    | '(?:[^']|'')*'                   # a string
    | "(?:[^"]|"")*"                   # a name
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$  # a string between dollars
    | --[^\n]*                         # a comment to the end of the line
    | /\*.*?\*/                        # a comment
    | \?\?                             # a question mark that is meant
    | \?                               # a parameter
    """,
    re.VERBOSE | re.DOTALL,
)


def with_numbers(sql: str) -> tuple[str, int]:
    """The statement with ``$1, $2, …`` for its question marks, and how many there are.

    Question marks in strings, names and comments are left alone; ``??`` is one that is no parameter.

    >>> with_numbers("INSERT INTO t (a, b) VALUES (?, ? || '?')")
    ("INSERT INTO t (a, b) VALUES ($1, $2 || '?')", 2)
    """
    count = 0

    def number(found: re.Match[str]) -> str:
        nonlocal count
        piece = found.group()
        if piece == "??":
            return "?"
        if piece != "?":
            return piece
        count += 1
        return f"${count}"

    return _PIECES.sub(number, sql), count


def quoted(name: str) -> str:
    """A table's or column's name, with its schema where it has one, as the server reads it.

    >>> quoted("shop.Orders"), quoted('a"b')
    ('"shop"."Orders"', '"a""b"')
    """
    text: str = load_driver().sql.Identifier(*name.split(".")).as_string(None)
    return text


def upsert(table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
    """Inserts a row, or gives the one with the same key these values.

    >>> upsert("counts", ["word", "n"], ["word"])
    'INSERT INTO "counts" ("word", "n") VALUES (?, ?) ON CONFLICT ("word") DO UPDATE SET "n" = EXCLUDED."n"'
    """
    if not keys:
        raise ProgramError(f"An upsert into {table!r} needs the columns of its key.")
    unknown = [key for key in keys if key not in columns]
    if unknown:
        raise ProgramError(f"Key columns {unknown} are none of the columns of {table!r}: {list(columns)}.")
    names = ", ".join(quoted(column) for column in columns)
    marks = ", ".join("?" for _ in columns)
    changed = [f"{quoted(column)} = EXCLUDED.{quoted(column)}" for column in columns if column not in keys]
    action = f"UPDATE SET {', '.join(changed)}" if changed else "NOTHING"
    conflict = ", ".join(quoted(key) for key in keys)
    return f"INSERT INTO {quoted(table)} ({names}) VALUES ({marks}) ON CONFLICT ({conflict}) DO {action}"
