"""Types of Arrow as declared types: what rows of a DataFrame are made of."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types
from firesteel.errors import InputError

__all__ = ["row_type_of", "row_type_of_frame"]


def row_type_of(schema: Any, moments: frozenset[str] = frozenset()) -> RowTypeInfo:
    """The type of the rows of a ``pyarrow.Schema``. ``moments`` are columns of timestamps that are moments, although
    their type does not say so.

    >>> import pyarrow as pa
    >>> row_type_of(pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))]))
    ROW<id LONG, tags LIST<STRING>>
    """
    types = [Types.INSTANT() if field.name in moments else _declared(field.type, field.name) for field in schema]
    return Types.ROW_NAMED(list(schema.names), types)


def row_type_of_frame(frame: Any) -> RowTypeInfo:
    """The type of the rows of a DataFrame."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return row_type_of(to_arrow_schema(frame.schema, timezone="UTC"))


def _declared(kind: Any, name: str) -> TypeInformation:
    import pyarrow as pa

    kinds = pa.types
    simple: list[tuple[Any, TypeInformation]] = [
        (kinds.is_string, Types.STRING()),
        (kinds.is_large_string, Types.STRING()),
        (kinds.is_boolean, Types.BOOLEAN()),
        (kinds.is_int8, Types.BYTE()),
        (kinds.is_int16, Types.SHORT()),
        (kinds.is_int32, Types.INT()),
        (kinds.is_int64, Types.LONG()),
        (kinds.is_float32, Types.FLOAT()),
        (kinds.is_float64, Types.DOUBLE()),
        (kinds.is_decimal, Types.BIG_DEC()),
        (kinds.is_date32, Types.SQL_DATE()),
        (kinds.is_time, Types.SQL_TIME()),
        (kinds.is_binary, Types.PRIMITIVE_ARRAY(Types.BYTE())),
        (kinds.is_large_binary, Types.PRIMITIVE_ARRAY(Types.BYTE())),
    ]
    for matches, declared in simple:
        if matches(kind):
            return declared
    if kinds.is_timestamp(kind):
        # Spark's TIMESTAMP is a moment, its TIMESTAMP_NTZ a time on the wall.
        return Types.SQL_TIMESTAMP() if kind.tz is None else Types.INSTANT()
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return Types.LIST(_declared(kind.value_type, name))
    if kinds.is_map(kind):
        return Types.MAP(_declared(kind.key_type, name), _declared(kind.item_type, name))
    if kinds.is_struct(kind):
        return Types.ROW_NAMED([f.name for f in kind], [_declared(f.type, f"{name}.{f.name}") for f in kind])
    raise InputError(
        f"Column {name!r} is of the type {kind}, for which rows have none. Cast it in the DataFrame first."
    )
