"""Columns on their way between Spark and functions of ours: the same values in each side's Arrow form.

Spark has no counterpart for some types. There columns are whole numbers: times of day are milliseconds, intervals are
milliseconds or months, and timestamps with more than six digits of a second are nanoseconds. Order and equality of
the numbers are those of the values.
"""

from __future__ import annotations

import functools

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
)

__all__ = ["from_spark", "is_number_in_spark", "spark_layout", "to_spark"]

_LONG_AGO = pa.timestamp("us")


def is_number_in_spark(kind: DataType) -> bool:
    """Whether values are kept as whole numbers.

    >>> is_number_in_spark(TimestampType(9)), is_number_in_spark(TimestampType(3))
    (True, False)
    """
    if isinstance(kind, TimestampType | LocalZonedTimestampType):
        return kind.precision > 6
    return isinstance(kind, TimeType | DayTimeIntervalType)


@functools.lru_cache(maxsize=1024)
def spark_layout(kind: DataType) -> pa.DataType:
    """The Arrow type that Spark has for a column of ours.

    >>> spark_layout(TimestampType(3)), spark_layout(TimeType(0))
    (TimestampType(timestamp[us]), DataType(int32))
    """
    if isinstance(kind, TimeType):
        return pa.int32()
    if is_number_in_spark(kind):
        return pa.int64()
    if isinstance(kind, TimestampType):
        return pa.timestamp("us")
    if isinstance(kind, LocalZonedTimestampType):
        return pa.timestamp("us", "UTC")
    if isinstance(kind, ArrayType):
        return pa.list_(spark_layout(kind.element_type))
    if isinstance(kind, MultisetType):
        return pa.map_(spark_layout(kind.element_type), pa.int32())
    if isinstance(kind, MapType):
        return pa.map_(spark_layout(kind.key_type), spark_layout(kind.value_type))
    if isinstance(kind, RowType):
        return pa.struct([pa.field(each.name, spark_layout(each.data_type)) for each in kind.fields])
    return arrow_type(kind)


def to_spark(column: pa.Array, kind: DataType) -> pa.Array:
    """A column of ours as Spark wants it."""
    return _as(column, spark_layout(kind))


def from_spark(column: pa.Array, kind: DataType) -> pa.Array:
    """A column of Spark as ours.

    >>> from_spark(pa.array([61_000], pa.int32()), TimeType(0)).to_pylist()
    [datetime.time(0, 1, 1)]
    """
    return _as(column, arrow_type(kind))


def _as(column: pa.Array, target: pa.DataType) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if kind == target:
        return column
    if pa.types.is_null(kind):
        return pa.nulls(len(column), target)
    if pa.types.is_struct(target):
        # Fields belong together by their places.
        fields = [_as(pc.struct_field(column, [index]), field.type) for index, field in enumerate(target)]
        mask = pc.is_null(column)
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=mask)
    if pa.types.is_map(target):
        return _map(column, target)
    if pa.types.is_list(target):
        return _list(column, target)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(target):
        # The same moment in another unit; the zone of Spark's columns is a matter of display.
        return column.cast(pa.timestamp(target.unit, kind.tz), safe=False).cast(target, safe=False)
    if pa.types.is_integer(kind) and pa.types.is_temporal(target):
        return column.view(target)
    if pa.types.is_temporal(kind) and pa.types.is_integer(target):
        return column.view(target) if kind.bit_width == target.bit_width else column.cast(target)
    return column.cast(target, safe=False)


def _plain(column: pa.Array) -> pa.Array:
    """Without an offset into larger buffers."""
    return pa.concat_arrays([column]) if column.offset == 0 else column.take(pa.array(range(len(column)), pa.int64()))


def _list(column: pa.Array, target: pa.DataType) -> pa.Array:
    column = _plain(column)
    values = _as(column.flatten() if column.null_count == 0 else column.values, target.value_type)
    if column.null_count == 0:
        offsets = pc.subtract(column.offsets, column.offsets[0]) if len(column) else column.offsets
        return pa.ListArray.from_arrays(offsets.cast(pa.int32()), values, type=target)
    return pa.ListArray.from_arrays(column.offsets.cast(pa.int32()), values, type=target, mask=pc.is_null(column))


def _map(column: pa.Array, target: pa.DataType) -> pa.Array:
    column = _plain(column)
    keys, items = _as(column.keys, target.key_type), _as(column.items, target.item_type)
    if column.null_count == 0:
        return pa.MapArray.from_arrays(column.offsets, keys, items, type=target)
    return pa.MapArray.from_arrays(column.offsets, keys, items, type=target, mask=pc.is_null(column))
