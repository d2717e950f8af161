"""What a query says in short, written in full: a view means the same wherever and whenever it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from firesteel.table.sql import syntax
from firesteel.table.sql.source import Span

__all__ = ["WrittenNames"]

Qualified = Callable[[tuple[str, ...]], tuple[str, ...]]


class WrittenNames:
    """Gathers the names of tables and the columns of stars while a query is resolved."""

    def __init__(self, qualified: Qualified) -> None:
        self._qualified = qualified
        self._full: dict[Span, str] = {}

    def named(self, name: syntax.Name) -> None:
        """A name of the catalog: with its catalog and database."""
        self._full[name.span] = _quoted(self._qualified(name.parts))

    def star(self, node: syntax.Star, columns: Sequence[tuple[str, ...]]) -> None:
        """A star: its columns, if each of them can be told from the others."""
        if len(set(columns)) == len(columns):
            self._full[node.span] = ", ".join(map(_quoted, columns))

    def text(self, query: syntax.Query, statement: str) -> str:
        """The query of a statement in full."""
        start, end = query.span.start, query.span.end
        inside = sorted((span for span in self._full if start <= span.start < end), key=lambda span: span.start)
        parts = []
        for span in inside:
            parts += [statement[start : span.start], self._full[span]]
            start = span.end
        return "".join([*parts, statement[start:end]])


def _quoted(parts: Sequence[str]) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)
