"""Declared types as plain data, so that a manifest can be read without Firesteel and state without the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.composite import RowTypeInfo, TupleTypeInfo
from firesteel.common.type_system.containers import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from firesteel.common.type_system.temporal import LocalTimeTypeInfo, SqlTimeTypeInfo
from firesteel.common.typeinfo import TypeInformation, Types

__all__ = ["type_from_json", "type_to_json"]

_LISTS: dict[str, Callable[[TypeInformation], TypeInformation]] = {
    "LIST": Types.LIST,
    "PRIMITIVE_ARRAY": Types.PRIMITIVE_ARRAY,
    "BASIC_ARRAY": Types.BASIC_ARRAY,
    "OBJECT_ARRAY": Types.OBJECT_ARRAY,
}
_LIST_NAMES = {
    ListTypeInfo: "LIST",
    PrimitiveArrayTypeInfo: "PRIMITIVE_ARRAY",
    BasicArrayTypeInfo: "BASIC_ARRAY",
    ObjectArrayTypeInfo: "OBJECT_ARRAY",
}
_TIMES = {"SQL_DATE": Types.SQL_DATE, "SQL_TIME": Types.SQL_TIME, "SQL_TIMESTAMP": Types.SQL_TIMESTAMP}


def type_to_json(declared: TypeInformation) -> Any:
    """
    >>> type_to_json(Types.TUPLE([Types.STRING(), Types.LIST(Types.LONG())]))
    {'tuple': ['STRING', {'LIST': 'LONG'}]}
    """
    if isinstance(declared, BasicTypeInfo):
        return declared.kind.name
    if isinstance(declared, TupleTypeInfo):
        return {"tuple": [type_to_json(field) for field in declared.get_field_types()]}
    if isinstance(declared, RowTypeInfo):
        fields = [type_to_json(field) for field in declared.get_field_types()]
        return {"row": fields, "names": declared.get_field_names() if declared._named else None}
    if isinstance(declared, ListTypeInfo):
        return {_LIST_NAMES[type(declared)]: type_to_json(declared.elem_type)}
    if isinstance(declared, MapTypeInfo):
        return {"map": [type_to_json(declared.get_key_type_info()), type_to_json(declared.get_value_type_info())]}
    if isinstance(declared, SqlTimeTypeInfo):
        return declared._name
    return "PICKLED"


def type_from_json(value: Any) -> TypeInformation:
    """
    >>> type_from_json({"tuple": ["STRING", {"LIST": "LONG"}]})
    TUPLE<STRING, LIST<LONG>>
    """
    if isinstance(value, str):
        if value in _TIMES:
            return _TIMES[value]()
        if value == "INSTANT":
            return Types.INSTANT()
        if value in BasicType.__members__:
            return BasicTypeInfo.of(BasicType[value])
        if value in LocalTimeTypeInfo.TimeType.__members__:
            return LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType[value])
        return Types.PICKLED_BYTE_ARRAY()
    if "tuple" in value:
        return Types.TUPLE([type_from_json(field) for field in value["tuple"]])
    if "row" in value:
        fields = [type_from_json(field) for field in value["row"]]
        return Types.ROW(fields) if value["names"] is None else Types.ROW_NAMED(value["names"], fields)
    if "map" in value:
        return Types.MAP(*[type_from_json(part) for part in value["map"]])
    ((name, element),) = value.items()
    return _LISTS[name](type_from_json(element))
