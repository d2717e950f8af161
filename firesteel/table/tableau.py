"""Results as text, as Flink prints them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import TextIO

from firesteel.table.types.data_types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    LocalZonedTimestampType,
    TimestampType,
    TimeType,
)

__all__ = ["DISPLAY_WIDTH", "WIDEST", "column_width", "print_fitted", "print_rows", "text_width"]

DISPLAY_WIDTH = "table.display.max-column-width"
WIDEST = 30
"""Characters of a column whose values may be of any length, unless that key says something else."""
Cells = Sequence[str]


def text_width(text: str) -> int:
    """Columns on a terminal: two for wide characters.

    >>> text_width("日本")
    4
    """
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def column_width(name: str, kind: DataType, widest: int = WIDEST) -> int:
    """As wide as the longest value of the type, as far as that can be told before values come.

    >>> from firesteel.table.types import DataTypes
    >>> column_width("k", DataTypes.INT()), column_width("name", DataTypes.STRING())
    (11, 30)
    """
    width = widest
    if isinstance(kind, BooleanType):
        width = 5
    elif isinstance(kind, IntegralType):
        width = kind.digits + 1
    elif isinstance(kind, DecimalType):
        width = kind.precision + 2
    elif isinstance(kind, DateType):
        width = 10
    elif isinstance(kind, TimeType):
        width = 8 if kind.precision == 0 else 9 + kind.precision
    elif isinstance(kind, TimestampType | LocalZonedTimestampType):
        width = 19 if kind.precision == 0 else 20 + kind.precision
    # There is always room for <NULL>.
    return max(text_width(name), width, 6)


def print_rows(
    names: Cells,
    types: Sequence[DataType],
    rows: Iterable[Cells],
    out: TextIO,
    kinds: bool = True,
    widest: int = WIDEST,
) -> None:
    """Rows as they come, each with its kind in front if they have one."""
    widths = [column_width(name, kind, widest) for name, kind in zip(names, types, strict=True)]
    _print(["op", *names] if kinds else names, [2, *widths] if kinds else widths, rows, out)


def print_fitted(names: Cells, rows: Iterable[Cells], out: TextIO) -> None:
    """All rows at once, in columns as wide as they need."""
    listed = [list(row) for row in rows]
    widths = [max(map(text_width, column)) for column in zip(names, *listed, strict=True)]
    _print(names, widths, listed, out)


def _print(names: Cells, widths: Sequence[int], rows: Iterable[Cells], out: TextIO) -> None:
    line = f"+{'+'.join('-' * (width + 2) for width in widths)}+\n"
    number = 0
    for row in rows:
        if number == 0:
            out.write(line + _row(names, widths) + line)
        out.write(_row(row, widths))
        number += 1
    if number == 0:
        out.write("Empty set\n")
        return
    out.write(f"{line}{number} row{'' if number == 1 else 's'} in set\n")


def _row(cells: Cells, widths: Sequence[int]) -> str:
    shown = (_padded(cell, width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(shown)} |\n"


def _padded(text: str, width: int) -> str:
    wide = text_width(text)
    if wide <= width:
        return " " * (width - wide) + text
    # As many characters as leave room for three dots.
    kept, used = "", 0
    for letter in text:
        used += text_width(letter)
        if used > width - 3:
            break
        kept += letter
    return _padded(f"{kept}...", width) if text_width(kept) + 3 < width else f"{kept}..."
