"""Walks along the tokens of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from firesteel.table.sql.errors import SqlParseError, near_names
from firesteel.table.sql.source import Span
from firesteel.table.sql.syntax import Name
from firesteel.table.sql.tokens import Token, TokenKind, tokenize

__all__ = ["RESERVED", "Cursor"]

RESERVED = frozenset(
    [
        "ALL",
        "AND",
        "ANY",
        "ARRAY",
        "AS",
        "BETWEEN",
        "BOTH",
        "BY",
        "CASE",
        "CAST",
        "CREATE",
        "CROSS",
        "CUBE",
        "CURRENT",
        "DEFAULT",
        "DESCRIBE",
        "DISTINCT",
        "DROP",
        "ELSE",
        "END",
        "EXCEPT",
        "EXISTS",
        "EXPLAIN",
        "FALSE",
        "FETCH",
        "FOR",
        "FROM",
        "FULL",
        "GROUP",
        "GROUPING",
        "HAVING",
        "IN",
        "INNER",
        "INSERT",
        "INTERSECT",
        "INTERVAL",
        "INTO",
        "IS",
        "JOIN",
        "LATERAL",
        "LEADING",
        "LEFT",
        "LIKE",
        "LIMIT",
        "MATCH_RECOGNIZE",
        "MINUS",
        "MULTISET",
        "NATURAL",
        "NOT",
        "NULL",
        "OFFSET",
        "ON",
        "OR",
        "ORDER",
        "OUTER",
        "OVER",
        "PARTITION",
        "QUALIFY",
        "RIGHT",
        "ROLLUP",
        "ROW",
        "ROWS",
        "SELECT",
        "SIMILAR",
        "SOME",
        "SYMMETRIC",
        "TABLE",
        "TABLESAMPLE",
        "THEN",
        "TRAILING",
        "TRUE",
        "UESCAPE",
        "UNION",
        "UNKNOWN",
        "UNNEST",
        "USING",
        "VALUES",
        "WHEN",
        "WHERE",
        "WINDOW",
        "WITH",
        "WITHIN",
    ]
)
"""Words that are no names, unless they stand in backticks. Flink reserves more; what it reserves without need is a name
here."""

_SIGNS_MEANT = {
    "&": " Conditions are combined with AND.",
    "|": " Conditions are combined with OR.",
    ":": " CAST(a AS type) converts a value.",
}

_MOST_NESTED = 80
Item = TypeVar("Item")


class Cursor:
    """A place among the tokens, and the questions a parser asks there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokenize(text)
        self._at = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    def peek(self, ahead: int = 1) -> Token:
        """A token behind the next one, or before it."""
        return self._tokens[max(0, min(self._at + ahead, len(self._tokens) - 1))]

    @property
    def here(self) -> Span:
        """Where the next token is."""
        return self.token.span

    def since(self, start: Span) -> Span:
        """From there to the end of the last token."""
        return Span(start.start, max(start.end if not self._at else self._tokens[self._at - 1].span.end, start.start))

    def advance(self) -> Token:
        """Takes the next token."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._at += 1
        return token

    def is_kind(self, *kinds: TokenKind) -> bool:
        """Whether a token of one of these kinds comes next."""
        return self.token.kind in kinds

    def is_word(self, *words: str) -> bool:
        """Whether these words come next."""
        return all(
            self.peek(index).upper == word and self.peek(index).kind is TokenKind.WORD
            for index, word in enumerate(words)
        )

    def is_sign(self, *signs: str) -> bool:
        """Whether one of these signs comes next."""
        return self.token.kind in (TokenKind.SIGN, TokenKind.HINT) and self.token.upper in signs

    def word(self, *words: str) -> bool:
        """Takes these words, if they come next."""
        if not self.is_word(*words):
            return False
        self._at += len(words)
        return True

    def sign(self, *signs: str) -> str | None:
        """Takes one of these signs, if it comes next."""
        return self.advance().upper if self.is_sign(*signs) else None

    def expect_word(self, *words: str) -> None:
        """Takes these words; anything else is an error."""
        for word in words:
            if not self.word(word):
                raise self.failure(word)

    def expect_sign(self, sign: str) -> None:
        """Takes this sign; anything else is an error."""
        if self.sign(sign) is None:
            raise self.failure(sign)

    def failure(self, *expected: str, at: Span | None = None) -> SqlParseError:
        """An error that says what was expected."""
        shown = " or ".join(dict.fromkeys(expected)) if len(expected) <= 6 else ", ".join(expected)
        near = ""
        if self.is_kind(TokenKind.WORD):
            near = near_names(self.token.text, [each for each in expected if each.isupper()])
        reserved = ""
        if self.token.upper in RESERVED and self._looks_like_name(expected):
            reserved = f" {self.token.upper} is reserved: as a name it is written `{self.token.text}`."
        meant = reserved or near or self._meant(expected)
        return SqlParseError(f"Expected {shown}, got {self.token}.{meant}", self.text, at or self.here)

    def _meant(self, expected: tuple[str, ...]) -> str:
        """What was probably meant, of what is often written by mistake."""
        got, before = self.token.upper or self.token.text, self.peek(-1) if self._at else None
        behind = "" if before is None else before.upper
        if "an expression" in expected:
            if behind == "," and (self.is_kind(TokenKind.END) or got == ")" or got in RESERVED):
                return " The comma before it is one too many."
            if behind == got == "=":
                return " Two values are compared with one =."
            if behind == "LIKE" and got == "%":
                return " A pattern stands in quotes: '%a%'."
            if got == "INTERVAL" and self.peek().kind is TokenKind.NUMBER:
                return f" The number stands in quotes: INTERVAL '{self.peek().text}' {self.peek(2).upper}."
        if "the end of the statement" in expected:
            if got == ")":
                return " No ( is open here."
            if "ILIKE" in (behind, got):
                return " UPPER(a) LIKE 'A%' does not care about capital letters."
            if behind == "TOP" and self.is_kind(TokenKind.NUMBER):
                return f" LIMIT {self.token.text} at the end takes the first rows."
            return _SIGNS_MEANT.get(got, "")
        if self.is_kind(TokenKind.WORD) and any("in quotes" in each for each in expected):
            return f" Write '{self.token.text}'."
        return ""

    def _looks_like_name(self, expected: tuple[str, ...]) -> bool:
        """Whether a reserved word stands where a column or table would."""
        if "an expression" in expected:
            following = self.peek()
            return following.kind is TokenKind.END or following.upper in (",", ".", ")", "=", "FROM", "AS")
        return any("name" in each or each.startswith("a table,") for each in expected)

    def error(self, message: str, at: Span) -> SqlParseError:
        """An error at a place."""
        return SqlParseError(message, self.text, at)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper; too many are an error, before Python's own limit is reached."""
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise self.error(f"The statement is nested more than {_MOST_NESTED} levels deep.", self.here)
        yield
        self._depth -= 1

    def is_name(self) -> bool:
        """Whether a name comes next."""
        token = self.token
        return token.kind is TokenKind.QUOTED_NAME or (token.kind is TokenKind.WORD and token.upper not in RESERVED)

    def identifier(self, what: str = "a name") -> str:
        """Takes a name."""
        if not self.is_name():
            raise self.failure(what)
        return self.advance().text

    def name(self, what: str = "a name") -> Name:
        """Takes a name with dots."""
        start = self.here
        parts = [self.identifier(what)]
        while self.is_sign(".") and self.peek().kind in (TokenKind.WORD, TokenKind.QUOTED_NAME):
            self.advance()
            # Behind a dot any word is a name.
            parts.append(self.advance().text)
        return Name(tuple(parts), span=self.since(start))

    def string(self, what: str = "a string") -> str:
        """Takes a string."""
        if not self.is_kind(TokenKind.STRING):
            raise self.failure(what)
        return self.advance().text

    def integer(self, what: str = "a whole number") -> int:
        """Takes a whole number."""
        if not self.is_kind(TokenKind.NUMBER) or not self.token.text.isdigit():
            raise self.failure(what)
        return int(self.advance().text)

    def listed(self, item: Callable[[], Item]) -> list[Item]:
        """One or more, with commas between them."""
        found = [item()]
        while self.sign(","):
            found.append(item())
        return found

    def enclosed(self, item: Callable[[], Item]) -> list[Item]:
        """One or more in parentheses."""
        self.expect_sign("(")
        found = self.listed(item)
        if self.sign(")") is None:
            raise self.failure(",", ")")
        return found
