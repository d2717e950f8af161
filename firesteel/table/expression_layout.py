"""Expressions of CREATE TABLE as SHOW CREATE TABLE and DESCRIBE print them."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.functions.registry import find
from firesteel.table.sql.tokens import Token, TokenKind, tokenize

__all__ = ["quoted_columns"]

_OPERATORS = frozenset(["+", "-", "*", "/", "%", "=", "<>", "!=", "<", ">", "<=", ">=", "||"])
_KEYWORDS = frozenset(
    ["AND", "AS", "BETWEEN", "CASE", "ELSE", "FOR", "FROM", "IN", "IS", "LIKE", "NOT", "OR", "THEN", "TO", "WHEN"]
)
_CALLED = frozenset(["ARRAY", "CAST", "EXTRACT", "MAP", "ROW", "TRY_CAST"])
"""What is called and is no function."""
_UNITS = frozenset(["YEARS", "MONTHS", "DAYS", "HOURS", "MINUTES", "SECONDS"])


def quoted_columns(expression: str, columns: Sequence[str]) -> str:
    """An expression as Flink shows it: columns in backticks, words of SQL in capitals, one space around operators.

    >>> quoted_columns("upper( name )||'name'", ["name"])
    "UPPER(`name`) || 'name'"
    >>> quoted_columns("at - interval '5' seconds", ["at"])
    "`at` - INTERVAL '5' SECOND"
    """
    shown, after_value, former = "", False, None
    for token in tokenize(expression)[:-1]:
        behind = expression[token.span.end :].lstrip()
        is_call = behind.startswith("(")
        is_field = shown.endswith(".") and token.kind in (TokenKind.WORD, TokenKind.QUOTED_NAME)
        if is_field or (token.kind is TokenKind.WORD and token.text in columns and not is_call):
            written = f"`{token.text}`"
        elif token.kind is TokenKind.WORD and not behind.startswith("."):
            written = _word(token, is_call, former)
        else:
            written = expression[token.span.start : token.span.end]
        binary = after_value and written in _OPERATORS
        if former is not None and (binary or _apart(former, token)) and not shown.endswith(" "):
            shown += " "
        shown += f"{written} " if binary or written == "," else written
        after_value = written not in _OPERATORS and written not in ("(", "[", ",") and written not in _KEYWORDS
        former = token
    return shown.rstrip()


def _word(token: Token, is_call: bool, former: Token | None) -> str:
    """A word that is no column. A user's function keeps its name."""
    name = token.upper
    if is_call and name not in _KEYWORDS and name not in _CALLED and find(name) is None:
        return token.text
    if name in _UNITS and former is not None and former.kind is TokenKind.STRING:
        return name[:-1]
    return name


def _apart(former: Token, token: Token) -> bool:
    """Whether there is a space between two tokens that are no operators."""
    if former.upper in ("(", "[", ".") or token.upper in (")", "]", ",", "."):
        return False
    if token.upper == "(":
        return former.upper in _KEYWORDS or (former.kind is TokenKind.SIGN and former.span.end < token.span.start)
    return former.span.end < token.span.start
