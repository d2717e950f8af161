"""Files with a JSON object a line."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation
from firesteel.common.types import Row
from firesteel.connectors.files.line_reading import Lines
from firesteel.connectors.files.stream_format import LineFormat
from firesteel.connectors.formats.json_reading import json_reader

__all__ = ["JsonLines"]


class JsonLines(LineFormat[Row]):
    """Rows of which each is a line. Empty lines are left out."""

    def __init__(self, type_info: RowTypeInfo, required: bool, ignoring: bool) -> None:
        self._type_info, self._required, self._ignoring = type_info, required, ignoring
        self._read = json_reader(type_info, required, ignoring)

    def decode(self, lines: Lines) -> list[Row]:
        try:
            rows = list(map(self._read, lines.lines))
        except Exception:
            rows = self._one_by_one(lines)
        return [row for row in rows if row is not None] if None in rows else rows

    def _one_by_one(self, lines: Lines) -> list[Row]:
        rows = []
        for index, line in enumerate(lines.lines):
            try:
                rows.append(self._read(line))
            except Exception as error:
                if line.strip() and not self._ignoring:
                    raise lines.failed(index, f"JSON cannot read it: {error}") from None
        return rows

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._type_info, self._required, self._ignoring)
