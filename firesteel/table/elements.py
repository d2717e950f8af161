"""Rows of a program as ``from_elements`` takes them: tuples, Rows, dicts, named tuples and objects with attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from firesteel.common.types import Row
from firesteel.errors import ProgramError, short_repr
from firesteel.table.types.conversion import inferred_type, named_fields
from firesteel.table.types.data_types import DataType, RowField, RowType
from firesteel.table.types.derivation import common_type

__all__ = ["rows_of_elements"]


def rows_of_elements(elements: Iterable[Any], schema: Any) -> tuple[list[Sequence[Any]], RowType]:
    """The values of each row, and the columns that they have: those of a schema, or inferred ones.

    >>> rows_of_elements([{"b": 1, "a": 2.5}], None)[0]
    [[2.5, 1]]
    """
    if schema is not None and (isinstance(schema, str) or not isinstance(schema, DataType | Iterable)):
        raise ProgramError(f"from_elements(): the schema is a type or a list of names, got {short_repr(schema, 60)}.")
    given = list(elements)
    if isinstance(schema, RowType):
        row_type, rows = schema, [_values(element, schema.field_names()) for element in given]
    elif isinstance(schema, DataType):
        row_type, rows = RowType((RowField("f0", schema),)), [_values(element, ["f0"]) for element in given]
    else:
        rows, row_type = _inferred(given, None if schema is None else list(schema))
    for row in rows:
        if len(row) != len(row_type):
            raise ProgramError(
                f"from_elements(): {short_repr(row, 80)} has {len(row)} fields, the schema {len(row_type)}."
            )
    return rows, row_type


def _inferred(elements: list[Any], names: list[str] | None) -> tuple[list[Sequence[Any]], RowType]:
    """The columns are called as the fields are where fields have names, else as is said or ``_1``, ``_2``, …"""
    if not elements:
        raise ProgramError("from_elements() without rows needs a schema: DataTypes.ROW([...]).")
    records = [named_fields(element) for element in elements]
    if all(record is not None for record in records):
        names = list(dict.fromkeys(name for record in records for name in record or ()))
        rows: list[Sequence[Any]] = [_by_names(record or {}, names) for record in records]
    else:
        rows = [_values(element, []) for element in elements]
        width, given = len(rows[0]), names or []
        names = [*given[:width], *(f"_{index + 1}" for index in range(len(given), width))]
    for name in names:
        if names.count(name) > 1:
            raise ProgramError(f"from_elements(): two columns are called {name!r}.")
    kinds = []
    for index, name in enumerate(names):
        kind = common_type([inferred_type(row[index]) for row in rows if index < len(row)])
        if kind is None:
            raise ProgramError(f"from_elements(): column {name!r} has values of different types. Give a schema.")
        kinds.append(kind)
    return rows, RowType.of(names, kinds)


def _values(element: Any, names: list[str]) -> Sequence[Any]:
    """The fields of a row for these columns. As in PyFlink, a named tuple has them in its own order."""
    if isinstance(element, tuple | list):
        return element
    if isinstance(element, Row):
        return element.get_fields_by_names(names) if names else list(element)
    record = named_fields(element)
    return (element,) if record is None else _by_names(record, names)


def _by_names(record: Mapping[str, Any], names: list[str]) -> list[Any]:
    return [record.get(name) for name in names]
