"""Between the types of streams and those of tables."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.errors import ProgramError
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    BigIntType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarCharType,
)

__all__ = ["row_type_of_stream", "stream_type"]

_BASIC: dict[str, DataType] = {
    "STRING": VarCharType(MAX_LENGTH),
    "BYTE": TinyIntType(),
    "SHORT": SmallIntType(),
    "INT": IntType(),
    "LONG": BigIntType(),
    "BOOLEAN": BooleanType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "BIG_DEC": DecimalType(38, 18),
    "SQL_DATE": DateType(),
    "SQL_TIME": TimeType(0),
    "SQL_TIMESTAMP": TimestampType(9),
    "INSTANT": LocalZonedTimestampType(9),
}
_BACK: dict[type[DataType], TypeInformation] = {
    VarCharType: Types.STRING(),
    CharType: Types.STRING(),
    TinyIntType: Types.BYTE(),
    SmallIntType: Types.SHORT(),
    IntType: Types.INT(),
    BigIntType: Types.LONG(),
    BooleanType: Types.BOOLEAN(),
    FloatType: Types.FLOAT(),
    DoubleType: Types.DOUBLE(),
    DecimalType: Types.BIG_DEC(),
    DateType: Types.SQL_DATE(),
    TimeType: Types.SQL_TIME(),
    TimestampType: Types.SQL_TIMESTAMP(),
    LocalZonedTimestampType: Types.INSTANT(),
}


def _logical(kind: Any, name: str = "f0") -> DataType:
    """The type of a field.

    >>> str(_logical(Types.LIST(Types.INT())))
    'ARRAY<INT>'
    """
    known = _BASIC.get(repr(kind))
    if known is not None:
        return known
    if hasattr(kind, "get_field_types"):
        return _row(kind)
    if hasattr(kind, "elem_type"):
        return ArrayType(_logical(kind.elem_type, name))
    if hasattr(kind, "get_key_type_info"):
        return MapType(_logical(kind.get_key_type_info(), name), _logical(kind.get_value_type_info(), name))
    raise ProgramError(
        f"Field {name!r} of the stream's records is {kind}, which is no type of tables. Declare another where "
        "the stream is made: map(..., output_type=Types.ROW_NAMED(names, types))."
    )


def _row(kind: Any) -> RowType:
    names, types = kind.get_field_names(), kind.get_field_types()
    return RowType(tuple(RowField(name, _logical(each, name)) for name, each in zip(names, types, strict=True)))


def row_type_of_stream(kind: TypeInformation | None) -> tuple[RowType, bool]:
    """The columns of a stream's records, and whether each record is a row of several."""
    if kind is None or repr(kind).startswith("PICKLED"):
        raise ProgramError(
            "from_data_stream() needs a stream of a declared type: map(..., output_type=Types.ROW_NAMED(names, types))."
        )
    if hasattr(kind, "get_field_types"):
        return _row(kind), True
    return RowType((RowField("f0", _logical(kind)),)), False


def stream_type(row_type: RowType) -> TypeInformation | None:
    """The type of a stream of a table's rows; None where a column has no counterpart: then nothing is declared."""
    fields = [_BACK.get(type(kind)) for kind in row_type.field_types()]
    if any(field is None for field in fields):
        return None
    return Types.ROW_NAMED(row_type.field_names(), [field for field in fields if field is not None])
