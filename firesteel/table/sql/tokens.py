"""Cuts SQL into words, names, strings, numbers and signs."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from firesteel.table.sql.errors import SqlParseError
from firesteel.table.sql.source import Span

__all__ = ["Token", "TokenKind", "tokenize", "tokens_of"]


class TokenKind(enum.Enum):
    """What a token is."""

    WORD = "a word"
    QUOTED_NAME = "a name"
    STRING = "a string"
    NUMBER = "a number"
    SIGN = "a sign"
    HINT = "a hint"
    END = "the end of the statement"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text."""

    kind: TokenKind
    text: str
    """What it says: a word as it is written, a name and a string without quotes."""
    span: Span
    upper: str = ""
    """A word in capitals, a sign; empty for names, strings and numbers."""

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return "the end of the statement"
        if self.kind is TokenKind.STRING:
            return f"'{self.text}'" if len(self.text) < 40 else "a string"
        return self.text if self.kind is not TokenKind.QUOTED_NAME else f"`{self.text}`"


_PATTERN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<line_comment>--[^\n]*|//[^\n]*)
  | (?P<hint>/\*\+)
  | (?P<comment>/\*)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<prefixed>[uU]&'|[xX]'|_[A-Za-z0-9-]+')
  | (?P<string>')
  | (?P<quoted>`)
  | (?P<word>(?:[^\W\d]|\$(?=[\w$]))[\w$]*)
  | (?P<sign>\*/|=>|<>|!=|<=|>=|\|\||\{-|-\}|->|[-+*/%=<>(),.;:?\[\]{}|^&~$@!])
    """,
    re.VERBOSE,
)
_UNICODE = re.compile(r"\\(?:([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6})|(\\))")


_OTHER_QUOTES = '"\u2018\u2019\u201c\u201d\u201e\u00b4'


def tokenize(text: str) -> list[Token]:
    """All tokens; the last one is the end.

    >>> [str(token) for token in tokenize("SELECT `a b`, 'it''s' -- why")]
    ['SELECT', '`a b`', ',', "'it's'", 'the end of the statement']
    """
    tokens: list[Token] = []
    at, size = 0, len(text)
    while at < size:
        match = _PATTERN.match(text, at)
        if match is None:
            quotes = " Texts stand in single quotes ('Rome'), names in backticks (`city`)."
            meant = quotes if text[at] in _OTHER_QUOTES else ""
            raise SqlParseError(f"{text[at]!r} has no meaning here.{meant}", text, Span(at, at + 1))
        kind, end = match.lastgroup, match.end()
        span = Span(at, end)
        if kind == "comment":
            end = text.find("*/", end)
            if end < 0:
                raise SqlParseError("The comment has no end: */ is missing.", text, span)
            end += 2
        elif kind == "number":
            if end < size and (text[end].isalpha() or text[end] == "_"):
                word = re.compile(r"[\w.]+").match(text, at)
                assert word is not None
                raise SqlParseError(
                    f"{word[0]} is not a number. A name that begins with a digit is written `{word[0]}`.",
                    text,
                    Span(at, word.end()),
                )
            tokens.append(Token(TokenKind.NUMBER, match[0], span))
        elif kind == "word":
            tokens.append(Token(TokenKind.WORD, match[0], span, match[0].upper()))
        elif kind == "string":
            value, end = _quoted(text, end, "'", "The string")
            tokens.append(Token(TokenKind.STRING, value, Span(at, end)))
        elif kind == "quoted":
            value, end = _quoted(text, end, "`", "The name")
            if not value:
                raise SqlParseError("A name has at least one character.", text, Span(at, end))
            tokens.append(Token(TokenKind.QUOTED_NAME, value, Span(at, end)))
        elif kind == "prefixed":
            value, end = _quoted(text, end, "'", "The string")
            tokens.append(_prefixed(text, match[0], value, Span(at, end)))
        elif kind in ("sign", "hint"):
            kind_of = TokenKind.HINT if kind == "hint" else TokenKind.SIGN
            tokens.append(Token(kind_of, match[0], span, "<>" if match[0] == "!=" else match[0]))
        at = end
    tokens.append(Token(TokenKind.END, "", Span(size, size)))
    return tokens


def tokens_of(text: str) -> list[Token]:
    """The tokens as far as they can be told. What has no end yet, or no meaning, counts as one that ends no statement:
    the parser says what is wrong with it."""
    found: list[Token] = []
    at = 0
    while True:
        try:
            return found + [_moved(token, at) for token in tokenize(text[at:]) if token.kind is not TokenKind.END]
        except SqlParseError as error:
            start, end = error.span or Span(0, len(text))
            wrong = Span(start + at, end + at)
            found += [
                _moved(token, at) for token in tokenize(text[at : wrong.start]) if token.kind is not TokenKind.END
            ]
            if "has no end" in error.message:
                return [*found, Token(TokenKind.STRING, text[wrong.start :], Span(wrong.start, len(text)))]
            found.append(Token(TokenKind.WORD, text[wrong.start : wrong.end], wrong))
            at = wrong.end


def _moved(token: Token, by: int) -> Token:
    return Token(token.kind, token.text, Span(token.span.start + by, token.span.end + by), token.upper)


def _quoted(text: str, at: int, quote: str, what: str) -> tuple[str, int]:
    parts = []
    start = at
    while True:
        end = text.find(quote, at)
        if end < 0:
            inside = (
                " A quote inside a text is written twice: 'It''s'." if quote == "'" and text.count(quote) > 1 else ""
            )
            raise SqlParseError(f"{what} has no end: {quote} is missing.{inside}", text, Span(start - 1, start))
        parts.append(text[at:end])
        if not text.startswith(quote, end + 1):
            return quote.join(parts), end + 1
        at = end + 2


def _prefixed(text: str, prefix: str, value: str, span: Span) -> Token:
    if prefix[0] in "uU":
        try:
            value = _UNICODE.sub(_character, value)
        except (ValueError, OverflowError):
            raise SqlParseError("There is no such character.", text, span) from None
        return Token(TokenKind.STRING, value, span)
    if prefix[0] in "xX":
        if len(value) % 2 or re.fullmatch(r"[0-9A-Fa-f]*", value) is None:
            raise SqlParseError("X'...' holds two hexadecimal digits for each byte.", text, span)
        return Token(TokenKind.STRING, value, span, "X")
    return Token(TokenKind.STRING, value, span)


def _character(match: re.Match[str]) -> str:
    return "\\" if match[3] else chr(int(match[1] or match[2], 16))
