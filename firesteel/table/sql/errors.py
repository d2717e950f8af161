"""Errors in SQL that show where."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from firesteel.common.secret import is_secret_key, url_secret_spans
from firesteel.errors import FailureKind, ProgramError
from firesteel.table.sql.source import Span, line_and_column

__all__ = ["NotSupportedError", "SqlError", "SqlParseError", "SqlValidationError", "near_names"]


class SqlError(ProgramError):
    """A statement that cannot be understood, or not run. The text ends with the line and a mark below it.

    >>> print(SqlError("expected FROM, got FORM.", "SELECT a\\nFORM t", Span(9, 13)))
    expected FROM, got FORM. (line 2, column 1)
      FORM t
      ^^^^
    """

    kind = FailureKind.PERMANENT

    def __init__(self, message: str, text: str | None = None, span: Span | None = None) -> None:
        self.line: int | None = None
        self.column: int | None = None
        if text is not None:
            message, text = _without_secrets(message, text)
        self.message = message
        self.text = text
        self.span = span
        if text is None or span is None:
            super().__init__(message)
            return
        self.line, self.column = line_and_column(text, span.start)
        super().__init__(f"{message} (line {self.line}, column {self.column})\n{_marked(text, span)}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.text, self.span)


class SqlParseError(SqlError):
    """The text is not SQL."""

    kind = FailureKind.PERMANENT


class SqlValidationError(SqlError):
    """The statement names what is not there, or puts types together that do not go together."""

    kind = FailureKind.PERMANENT


class NotSupportedError(SqlError):
    """The statement is good SQL which cannot be run yet."""

    kind = FailureKind.PERMANENT


_OPTION = re.compile(r"""'((?:[^']|'')*)'\s*(?:=?\s*'((?:[^']|'')*)'?|=\s*([^\s',);]+))""")
_SETTING = re.compile(r"""(?i)\A\s*SET\s+'?([\w.-]+)'?\s*=\s*([^\s';]+)""")
_ACCOUNT = re.compile(r"(?<=://)[^/\s@']*(?=@)")
_WIDTH = 140


def _without_secrets(message: str, text: str) -> tuple[str, str]:
    """What is written behind a key such as 'password', and accounts in addresses, have stars in their place: errors
    are logged. The text keeps its length, so that places in it stay right."""
    spans = [found.span() for found in _ACCOUNT.finditer(text)] + url_secret_spans(text)
    setting = _SETTING.match(text)
    if setting is not None and is_secret_key(setting[1]):
        spans.append(setting.span(2))
    at = 0
    while (found := _OPTION.search(text, at)) is not None:
        secret = is_secret_key(found[1])
        # The second string of a pair may be the key of the next one, where a comma is missing.
        at = found.end() if secret else found.end(1) + 1
        if secret:
            spans.append(found.span(2 if found[2] is not None else 3))
    shown = text
    for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
        if start < end:
            message = message.replace(text[start:end], "******")
            shown = shown[:start] + "*" * (end - start) + shown[end:]
    return message, shown


def _marked(text: str, span: Span) -> str:
    begin = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.start)
    line = text[begin : end if end >= 0 else len(text)]
    start = span.start - begin
    length = max(1, min(span.end, begin + len(line)) - span.start)
    if len(line) > _WIDTH:
        cut = max(0, start - _WIDTH // 2)
        line, start = line[cut : cut + _WIDTH], start - cut
        length = max(1, min(length, len(line) - start))
    # Tabs stay tabs, so that the mark is below the text however wide they are.
    blank = "".join("\t" if letter == "\t" else " " for letter in line[:start])
    return f"  {line}\n  {blank}{'^' * length}".rstrip()


def near_names(name: str, known: Iterable[str]) -> str:
    """`` Did you mean ...?`` or nothing.

    >>> near_names("usr", ["user", "item"])
    ' Did you mean user?'
    """
    names = list(known)
    lowered = {each.lower(): each for each in names}
    found = [lowered[each] for each in difflib.get_close_matches(name.lower(), list(lowered), 3, 0.6)]
    return f" Did you mean {' or '.join(found)}?" if found else ""
