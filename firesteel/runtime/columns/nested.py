"""Columns of arrays, maps and rows. Arrow neither compares nor numbers their values, so that is done value by value.
And it has dicts for rows and pairs for maps, where programs have :class:`~firesteel.common.types.Row` and dicts."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.common.time import Instant
from firesteel.common.type_system.keys import NAN, as_key, plain
from firesteel.common.types import Row, make_row

__all__ = [
    "arrow_column",
    "encode_nested",
    "for_arrow",
    "for_programs",
    "from_keys",
    "from_plain",
    "is_nested",
    "keys_of",
    "plain",
]

NAN_KEY = "NaN"
"""Stands for a NaN that is a key of its own. It has the hash that :mod:`.routing` gives to NaN."""

Convert = Callable[[Any], Any]


def is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def from_plain(value: Any, kind: pa.DataType) -> Any:
    """The value that :func:`plain` was given; one as Arrow gives it stays as it is.

    >>> kind = pa.struct({"a": pa.list_(pa.float64()), "b": pa.map_(pa.string(), pa.int32())})
    >>> from_plain(plain({"a": [1.5, float("nan")], "b": [("k", None)]}), kind)
    {'a': [1.5, nan], 'b': [('k', None)]}
    """
    if value is None:
        return None
    if pa.types.is_struct(kind):
        parts = value.values() if isinstance(value, dict) else value
        return {field.name: from_plain(part, field.type) for field, part in zip(kind, parts, strict=True)}
    if pa.types.is_map(kind):
        return [(from_plain(key, kind.key_type), from_plain(item, kind.item_type)) for key, item in value]
    if is_nested(kind):
        return [from_plain(part, kind.value_type) for part in value]
    return float("nan") if value == NAN else value


def keys_of(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Values as Arrow gives them, as keys of a dict that are found again when they were written and read.

    >>> keys_of([1.5, float("nan"), None], pa.float64())
    [1.5, 'NaN', None]
    """
    if is_nested(kind):
        return list(map(plain, values))
    if pa.types.is_floating(kind):
        return [NAN_KEY if value != value else value for value in values]
    return values


def from_keys(values: list[Any], kind: pa.DataType) -> list[Any]:
    """The values that :func:`keys_of` was given."""
    if is_nested(kind):
        return [from_plain(value, kind) for value in values]
    if pa.types.is_floating(kind):
        return [float("nan") if value == NAN_KEY else value for value in values]
    return values


def encode_nested(column: pa.Array) -> pa.DictionaryArray:
    """As Arrow's own dictionaries, NULL being one of the values.

    >>> found = encode_nested(pa.array([[1, 2], None, [1, 2], []]))
    >>> found.indices.to_pylist(), found.dictionary.to_pylist()
    ([0, 1, 0, 2], [[1, 2], None, []])
    """
    numbers: dict[Any, int] = {}
    firsts: list[int] = []
    codes = np.empty(len(column), np.int32)
    for at, value in enumerate(map(plain, column.to_pylist())):
        number = numbers.setdefault(value, len(firsts))
        if number == len(firsts):
            firsts.append(at)
        codes[at] = number
    return pa.DictionaryArray.from_arrays(pa.array(codes), column.take(pa.array(firsts, pa.int64())))


@cache
def for_programs(kind: pa.DataType) -> Convert | None:
    """What makes of a value as Arrow gives it one as programs have it; None where they are the same.

    >>> kind = pa.struct({"a": pa.int32(), "b": pa.list_(pa.map_(pa.string(), pa.int32()))})
    >>> for_programs(kind)({"a": 1, "b": [[("k", 2)], None]})
    Row(a=1, b=[{'k': 2}, None])
    >>> moment = pa.scalar(1500, pa.timestamp("ms", "UTC"))
    >>> for_programs(moment.type)(moment.as_py())
    Instant<1, 500000000>
    """
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            return _instant
        # Nanoseconds come as timestamps of pandas.
        return (lambda value: value.to_pydatetime(warn=False)) if kind.unit == "ns" else None
    if pa.types.is_struct(kind):
        names = tuple(field.name for field in kind)
        parts = [_unless_none(for_programs(field.type)) for field in kind]
        return lambda value: make_row(names, [one(value[name]) for name, one in zip(names, parts, strict=True)])
    if pa.types.is_map(kind):
        key, item = _unless_none(for_programs(kind.key_type)), _unless_none(for_programs(kind.item_type))
        if is_nested(kind.key_type):
            return lambda value: {as_key(key(one)): item(other) for one, other in value}
        return lambda value: {key(one): item(other) for one, other in value}
    return _for_lists(kind, for_programs)


