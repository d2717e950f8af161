"""Declared types as those of Arrow."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import ProgramError, short_repr

__all__ = ["arrow_schema"]


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
    if hasattr(declared, "get_key_type_info") and hasattr(declared, "get_value_type_info"):
        return pyarrow.map_(_arrow_type(declared.get_key_type_info()), _arrow_type(declared.get_value_type_info()))
    raise ProgramError(f"There is no type of Arrow for {declared!r}. Map the field to another type first.")
