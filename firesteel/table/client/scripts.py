"""Where statements end in a text that is being typed, or that a file holds."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.sql.source import line_and_column
from firesteel.table.sql.tokens import Token, TokenKind, tokens_of

__all__ = ["Script", "ScriptStatement", "split"]

_SETS = (
    ("EXECUTE", "STATEMENT", "SET", "BEGIN"),
    ("EXPLAIN", "STATEMENT", "SET", "BEGIN"),
    ("BEGIN", "STATEMENT", "SET"),
)


@dataclass(frozen=True)
class ScriptStatement:
    """One statement without its semicolon."""

    text: str
    line: int
    """Where it begins, counted from one."""
    column: int = 1
    """Likewise."""


@dataclass(frozen=True)
class Script:
    """A text cut into statements."""

    statements: list[ScriptStatement]
    rest: str
    """What comes behind the last semicolon; empty if nothing but space and comments does."""
    rest_at: tuple[int, int] = (1, 1)
    """Line and column where that begins."""

    @property
    def all(self) -> list[ScriptStatement]:
        """The statements, and as the last one what comes behind them."""
        return [*self.statements, ScriptStatement(self.rest, *self.rest_at)] if self.rest else self.statements


def split(text: str) -> Script:
    """Cuts a text at the semicolons that end statements: not at those in strings, comments and statement sets.

    >>> script = split("SELECT ';'; EXECUTE STATEMENT SET BEGIN INSERT INTO a VALUES (1); END; SELECT")
    >>> [statement.text for statement in script.statements], script.rest
    (["SELECT ';'", 'EXECUTE STATEMENT SET BEGIN INSERT INTO a VALUES (1); END'], 'SELECT')
    """
    statements: list[ScriptStatement] = []
    own: list[Token] = []
    for token in tokens_of(text):
        if token.kind is TokenKind.SIGN and token.upper == ";" and not _in_a_set(own):
            if own:
                statements.append(_statement(text, own, token.span.start))
            own = []
        else:
            own.append(token)
    if not own:
        return Script(statements, "")
    start = own[0].span.start
    return Script(statements, text[start:].strip(), line_and_column(text, start))


def _statement(text: str, tokens: list[Token], end: int) -> ScriptStatement:
    start = tokens[0].span.start
    return ScriptStatement(text[start:end].strip(), *line_and_column(text, start))


def _in_a_set(tokens: list[Token]) -> bool:
    """Whether these begin a statement set that has not come to its END."""
    begun = [words for words in _SETS if tuple(token.upper for token in tokens[: len(words)]) == words]
    if not begun:
        return False
    cases = 0
    for token in tokens[len(begun[0]) :]:
        if token.upper == "CASE":
            cases += 1
        elif token.upper == "END":
            if not cases:
                return False
            cases -= 1
    return True
