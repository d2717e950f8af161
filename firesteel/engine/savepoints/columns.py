"""Python values as Arrow columns and back.

A value whose type is declared becomes a column of that type (a tuple or row a struct, a list a list, a dict a map).
Anything else is pickled, in a column whose name ends in ``_pickle``; a key that is not declared is shown as text, too,
so that it can be looked for. Declared values come back as Flink would deliver them.
"""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa

from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.composite import RowTypeInfo, TupleTypeInfo
from firesteel.common.type_system.containers import ListTypeInfo, MapTypeInfo, PrimitiveArrayTypeInfo
from firesteel.common.type_system.temporal import LocalTimeTypeInfo, SqlTimeTypeInfo
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.types import Row
from firesteel.durable.cells import PROTOCOL

__all__ = ["Column", "column"]

_SIMPLE = {
    BasicType.STRING: pa.string(),
    BasicType.CHAR: pa.string(),
    BasicType.BOOLEAN: pa.bool_(),
    BasicType.BYTE: pa.int8(),
    BasicType.SHORT: pa.int16(),
    BasicType.INT: pa.int32(),
    BasicType.LONG: pa.int64(),
    # Python's floats have 64 bits whatever was declared, and none is to be lost.
    BasicType.FLOAT: pa.float64(),
    BasicType.DOUBLE: pa.float64(),
    BasicType.BIG_INT: pa.string(),
    BasicType.BIG_DEC: pa.string(),
}
_TEMPORAL = {datetime.date: pa.date32(), datetime.time: pa.time64("us"), datetime.datetime: pa.timestamp("us")}

Convert = Callable[[Any], Any]


class Column(Protocol):
    """One value of a row, in one or two columns of a table."""

    def fields(self) -> list[pa.Field]:
        """What is written."""

    def arrays(self, values: list[Any]) -> list[pa.Array]:
        """Values as columns."""

    def values(self, batch: pa.RecordBatch) -> list[Any]:
        """The values again."""


def column(
    name: str,
    declared: TypeInformation | None,
    readable: bool = False,
    loads: Callable[[bytes], Any] = pickle.loads,
) -> Column:
    """How values of a type are written under a name. ``readable``: as text, too, where they must be pickled; ``loads``:
    how they are loaded then.

    >>> from firesteel.common.typeinfo import Types
    >>> [str(field.type) for field in column("value", Types.TUPLE([Types.STRING(), Types.INT()])).fields()]
    ['struct<f0: string, f1: int32>']
    >>> [field.name for field in column("key", None, readable=True).fields()]
    ['key', 'key_pickle']
    """
    arrow = None if declared is None else _arrow_type(declared)
    if declared is None or arrow is None:
        return _Pickled(name, readable, loads)
    return _Typed(name, declared, arrow)


class _Typed:
    def __init__(self, name: str, declared: TypeInformation, arrow: pa.DataType) -> None:
        self._name = name
        self._arrow = arrow
        self._canonical = declared.converter()
        self._outward, self._inward = _outward(declared), _inward(declared)

    def fields(self) -> list[pa.Field]:
        return [pa.field(self._name, self._arrow)]

    def arrays(self, values: list[Any]) -> list[pa.Array]:
        for convert in (self._canonical, self._outward):
            if convert is not None:
                values = [None if value is None else convert(value) for value in values]
        return [pa.array(values, self._arrow)]

    def values(self, batch: pa.RecordBatch) -> list[Any]:
        values: list[Any] = batch.column(self._name).to_pylist()
        convert = self._inward
        return values if convert is None else [None if value is None else convert(value) for value in values]


class _Pickled:
    def __init__(self, name: str, readable: bool, loads: Callable[[bytes], Any]) -> None:
        self._name = name
        self._readable = readable
        self._loads = loads

    def fields(self) -> list[pa.Field]:
        pickled = pa.field(f"{self._name}_pickle", pa.binary())
        return [pa.field(self._name, pa.string()), pickled] if self._readable else [pickled]

    def arrays(self, values: list[Any]) -> list[pa.Array]:
        dumps, protocol = pickle.dumps, PROTOCOL
        pickled = pa.array([dumps(value, protocol) for value in values], pa.binary())
        return [pa.array([_text(value) for value in values], pa.string()), pickled] if self._readable else [pickled]

    def values(self, batch: pa.RecordBatch) -> list[Any]:
        loads = self._loads
        return [loads(cell) for cell in batch.column(f"{self._name}_pickle").to_pylist()]


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text.encode("utf-8", "backslashreplace").decode()


