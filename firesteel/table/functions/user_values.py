"""Between columns and the values that users' functions get and give."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.type_system.keys import as_key
from firesteel.common.types import Row, make_row
from firesteel.table.data_view import ListView, MapView
from firesteel.table.functions.decimals import WIDE
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    FractionalType,
    IntegralType,
    ListViewType,
    LocalZonedTimestampType,
    MapType,
    MapViewType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)
from firesteel.table.types.time_zones import clock_of

__all__ = ["MisfitError", "given_value", "plain_list", "stored_value", "values_to_column"]

Convert = Callable[[Any], Any]


class MisfitError(Exception):
    """A value does not fit its type. Who catches it says whose value it is."""

    def __init__(self, kind: DataType, value: Any) -> None:
        super().__init__(kind, value)
        self.kind, self.value = kind, value


# From columns.


def plain_list(column: pa.Array, kind: DataType, zone: str = "UTC") -> list[Any]:
    """A column as functions get it: rows as :class:`Row` with names, maps as dicts, moments with the session's zone.

    >>> from firesteel.table.types import DataTypes
    >>> plain_list(pa.array([1, None]), DataTypes.BIGINT())
    [1, None]
    """
    convert = given_value(kind, zone)
    if convert is None:
        return _fast_list(column)
    return [None if value is None else convert(value) for value in column.to_pylist()]


def _fast_list(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if not column.null_count:
            numbers: list[Any] = column.to_numpy().tolist()
            return numbers
        filled = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(object)
        filled[pc.is_null(column).to_numpy(zero_copy_only=False)] = None
        return list(filled)
    if pa.types.is_string(kind):
        texts: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return texts
    values: list[Any] = column.to_pylist()
    return values


def given_value(kind: DataType, zone: str) -> Convert | None:
    """What makes of a value as Arrow gives it the one that functions get; None: it is the same."""
    if isinstance(kind, TimestampType):
        return (lambda value: value.to_pydatetime(warn=False)) if kind.precision > 6 else None
    if isinstance(kind, LocalZonedTimestampType):
        there = clock_of(zone)
        return lambda value: _plain_datetime(value).astimezone(there)
    if isinstance(kind, ArrayType):
        inner = given_value(kind.element_type, zone)
        make = _list_view if isinstance(kind, ListViewType) else list
        return lambda value: make([_or_none(inner, each) for each in value])
    if isinstance(kind, MapType):
        key, item = given_value(kind.key_type, zone), given_value(kind.value_type, zone)
        pack = _map_view if isinstance(kind, MapViewType) else dict
        return lambda value: pack({as_key(_or_none(key, k)): _or_none(item, v) for k, v in value})
    if isinstance(kind, MultisetType):
        element = given_value(kind.element_type, zone)
        return lambda value: {as_key(_or_none(element, k)): count for k, count in value}
    if isinstance(kind, RowType):
        names = tuple(kind.field_names())
        converts = [given_value(each.data_type, zone) for each in kind.fields]
        pairs = list(zip(names, converts, strict=True))
        return lambda value: make_row(names, [_or_none(convert, value[name]) for name, convert in pairs])
    return None


def _list_view(values: list[Any]) -> ListView[Any]:
    view: ListView[Any] = ListView()
    view.add_all(values)
    return view


def _map_view(values: dict[Any, Any]) -> MapView[Any, Any]:
    view: MapView[Any, Any] = MapView()
    view.put_all(values)
    return view


def _or_none(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _plain_datetime(value: Any) -> datetime.datetime:
    plain: datetime.datetime = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    return plain


# To columns.

_EXACT: dict[type[DataType], frozenset[type]] = {
    BooleanType: frozenset((bool,)),
    CharType: frozenset((str,)),
    VarCharType: frozenset((str,)),
    BinaryType: frozenset((bytes,)),
    VarBinaryType: frozenset((bytes,)),
    DateType: frozenset((datetime.date,)),
    TimeType: frozenset((datetime.time,)),
    DayTimeIntervalType: frozenset((datetime.timedelta,)),
}
_INTEGERS = frozenset((int,))
_NUMBERS = frozenset((int, float))
_NONE = type(None)


def values_to_column(values: Sequence[Any], kind: DataType) -> pa.Array:
    """What a function gave as a column; :class:`MisfitError` has the first value that is of another type.

    >>> from firesteel.table.types import DataTypes
    >>> values_to_column([1, None, True], DataTypes.BIGINT()).to_pylist()
    [1, None, 1]
    >>> try:
    ...     values_to_column([1, "a"], DataTypes.BIGINT())
    ... except MisfitError as error:
    ...     print(error.kind, error.value)
    BIGINT a
    """
    wanted = arrow_type(kind)
    found = set(map(type, values))
    if _NONE in found:
        if not kind.is_nullable:
            raise MisfitError(kind, None)
        found.discard(_NONE)
    exact = _INTEGERS if isinstance(kind, IntegralType) else _NUMBERS if isinstance(kind, FractionalType) else None
    if exact is None:
        exact = _EXACT.get(type(kind), frozenset())
    elif isinstance(kind, DecimalType):
        exact = frozenset()
    prepared: Sequence[Any] = values
    if not found <= exact:
        convert = stored_value(kind)
        prepared = [None if value is None else convert(value) for value in values]
    try:
        return pa.array(prepared, wanted)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for value, ready in zip(values, prepared, strict=True):
            try:
                pa.array([ready], wanted)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                raise MisfitError(kind, value) from None
        raise


def _checked(kind: DataType, accepted: tuple[type, ...], make: Convert | None = None) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, accepted):
            raise MisfitError(kind, value)
        try:
            return value if make is None else make(value)
        except (ValueError, TypeError, OverflowError, InvalidOperation, KeyError):
            raise MisfitError(kind, value) from None

    return convert


def stored_value(kind: DataType) -> Convert:
    """What makes of a value that a function gave the one that Arrow takes. It is not called for None."""
    if isinstance(kind, BooleanType):
        return _checked(kind, (bool, np.bool_, int), bool)
    if isinstance(kind, IntegralType):
        least, most = -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
        # As in PyFlink, the fraction of a float goes.
        return _checked(
            kind, (int, float, Decimal, np.number, np.bool_), lambda value: _within(int(value), least, most)
        )
    if isinstance(kind, YearMonthIntervalType):
        return _checked(kind, (int, np.integer), int)
    if isinstance(kind, DecimalType):
        step = Decimal(1).scaleb(-kind.scale)
        return _checked(kind, (Decimal, int), lambda value: Decimal(value).quantize(step, ROUND_HALF_EVEN, WIDE))
    if isinstance(kind, FractionalType):
        return _checked(kind, (float, int, Decimal, np.number, np.bool_), float)
    if isinstance(kind, CharType | VarCharType):
        return _checked(kind, (str,), str)
    if isinstance(kind, BinaryType | VarBinaryType):
        return _checked(kind, (bytes, bytearray, memoryview), bytes)
    if isinstance(kind, DateType):
        return _checked(kind, (datetime.date,))
    if isinstance(kind, TimeType):
        return _checked(kind, (datetime.time,))
    if isinstance(kind, TimestampType):
        return _checked(kind, (datetime.datetime,), lambda value: value.replace(tzinfo=None))
    if isinstance(kind, LocalZonedTimestampType):
        # As in PyFlink, and as elements of a program: without a zone it is a time of UTC.
        return _checked(
            kind, (datetime.datetime,), lambda value: value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        )
    if isinstance(kind, DayTimeIntervalType):
        return _checked(kind, (datetime.timedelta,))
    if isinstance(kind, ArrayType):
        inner = _or_null(kind.element_type)
        return _checked(kind, (list, tuple, np.ndarray, ListView), lambda value: [inner(each) for each in value])
    if isinstance(kind, MapType):
        key, item = _or_null(kind.key_type), _or_null(kind.value_type)
        return _checked(kind, (dict, MapView), lambda value: [(key(k), item(v)) for k, v in value.items()])
    if isinstance(kind, MultisetType):
        element = _or_null(kind.element_type)
        return _checked(kind, (dict,), lambda value: [(element(k), int(v)) for k, v in value.items()])
    if isinstance(kind, RowType):
        return _row(kind)
    return lambda value: value


def _within(value: int, least: int, most: int) -> int:
    if least <= value <= most:
        return value
    raise ValueError(value)


def _or_null(kind: DataType) -> Convert:
    convert = stored_value(kind)
    return lambda value: None if value is None else convert(value)


def _row(kind: RowType) -> Convert:
    names = kind.field_names()
    converts = [_or_null(each.data_type) for each in kind.fields]

    def convert(value: Any) -> Any:
        if isinstance(value, Row):
            fields = value.get_fields_by_names(names)
        elif isinstance(value, dict):
            fields = [value[name] for name in names]
        else:
            fields = list(value)
        if len(fields) != len(names):
            raise MisfitError(kind, value)
        return {name: make(each) for name, make, each in zip(names, converts, fields, strict=True)}

    return _checked(kind, (Row, tuple, list, dict), convert)
