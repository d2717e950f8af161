"""Between Python values and columns."""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.common.type_system.keys import as_key
from firesteel.common.types import Row
from firesteel.errors import ProgramError, TypeMismatchError, short_repr
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    MAX_PRECISION,
    ArrayType,
    BigIntType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    RowField,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
)
from firesteel.table.types.derivation import common_type
from firesteel.table.types.time_zones import clock_of

__all__ = ["column_of", "inferred_type", "named_fields", "values_of"]

_WIDE = Context(prec=120)
"""Python's own context has 28 digits."""

Convert = Callable[[Any], Any]


def column_of(values: Sequence[Any], kind: DataType, name: str = "") -> pa.Array:
    """Python values as a column; an error shows the first one that does not fit.

    >>> from firesteel.table.types import DataTypes
    >>> column_of([1, None], DataTypes.INT()).to_pylist()
    [1, None]
    """
    convert = _to_arrow(kind)
    if not kind.is_nullable and any(value is None for value in values):
        raise TypeMismatchError(f"Column {name!r} is {kind}, got NULL.")
    try:
        prepared = values if convert is None else [None if value is None else convert(value) for value in values]
        return pa.array(prepared, arrow_type(kind))
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError, KeyError, AttributeError) as error:
        for value in values:
            try:
                pa.array([value if convert is None or value is None else convert(value)], arrow_type(kind))
            except (pa.ArrowException, TypeError, ValueError, ArithmeticError, KeyError, AttributeError):
                raise TypeMismatchError(
                    f"Column {name!r} is {kind}, got {type(value).__name__} {short_repr(value, 60)}."
                ) from None
        raise TypeMismatchError(f"Column {name!r} is {kind}: {error}") from None


def _to_arrow(kind: DataType) -> Convert | None:
    """What Arrow does not do by itself: None if it does everything."""
    if isinstance(kind, DecimalType):
        step = Decimal(1).scaleb(-kind.scale)
        return lambda value: Decimal(repr(value) if isinstance(value, float) else value).quantize(step, context=_WIDE)
    if isinstance(kind, ArrayType):
        inner = _to_arrow(kind.element_type)
        return None if inner is None else lambda value: [_or_none(inner, each) for each in value]
    if isinstance(kind, MapType):
        key, item = _to_arrow(kind.key_type), _to_arrow(kind.value_type)
        return lambda value: [(_or_none(key, k), _or_none(item, v)) for k, v in dict(value).items()]
    if isinstance(kind, RowType):
        names = kind.field_names()
        converts = [_to_arrow(each.data_type) for each in kind.fields]
        return lambda value: {
            name: _or_none(convert, each)
            for name, convert, each in zip(names, converts, _row_values(value, names), strict=True)
        }
    return None


def _or_none(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _row_values(value: Any, names: list[str]) -> Sequence[Any]:
    if isinstance(value, Row):
        return value.get_fields_by_names(names)
    if isinstance(value, tuple | list):
        return value
    record = named_fields(value)
    return list(value) if record is None else [record.get(name) for name in names]


def named_fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of a dict or an object in the order of their names, those of a named tuple or Row in its own; None for
    all else.

    >>> named_fields({"b": 1, "a": 2}), named_fields(Row(b=1, a=2)), named_fields((1, 2))
    ({'a': 2, 'b': 1}, {'b': 1, 'a': 2}, None)
    """
    if isinstance(value, dict):
        return dict(sorted(value.items()))
    names = getattr(value, "_fields", None)
    if isinstance(value, Row | tuple):
        return None if names is None else dict(zip(names, value, strict=True))
    if isinstance(value, tuple(known for known, _ in _INFERRED)):
        return None
    return dict(sorted(vars(value).items())) if getattr(value, "__dict__", None) else None


def values_of(column: pa.Array, kind: DataType, zone: str = "UTC") -> list[Any]:
    """A column as Python values: rows as :class:`Row`, maps as dicts, moments as the zone's clocks show them."""
    convert = _to_python(kind, zone)
    values = column.to_pylist()
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _to_python(kind: DataType, zone: str) -> Convert | None:
    if isinstance(kind, FloatType):
        # The shortest number that is this one, as Java writes it.
        return lambda value: float(str(np.float32(value)))
    if isinstance(kind, TimestampType):
        return (lambda value: value.to_pydatetime(warn=False)) if kind.precision > 6 else None
    if isinstance(kind, LocalZonedTimestampType):
        there = clock_of(zone)
        return lambda value: _plain_datetime(value).astimezone(there).replace(tzinfo=None)
    if isinstance(kind, ArrayType):
        inner = _to_python(kind.element_type, zone)
        return None if inner is None else lambda value: [_or_none(inner, each) for each in value]
    if isinstance(kind, MapType):
        key, item = _to_python(kind.key_type, zone), _to_python(kind.value_type, zone)
        return lambda value: {as_key(_or_none(key, k)): _or_none(item, v) for k, v in value}
    if isinstance(kind, MultisetType):
        element = _to_python(kind.element_type, zone)
        return lambda value: {as_key(_or_none(element, k)): count for k, count in value}
    if isinstance(kind, RowType):
        converts = [(each.name, _to_python(each.data_type, zone)) for each in kind.fields]
        return lambda value: Row(*[_or_none(convert, value[name]) for name, convert in converts])
    return None


def _plain_datetime(value: Any) -> datetime.datetime:
    plain: datetime.datetime = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    return plain


def inferred_type(value: Any) -> DataType:
    """The type of a Python value, as ``from_elements`` without a schema takes it.

    >>> str(inferred_type([1, None])), str(inferred_type(Decimal("1.5")))
    ('ARRAY<BIGINT>', 'DECIMAL(38, 18)')
    """
    if value is None:
        return NullType()
    for known, kind in _INFERRED:
        if isinstance(value, known):
            return kind
    if isinstance(value, dict):
        return MapType(_inferred_common(value.keys()), _inferred_common(value.values()))
    if isinstance(value, list):
        return ArrayType(_inferred_common(value))
    if isinstance(value, array):
        return ArrayType(_inferred_common(value.tolist()))
    record = named_fields(value)
    if record is None and isinstance(value, Row | tuple):
        record = {f"_{index + 1}": each for index, each in enumerate(value)}
    if record is not None:
        return RowType(tuple(RowField(name, inferred_type(each)) for name, each in record.items()))
    raise ProgramError(f"No type of tables holds {type(value).__name__} {short_repr(value, 60)}. Give a schema.")


def _inferred_common(values: Any) -> DataType:
    kinds = [inferred_type(value) for value in values]
    return common_type(kinds) or NullType() if kinds else NullType()


_INFERRED: list[tuple[Any, DataType]] = [
    (bool, BooleanType()),
    (int, BigIntType()),
    (float, DoubleType()),
    (str, VarCharType(MAX_LENGTH)),
    (bytes | bytearray, VarBinaryType(MAX_LENGTH)),
    (Decimal, DecimalType(MAX_PRECISION, 18)),
    (datetime.datetime, LocalZonedTimestampType(6)),
    (datetime.date, DateType()),
    (datetime.time, TimeType(0)),
    (datetime.timedelta, DayTimeIntervalType()),
]
