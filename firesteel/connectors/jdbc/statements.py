"""SQL with question marks, as JDBC has it, for drivers with other marks; and what upserts have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from firesteel.errors import ProgramError

__all__ = ["check_keys", "marked"]

_PIECES = re.compile(
    r"""
      [eE]'(?:[^'\\]|''|\\.)*'         # a string with escapes
    | '(?:[^']|'')*'                   # a string
    | "(?:[^"]|"")*"                   # a name, in MySQL a string
    | `(?:[^`]|``)*`                   # a name of MySQL
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$  # a string between dollars
    | --[^\n]*                         # a comment to the end of the line
    | /\*.*?\*/                        # a comment
    | \?\?                             # a question mark that is meant
    | \?                               # a parameter
    """,
    re.VERBOSE | re.DOTALL,
)


def marked(sql: str, mark: Callable[[int], str]) -> tuple[str, int]:
    """The statement with other marks for its question marks, and how many there are.

    Question marks in strings, names and comments are left alone; ``??`` is one that is no parameter.

    >>> marked("INSERT INTO t (a, b) VALUES (?, ? || '?')", lambda number: f":{number}")
    ("INSERT INTO t (a, b) VALUES (:1, :2 || '?')", 2)
    """
    count = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal count
        piece = found.group()
        if piece == "??":
            return "?"
        if piece != "?":
            return piece
        count += 1
        return mark(count)

    return _PIECES.sub(replaced, sql), count


def check_keys(table: str, columns: Sequence[str], keys: Sequence[str]) -> None:
    """Raises unless an upsert has a key, and that of columns of its own."""
    if not keys:
        raise ProgramError(f"An upsert into {table!r} needs the columns of its key.")
    unknown = [key for key in keys if key not in columns]
    if unknown:
        raise ProgramError(f"Key columns {unknown} are none of the columns of {table!r}: {list(columns)}.")