def arrow_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of values as programs have them.

    >>> arrow_column([Row(1, {"k": 2}), None], pa.struct({"a": pa.int32(), "b": pa.map_(pa.string(), pa.int32())}))[0]
    <pyarrow.StructScalar: [('a', 1), ('b', [('k', 2)])]>
    """
    convert = for_arrow(kind)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    return pa.array(values, kind)


@cache
def for_arrow(kind: pa.DataType) -> Convert | None:
    """The other way round. What does not fit is left to Arrow, which says so.

    >>> for_arrow(pa.struct({"a": pa.int32(), "b": pa.map_(pa.string(), pa.int32())}))(Row(b={"k": 2}, a=1))
    {'a': 1, 'b': [('k', 2)]}
    >>> for_arrow(pa.timestamp("us", "UTC"))(Instant(1, 500_000))
    1000500
    """
    if pa.types.is_timestamp(kind):
        nanos = NANOS[kind.unit]
        return lambda value: _moment(value, nanos) if isinstance(value, Instant) else value
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        return _StructForArrow(names, [_unless_none(for_arrow(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return _MapForArrow(_unless_none(for_arrow(kind.key_type)), _unless_none(for_arrow(kind.item_type)))
    return _for_lists(kind, for_arrow)


NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND = datetime.timedelta(seconds=1)


def _instant(value: Any) -> Instant:
    """Of a datetime with a zone; those of pandas have nanoseconds, too."""
    if hasattr(value, "nanosecond"):
        return Instant(*divmod(value.value, 10**9))
    seconds, rest = divmod(value - _EPOCH, _SECOND)
    return Instant(seconds, rest.microseconds * 1000)


def _moment(value: Instant, nanos: int) -> int:
    """In Arrow's unit, rounded down."""
    return (value.seconds * 10**9 + value.nanos) // nanos


class _StructForArrow:
    def __init__(self, names: list[str], parts: list[Convert]) -> None:
        self._names, self._parts = names, parts

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Row) and value._fields is not None and set(value._fields) >= set(self._names):
            fields = value.get_fields_by_names(self._names)
        elif isinstance(value, Row | tuple | list) and len(value) == len(self._names):
            fields = list(value)
        elif isinstance(value, Mapping):
            fields = [value.get(name) for name in self._names]
        else:
            return value
        triples = zip(self._names, self._parts, fields, strict=True)
        return {name: part(field) for name, part, field in triples}


class _MapForArrow:
    """Of a dict, or of pairs as Arrow has them."""

    def __init__(self, key: Convert, item: Convert) -> None:
        self._key, self._item = key, item

    def __call__(self, value: Any) -> Any:
        pairs = list(value.items()) if isinstance(value, Mapping) else value
        if not isinstance(pairs, list | tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            return value
        return [(self._key(key), self._item(item)) for key, item in pairs]


def _for_lists(kind: pa.DataType, convert: Callable[[pa.DataType], Convert | None]) -> Convert | None:
    if not pa.types.is_list(kind) and not pa.types.is_large_list(kind):
        return None
    inner = convert(kind.value_type)
    if inner is None:
        return None
    each = _unless_none(inner)
    return lambda value: [each(one) for one in value] if _is_sequence(value) else value


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _unless_none(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)