def _arrow_type(declared: TypeInformation) -> pa.DataType | None:
    """The column's type; None where only pickle will do."""
    if isinstance(declared, BasicTypeInfo):
        return _SIMPLE.get(declared.kind)
    if isinstance(declared, SqlTimeTypeInfo):
        # A local time keeps a time zone where the program gave one, and Arrow would drop it.
        local = isinstance(declared, LocalTimeTypeInfo) and declared._class is not datetime.date
        return None if local else _TEMPORAL[declared._class]
    if isinstance(declared, TupleTypeInfo | RowTypeInfo):
        fields = [_arrow_type(field) for field in declared.get_field_types()]
        names = declared.get_field_names()
        return pa.struct(list(zip(names, fields, strict=True))) if fields and None not in fields else None
    if isinstance(declared, PrimitiveArrayTypeInfo) and declared.is_bytes:
        return pa.binary()
    if isinstance(declared, ListTypeInfo):
        element = _arrow_type(declared.elem_type)
        return None if element is None else pa.list_(element)
    if isinstance(declared, MapTypeInfo):
        parts = _arrow_type(declared.get_key_type_info()), _arrow_type(declared.get_value_type_info())
        # Arrow's maps have no None for a key, which a Python dict may have.
        return None if None in parts else pa.map_(*parts)
    return None


def _outward(declared: TypeInformation) -> Convert | None:
    """From a value as Flink delivers it to what Arrow takes; None where that is the same."""
    if isinstance(declared, BasicTypeInfo):
        return str if declared.kind in (BasicType.BIG_INT, BasicType.BIG_DEC) else None
    if isinstance(declared, TupleTypeInfo | RowTypeInfo):
        return _each_field([_outward(field) for field in declared.get_field_types()], tuple)
    if isinstance(declared, ListTypeInfo):
        return _each_element(_outward(declared.elem_type))
    if isinstance(declared, MapTypeInfo):
        return _each_item(_outward(declared.get_key_type_info()), _outward(declared.get_value_type_info()), list)
    return None


def _inward(declared: TypeInformation) -> Convert | None:
    """From what Arrow gives to the value; None where that is the same."""
    if isinstance(declared, BasicTypeInfo):
        return {BasicType.BIG_INT: int, BasicType.BIG_DEC: Decimal}.get(declared.kind)
    if isinstance(declared, TupleTypeInfo):
        return _from_struct([_inward(field) for field in declared.get_field_types()], tuple)
    if isinstance(declared, RowTypeInfo):
        return _from_struct([_inward(field) for field in declared.get_field_types()], _row_maker(declared))
    if isinstance(declared, ListTypeInfo):
        return _each_element(_inward(declared.elem_type))
    if isinstance(declared, MapTypeInfo):
        return _each_item(_inward(declared.get_key_type_info()), _inward(declared.get_value_type_info()), dict)
    return None


def _row_maker(declared: RowTypeInfo) -> Convert:
    names = declared.get_field_names()

    def make(values: list[Any]) -> Row:
        return Row(**dict(zip(names, values, strict=True)))

    return make


def _applied(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _each_field(converts: list[Convert | None], make: Convert) -> Convert:
    if not any(converts):
        return make
    return lambda value: make([_applied(convert, part) for convert, part in zip(converts, value, strict=True)])


def _from_struct(converts: list[Convert | None], make: Convert) -> Convert:
    if not any(converts):
        return lambda struct: make(list(struct.values()))
    return lambda struct: make(
        [_applied(convert, part) for convert, part in zip(converts, struct.values(), strict=True)]
    )


def _each_element(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda values: [_applied(convert, value) for value in values]


def _each_item(key: Convert | None, value: Convert | None, make: Convert) -> Convert:
    def convert(items: Any) -> Any:
        pairs = items.items() if isinstance(items, dict) else items
        return make((_applied(key, k), _applied(value, v)) for k, v in pairs)

    return convert
