"""Declared types as those of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.types import Row
from firesteel.errors import ProgramError, short_repr

__all__ = ["arrow_converter", "arrow_schema"]


def arrow_schema(row_type: Any) -> Any:
    """The ``pyarrow.Schema`` of a row or tuple type; a schema stays as it is.

    >>> from firesteel.common import Types
    >>> arrow_schema(Types.ROW_NAMED(["name", "count"], [Types.STRING(), Types.LONG()]))
    name: string
    count: int64
    """
    import pyarrow

    if isinstance(row_type, pyarrow.Schema):
        return row_type
    names = getattr(row_type, "get_field_names", lambda: None)()
    if names is None:
        raise ProgramError(
            "The columns of a file come from Types.ROW_NAMED(…), Types.TUPLE(…) or a pyarrow.Schema, got "
            f"{short_repr(row_type, 80)}."
        )
    return pyarrow.schema(list(zip(names, map(_arrow_type, row_type.get_field_types()), strict=True)))


def arrow_converter(arrow_type: Any) -> Callable[[Any], Any] | None:
    """What turns a value into one that Arrow takes for this type; None where it takes all of them as they are.

    >>> import pyarrow
    >>> arrow_converter(pyarrow.timestamp("us", "UTC"))(Instant(1, 500_000))
    1000500
    """
    import pyarrow

    kinds = pyarrow.types
    convert: Callable[[Any], Any] | None = None
    if kinds.is_timestamp(arrow_type):
        convert = partial(_moment, _NANOS[arrow_type.unit])
    elif kinds.is_struct(arrow_type):
        names = [field.name for field in arrow_type]
        convert = partial(_struct, names, [arrow_converter(field.type) for field in arrow_type])
    elif kinds.is_list(arrow_type) or kinds.is_large_list(arrow_type):
        inner = arrow_converter(arrow_type.value_type)
        convert = None if inner is None else lambda values: [inner(value) for value in values]
    elif kinds.is_map(arrow_type):
        key, item = arrow_converter(arrow_type.key_type), arrow_converter(arrow_type.item_type)
        if key is not None or item is not None:
            convert = partial(_entries, key or _same, item or _same)
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def _same(value: Any) -> Any:
    return value


def _moment(nanos: int, value: Any) -> Any:
    """An Instant in Arrow's unit, rounded down."""
    return (value.seconds * 10**9 + value.nanos) // nanos if isinstance(value, Instant) else value


def _struct(names: list[str], converters: list[Callable[[Any], Any] | None], value: Any) -> Any:
    if isinstance(value, Row) and value._fields is not None:
        value = dict(zip(names, value.get_fields_by_names(names), strict=True))
    elif isinstance(value, Row | tuple | list):
        value = dict(zip(names, value, strict=True))
    if not isinstance(value, Mapping):
        return value
    pairs = zip(names, converters, strict=True)
    return {name: value.get(name) if convert is None else convert(value.get(name)) for name, convert in pairs}


def _entries(key: Callable[[Any], Any], item: Callable[[Any], Any], value: Any) -> Any:
    pairs = value.items() if isinstance(value, Mapping) else value
    return [(key(one), item(other)) for one, other in pairs]


def _arrow_type(declared: TypeInformation) -> Any:
    import pyarrow

    simple = {
        "STRING": pyarrow.string(),
        "CHAR": pyarrow.string(),
        "BOOLEAN": pyarrow.bool_(),
        "BYTE": pyarrow.int8(),
        "SHORT": pyarrow.int16(),
        "INT": pyarrow.int32(),
        "LONG": pyarrow.int64(),
        "FLOAT": pyarrow.float32(),
        "DOUBLE": pyarrow.float64(),
        "BIG_DEC": pyarrow.decimal128(38, 18),
        "INSTANT": pyarrow.timestamp("us", "UTC"),
        "SQL_DATE": pyarrow.date32(),
        "SQL_TIME": pyarrow.time64("us"),
        "SQL_TIMESTAMP": pyarrow.timestamp("us"),
        "PRIMITIVE_ARRAY<BYTE>": pyarrow.binary(),
    }
    name = repr(declared)
    if name in simple:
        return simple[name]
    if hasattr(declared, "get_field_names"):
        return pyarrow.struct(arrow_schema(declared))
    if hasattr(declared, "elem_type"):
        return pyarrow.list_(_arrow_type(declared.elem_type))
    if hasattr(declared, "_key_type_info") and hasattr(declared, "_value_type_info"):
        return pyarrow.map_(_arrow_type(declared._key_type_info), _arrow_type(declared._value_type_info))
    raise ProgramError(f"There is no type of Arrow for {declared!r}. Map the field to another type first.")
