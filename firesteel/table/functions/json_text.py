"""JSON as values of Python and back, as Flink writes it: numbers keep their digits, keys are in order."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from firesteel.common.type_system.jsontext import json_moment, write_json
from firesteel.errors import FailureKind, ProgramError
from firesteel.table.types.data_types import (
    ArrayType,
    DataType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
)
from firesteel.table.types.derivation import is_binary

__all__ = ["JsonError", "json_value_of", "read_json", "write_json"]


class JsonError(ProgramError):
    """Text that is no JSON, or a value that JSON has no place for."""

    kind = FailureKind.PERMANENT


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def read_json(text: str) -> Any:
    """The value that a text in JSON stands for.

    >>> read_json('{"a": 1.50}')
    {'a': Decimal('1.50')}
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise JsonError(f"This is not JSON: {text[:60]!r} ({error}).") from None


def json_value_of(kind: DataType) -> Callable[[Any], Any]:
    """Makes of values of the type, which come as Arrow gives them to Python, what JSON knows.

    >>> from firesteel.table.types import DataTypes
    >>> json_value_of(DataTypes.BYTES())(b"AB")
    'QUI='
    """
    convert = _converter(kind)
    return lambda value: None if value is None else convert(value)


def _converter(kind: DataType) -> Callable[[Any], Any]:
    if is_binary(kind):
        return lambda value: base64.b64encode(value).decode()
    if isinstance(kind, TimestampType | LocalZonedTimestampType):
        return json_moment
    if isinstance(kind, ArrayType):
        item = json_value_of(kind.element_type)
        return lambda values: [item(value) for value in values]
    if isinstance(kind, MapType | MultisetType):
        return _pairs(kind)
    if isinstance(kind, RowType):
        fields = [(field.name, json_value_of(field.data_type)) for field in kind.fields]
        return lambda row: {name: convert(row[name]) for name, convert in fields}
    return lambda value: value if isinstance(value, str | int | float | Decimal) else str(value)


def _pairs(kind: MapType | MultisetType) -> Callable[[Any], Any]:
    value_of = json_value_of(kind.value_type) if isinstance(kind, MapType) else int
    return lambda pairs: {str(key): value_of(value) for key, value in pairs}
