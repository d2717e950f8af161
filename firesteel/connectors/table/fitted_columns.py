"""Columns of a file as those of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa

from firesteel.errors import InputError

__all__ = ["asked_columns", "fitted_columns"]


def asked_columns(schema: pa.Schema, asked: Collection[str] | None) -> list[str]:
    """The columns that are to be read: one at least."""
    names: list[str] = schema.names
    return names if asked is None else [name for name in names if name in asked] or names[:1]


def fitted_columns(
    batch: pa.RecordBatch, schema: pa.Schema, path: str, changed: Callable[[pa.Array], pa.Array] | None = None
) -> pa.RecordBatch:
    """Found by their names, in the table's types, and ``changed``. What is not there is NULL."""
    arrays = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(index)
        try:
            converted = _converted(column, field.type)
            arrays.append(converted if changed is None else changed(converted))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"{path}: the column {field.name!r} is of the type {column.type} and cannot be read as "
                f"{field.type}: {str(error).splitlines()[0]}"
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _converted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    there = column.type
    if there == kind:
        return column
    if pa.types.is_timestamp(there) and pa.types.is_timestamp(kind):
        if (there.tz is None) != (kind.tz is None):
            column = column.cast(pa.int64()).cast(pa.timestamp(there.unit, kind.tz))
        # More digits than the type has are cut off.
        return column.cast(kind, safe=False)
    if pa.types.is_nested(kind):
        # What is nested may hold timestamps of another unit.
        return column.cast(kind, safe=False)
    return column.cast(kind)
