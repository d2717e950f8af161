"""Types of ids and values: found in Python values or declared, and how values get into Arrow columns and out again."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import Row
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from firesteel.common import Row as FiresteelRow
from firesteel.common import TypeInformation
from firesteel.engine.savepoints.columns import column
from firesteel.errors import TypeMismatchError, short_repr

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["declared_type", "from_column", "infer", "to_column"]

_SIMPLE: dict[type, T.DataType] = {
    type(None): T.NullType(),
    bool: T.BooleanType(),
    int: T.LongType(),
    float: T.DoubleType(),
    str: T.StringType(),
    bytes: T.BinaryType(),
    decimal.Decimal: T.DecimalType(38, 18),
    datetime.date: T.DateType(),
    datetime.datetime: T.TimestampType(),
    datetime.timedelta: T.DayTimeIntervalType(),
}


def infer(values: Iterable[Any], what: str) -> T.DataType:
    """The type that all values fit into.

    >>> infer([1, 2.5, None], "values").simpleString(), infer([("a", 1)], "values").simpleString()
    ('double', 'struct<_1:string,_2:bigint>')
    >>> infer([1, "a"], "Values of vertices")
    Traceback (most recent call last):
    firesteel.errors.TypeMismatchError: Values of vertices should be of one type, got bigint and string.
    """
    return reduce(lambda left, right: _merged(left, right, what), (_type(v, what) for v in values), T.NullType())


def _type(value: Any, what: str) -> T.DataType:
    if isinstance(value, np.generic):
        value = value.item()
    found = _SIMPLE.get(type(value))
    if found is not None:
        return found
    if isinstance(value, (tuple, FiresteelRow)):
        names = _names(value)
        return T.StructType([T.StructField(n, _type(v, what)) for n, v in zip(names, value, strict=True)])
    if isinstance(value, (list, np.ndarray)):
        return T.ArrayType(infer(value, what))
    if isinstance(value, dict):
        return T.MapType(infer(value, what), infer(value.values(), what))
    raise TypeMismatchError(
        f"{what} should be numbers, text, bytes, times, or tuples, lists and dicts of these, got {short_repr(value)} "
        f"({type(value).__name__})."
    )


def _names(value: Any) -> Sequence[str]:
    names = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
    return list(names) if names else [f"_{number}" for number in range(1, len(value) + 1)]


def _merged(left: T.DataType, right: T.DataType, what: str) -> T.DataType:
    if left == right or isinstance(right, T.NullType):
        return left
    if isinstance(left, T.NullType):
        return right
    if {type(left), type(right)} == {T.LongType, T.DoubleType}:
        return T.DoubleType()
    if isinstance(left, T.ArrayType) and isinstance(right, T.ArrayType):
        return T.ArrayType(_merged(left.elementType, right.elementType, what))
    if isinstance(left, T.MapType) and isinstance(right, T.MapType):
        return T.MapType(_merged(left.keyType, right.keyType, what), _merged(left.valueType, right.valueType, what))
    if isinstance(left, T.StructType) and isinstance(right, T.StructType) and left.names == right.names:
        pairs = zip(left.fields, right.fields, strict=True)
        return T.StructType([T.StructField(a.name, _merged(a.dataType, b.dataType, what)) for a, b in pairs])
    raise TypeMismatchError(f"{what} should be of one type, got {left.simpleString()} and {right.simpleString()}.")


def declared_type(declared: Any) -> T.DataType:
    """A type as the user gives it: Spark's, its text, or one of ``Types``.

    >>> from firesteel.common import Types
    >>> declared_type(T.LongType()).simpleString(), declared_type(Types.DOUBLE()).simpleString()
    ('bigint', 'double')
    """
    if isinstance(declared, T.DataType):
        return declared
    if isinstance(declared, str):
        return T.DataType.fromDDL(declared)
    # Where only pickle would do, the column has another name.
    fields = column("value", declared).fields() if isinstance(declared, TypeInformation) else []
    if not fields or fields[0].name != "value":
        raise TypeMismatchError(
            "A type is one of Types with columns of its own, a type of Spark or its text such as 'double', got "
            f"{short_repr(declared)}."
        )
    return from_arrow_type(fields[0].type)


# Columns


def from_column(column: Any, kind: T.DataType) -> list[Any]:
    """The values of an Arrow column, as functions see them: a struct is a Row, a map a dict."""
    values: list[Any] = column.to_pylist()
    convert = _reader(kind)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _reader(kind: T.DataType) -> Callable[[Any], Any] | None:
    if isinstance(kind, T.StructType):
        row = Row(*kind.names)
        readers = [(field.name, _reader(field.dataType)) for field in kind.fields]
        return lambda value: row(*(_read(value[name], reader) for name, reader in readers))
    if isinstance(kind, T.ArrayType):
        inner = _reader(kind.elementType)
        return None if inner is None else lambda value: [_read(element, inner) for element in value]
    if isinstance(kind, T.MapType):
        of_key, of_value = _reader(kind.keyType), _reader(kind.valueType)
        return lambda value: {_read(key, of_key): _read(inner, of_value) for key, inner in value}
    return None


def _read(value: Any, reader: Callable[[Any], Any] | None) -> Any:
    return value if reader is None or value is None else reader(value)


def to_column(values: list[Any], kind: T.DataType, what: str) -> pa.Array:
    """Values as an Arrow column; ``what`` names them in the error about one that does not fit.

    >>> to_column([1, 2.5], T.LongType(), "map_vertices()")
    Traceback (most recent call last):
    firesteel.errors.TypeMismatchError: map_vertices() should give bigint, got 2.5 (float).
    """
    import pyarrow as pa

    wanted = to_arrow_type(kind)
    convert = _writer(kind)
    try:
        if convert is not None:
            return pa.array([None if value is None else convert(value) for value in values], wanted)
        return _plain(values, wanted)
    except (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError):
        pass
    for value in values:
        try:
            if convert is None:
                _plain([value], wanted)
            elif value is not None:
                pa.array([convert(value)], wanted)
        except Exception:
            raise TypeMismatchError(
                f"{what} should give {kind.simpleString()}, got {short_repr(value)} ({type(value).__name__})."
            ) from None
    raise TypeMismatchError(f"{what} should give {kind.simpleString()}.")


def _plain(values: list[Any], wanted: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_integer(wanted) or pa.types.is_floating(wanted):
        found = pa.array(values)
        # Arrow would cut a fraction off, and take True for 1.
        fits = pa.types.is_integer(found.type) or pa.types.is_null(found.type)
        if not fits and not (pa.types.is_floating(found.type) and pa.types.is_floating(wanted)):
            raise TypeError(found.type)
        return found.cast(wanted)
    return pa.array(values, wanted)


def _writer(kind: T.DataType) -> Callable[[Any], Any] | None:
    if isinstance(kind, T.StructType):
        writers = [(field.name, _writer(field.dataType)) for field in kind.fields]

        def struct(value: Any) -> Any:
            if isinstance(value, dict):
                return value
            if isinstance(value, (str, bytes)):
                raise TypeError
            return {name: _read(inner, writer) for (name, writer), inner in zip(writers, value, strict=True)}

        return struct
    if isinstance(kind, T.ArrayType):
        inner = _writer(kind.elementType)
        return None if inner is None else lambda value: [_read(element, inner) for element in value]
    if isinstance(kind, T.MapType):
        of_key, of_value = _writer(kind.keyType), _writer(kind.valueType)
        return lambda value: [(_read(key, of_key), _read(inner, of_value)) for key, inner in value.items()]
    return None
