"""Lines of CSV: how they are taken to pieces, and which values need quotes. The rules are those of Jackson's CSV."""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from firesteel.errors import ConfigurationError

__all__ = ["Dialect", "csv_text", "quoting", "record_at", "records_of", "single_character", "splitting"]

_UNCHECKED = 24
"""A longer text is put in quotes without a look at it, as Jackson does."""

_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Dialect:
    """What CSV is made of."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null_literal: str | None = None
    array_delimiter: str = ";"
    line_delimiter: str = "\n"
    comments: bool = False


def single_character(what: str, given: str) -> str:
    """A character that a dialect may have."""
    if not isinstance(given, str) or len(given) != 1:
        raise ConfigurationError(f"The {what} of CSV is a single character, got {given!r}.")
    return given


def csv_text(message: bytes) -> str:
    """The text of a message: UTF-8, or UTF-16 and UTF-32 if they say so."""
    try:
        text = str(message, "utf-8")
    except UnicodeDecodeError:
        encoding = json.detect_encoding(message)
        if encoding in ("utf-8", "utf-8-sig"):
            raise
        text = message.decode(encoding)
    return text[1:] if text.startswith("\ufeff") else text


def splitting(dialect: Dialect) -> Callable[[str], list[str]]:
    """A function from a text to the values of its first line."""
    delimiter, quote, escape, comments = dialect.delimiter, dialect.quote, dialect.escape, dialect.comments

    def split(text: str) -> list[str]:
        if (escape is not None and escape in text) or comments:
            return record_at(text, 0, dialect)[0]
        if quote is not None and quote in text:
            line = text.rstrip("\r\n")
            if "\n" not in line and "\r" not in line:
                # Python's own is faster, and where it is not sure it says so.
                with contextlib.suppress(csv.Error):
                    return next(csv.reader((line,), delimiter=delimiter, quotechar=quote, strict=True))
            return record_at(text, 0, dialect)[0]
        if "\n" in text or "\r" in text:
            text, _ = _line(text, 0)
        elif not text:
            raise ValueError("it is empty")
        return text.split(delimiter)

    return split


def _line(text: str, begin: int) -> tuple[str, int]:
    """A line, and where the next one begins."""
    ends = [place for place in (text.find("\n", begin), text.find("\r", begin)) if place >= 0]
    if not ends:
        return text[begin:], len(text)
    end = min(ends)
    return text[begin:end], _behind(text, end)


def _behind(text: str, end: int) -> int:
    return end + 2 if text.startswith("\r\n", end) else end + 1


def record_at(text: str, begin: int, dialect: Dialect) -> tuple[list[str], int]:
    """The values of the record that begins there, and where the next one does. A value in quotes may hold lines."""
    if dialect.comments:
        begin = _behind_comments(text, begin)
    if begin >= len(text):
        raise ValueError("it is empty")
    values: list[str] = []
    place = begin
    while True:
        if dialect.quote is not None and text.startswith(dialect.quote, place):
            value, place = _quoted(text, place + 1, dialect)
        else:
            value, place = _plain(text, place, dialect)
        values.append(value)
        if place >= len(text):
            return values, place
        if text[place] in "\r\n" and text[place] != dialect.delimiter:
            return values, _behind(text, place)
        place += 1


def records_of(text: str, dialect: Dialect) -> Iterator[list[str]]:
    """The values of all records of a text, which may have line ends of any kind."""
    place = 0
    while True:
        if dialect.comments:
            place = _behind_comments(text, place)
        if place >= len(text):
            return
        values, place = record_at(text, place, dialect)
        yield values


def _behind_comments(text: str, begin: int) -> int:
    while begin < len(text):
        line, following = _line(text, begin)
        bare = line.strip(" \t")
        if bare and not bare.startswith("#"):
            return begin
        begin = following
    return begin


@functools.lru_cache
def _value_end(delimiter: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(delimiter)}\r\n]")


def _plain(text: str, place: int, dialect: Dialect) -> tuple[str, int]:
    """A value without quotes, and where it ends."""
    if dialect.escape is None:
        found = _value_end(dialect.delimiter).search(text, place)
        end = len(text) if found is None else found.start()
        return text[place:end], end
    parts: list[str] = []
    end = len(text)
    while place < end:
        character = text[place]
        if character == dialect.delimiter or character in "\r\n":
            break
        if character == dialect.escape:
            character, place = _unescaped(text, place)
        parts.append(character)
        place += 1
    return "".join(parts), place


def _quoted(text: str, place: int, dialect: Dialect) -> tuple[str, int]:
    """A value whose opening quote is just before ``place``."""
    parts: list[str] = []
    quote, escape = dialect.quote or "", dialect.escape
    while True:
        if escape is None:
            # From quote to quote.
            end = text.find(quote, place)
            if end > place:
                parts.append(text[place:end])
                place = end
            elif end < 0:
                place = len(text)
        if place >= len(text):
            raise ValueError("a closing quote is missing")
        character = text[place]
        if character == escape:
            character, place = _unescaped(text, place)
        elif character == quote:
            if not text.startswith(quote, place + 1):
                break
            place += 1
        parts.append(character)
        place += 1
    place += 1
    while place < len(text) and text[place] <= " " and text[place] not in "\r\n" and text[place] != dialect.delimiter:
        place += 1
    if place < len(text) and text[place] != dialect.delimiter and text[place] not in "\r\n":
        raise ValueError(
            f"{text[place]!r} behind a closing quote, where the delimiter {dialect.delimiter!r} or the end of the line "
            "should be"
        )
    return "".join(parts), place


def _unescaped(text: str, place: int) -> tuple[str, int]:
    place += 1
    if place >= len(text):
        raise ValueError("the escape character is the last one")
    return _ESCAPED.get(text[place], text[place]), place


def quoting(dialect: Dialect) -> Callable[[str], str]:
    """A function from a text to what stands for it in a line.

    Jackson does not look whether quotes are needed but whether they may be, which is less work for it: at most at 24
    characters, and any character up to the delimiter or the quote counts.

    >>> quote = quoting(Dialect())
    >>> print(quote("abc"), quote("a b"), quote('1"'), quote("x" * 25))
    abc "a b" "1\"\"" "xxxxxxxxxxxxxxxxxxxxxxxxx"
    """
    mark, escape = dialect.quote, dialect.escape
    if mark is None:
        return lambda text: text if escape is None else text.replace(escape, escape * 2)
    highest = max(dialect.delimiter, mark)
    suspicious = re.compile(f'[\0-{re.escape(highest)}"\\\\{re.escape(escape or "")}]')
    search, quote = suspicious.search, mark

    def quoted(text: str) -> str:
        if len(text) <= _UNCHECKED and search(text) is None:
            return text
        if escape is not None:
            text = text.replace(escape, escape * 2)
        return f"{quote}{text.replace(quote, quote * 2)}{quote}"

    return quoted
