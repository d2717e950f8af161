"""Records as parameters of a statement: checked against the declared types, in the form that a driver takes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo
from firesteel.common.types import Row
from firesteel.errors import TypeMismatchError

__all__ = ["Rows", "as_json", "moment"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_AS_THEY_ARE = frozenset({int, str, float, bool, bytes, type(None)})
_PLAIN = frozenset({"STRING", "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"})
"""Declared types whose values, where they fit, every driver takes as they are."""


class Rows:
    """Turns records of a declared type into rows. ``parameter`` does it for values that the driver may not know."""

    def __init__(self, declared: RowTypeInfo | TupleTypeInfo, parameter: Callable[[Any], Any]) -> None:
        self._declared = declared
        self._fits = declared.checker() or (lambda value: True)
        self._converted: Callable[[Any], Any] = declared.converter() or (lambda value: value)
        self._parameter = parameter
        fields = declared.get_field_types()
        plain = all(repr(field) in _PLAIN and field.converter() is None for field in fields)
        self.row: Callable[[Any], tuple[Any, ...]] = self._plain_row() if plain else self._any_row
        """One record as a row."""

    def _plain_row(self) -> Callable[[Any], tuple[Any, ...]]:
        """Where fields are taken as they are. It is called for every record, and most are of two kinds."""
        names, fits, any_row = tuple(self._declared.get_field_names()), self._fits, self._any_row

        def row(value: Any) -> tuple[Any, ...]:
            kind = type(value)
            if kind is Row and value._fields == names and fits(value):
                return tuple(value._values)
            return value if kind is tuple and fits(value) else any_row(value)

        return row

    def _any_row(self, value: Any) -> tuple[Any, ...]:
        if value is None or not self._fits(value):
            why = self._declared.explain(value) or f"expected {self._declared}, got None"
            raise TypeMismatchError(f"{why}. The statement's parameters come from the fields of {self._declared}.")
        fields: Sequence[Any] = self._converted(value)
        parameter = self._parameter
        return tuple([item if type(item) in _AS_THEY_ARE else parameter(item) for item in fields])


def moment(instant: Instant) -> datetime.datetime:
    """A moment as Python has it."""
    return _EPOCH + datetime.timedelta(seconds=instant.seconds, microseconds=instant.nanos // 1000)


def as_json(value: Any) -> str:
    """Maps, lists and nested rows, for databases that keep them as text.

    >>> as_json({"a": [1, Decimal("2.50")], "at": datetime.date(2020, 2, 29)})
    '{"a": [1, "2.50"], "at": "2020-02-29"}'
    """
    return json.dumps(value, default=_json_value, ensure_ascii=False)


def _json_value(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, Instant):
        return moment(value).isoformat()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeMismatchError(f"A value of {type(value).__name__} cannot be written as JSON.")
