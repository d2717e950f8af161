"""Rows and types in the JSON of Flink's SQL gateway."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from firesteel.common.types import RowKind
from firesteel.runtime.columns.kinds import data_of, kinds_of
from firesteel.table.table_result import TableResult
from firesteel.table.types import data_types as types
from firesteel.table.types.data_types import DataType, RowType

__all__ = ["columns_of", "listed_rows", "rows_of"]

PLAIN_TEXT = "PLAIN_TEXT"
_KINDS = tuple(RowKind)
_ROOTS: tuple[tuple[type[DataType], str, tuple[str, ...]], ...] = (
    (types.NullType, "NULL", ()),
    (types.BooleanType, "BOOLEAN", ()),
    (types.TinyIntType, "TINYINT", ()),
    (types.SmallIntType, "SMALLINT", ()),
    (types.IntType, "INTEGER", ()),
    (types.BigIntType, "BIGINT", ()),
    (types.FloatType, "FLOAT", ()),
    (types.DoubleType, "DOUBLE", ()),
    (types.DateType, "DATE", ()),
    (types.DecimalType, "DECIMAL", ("precision", "scale")),
    (types.CharType, "CHAR", ("length",)),
    (types.VarCharType, "VARCHAR", ("length",)),
    (types.BinaryType, "BINARY", ("length",)),
    (types.VarBinaryType, "VARBINARY", ("length",)),
    (types.TimeType, "TIME_WITHOUT_TIME_ZONE", ("precision",)),
    (types.LocalZonedTimestampType, "TIMESTAMP_WITH_LOCAL_TIME_ZONE", ("precision",)),
    (types.TimestampType, "TIMESTAMP_WITHOUT_TIME_ZONE", ("precision",)),
)


def columns_of(row_type: RowType) -> list[dict[str, Any]]:
    """
    >>> from firesteel.table.types import DataTypes
    >>> columns_of(DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())]))
    [{'name': 'n', 'logicalType': {'type': 'BIGINT', 'nullable': True}, 'comment': None}]
    """
    return [
        {"name": field.name, "logicalType": _logical(field.data_type), "comment": field.description}
        for field in row_type.fields
    ]


def _logical(kind: DataType) -> dict[str, Any]:
    known: dict[str, Any] = {"nullable": kind.is_nullable}
    for one, root, fields in _ROOTS:
        if isinstance(kind, one):
            return {"type": root, **known, **{name: getattr(kind, name) for name in fields}}
    if isinstance(kind, types.YearMonthIntervalType):
        resolution = kind.resolution.replace(" ", "_")
        return {"type": "INTERVAL_YEAR_MONTH", **known, "precision": kind.precision, "resolution": resolution}
    if isinstance(kind, types.DayTimeIntervalType):
        parts = {"precision": kind.day_precision, "fractionalPrecision": kind.fractional_precision}
        return {"type": "INTERVAL_DAY_TIME", **known, **parts, "resolution": kind.resolution.replace(" ", "_")}
    if isinstance(kind, types.ArrayType | types.MultisetType):
        root = "ARRAY" if isinstance(kind, types.ArrayType) else "MULTISET"
        return {"type": root, **known, "elementType": _logical(kind.element_type)}
    if isinstance(kind, types.MapType):
        return {"type": "MAP", **known, "keyType": _logical(kind.key_type), "valueType": _logical(kind.value_type)}
    if isinstance(kind, RowType):
        fields_ = [{"name": field.name, "fieldType": _logical(field.data_type)} for field in kind.fields]
        return {"type": "ROW", **known, "fields": fields_}
    # What has no name there travels as text.
    return {"type": "VARCHAR", **known, "length": types.MAX_LENGTH}


def rows_of(result: TableResult, batch: pa.RecordBatch, row_format: str) -> list[dict[str, Any]]:
    """The rows of a batch with their kinds: texts as they are printed, or JSON values."""
    rows = result.written(batch) if row_format == PLAIN_TEXT else _json_rows(batch)
    return [{"kind": kind.name, "fields": fields} for kind, fields in rows]


def _json_rows(batch: pa.RecordBatch) -> Iterator[tuple[RowKind, list[Any]]]:
    data, kinds = data_of(batch), kinds_of(batch)
    columns = [column.to_pylist() for column in data.columns]
    for index, row in enumerate(zip(*columns, strict=True)):
        yield _KINDS[0 if kinds is None else kinds[index]], [_json(value) for value in row]


def listed_rows(result: TableResult, row_format: str) -> list[dict[str, Any]]:
    """The rows of a statement that is no query. What a table does not have, such as a key, is shown as nothing."""
    write = _text if row_format == PLAIN_TEXT else _json
    rows = [["" if value is None else write(value) for value in row] for row in result.rows]
    return [{"kind": "INSERT", "fields": fields} for fields in rows]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).upper() if isinstance(value, bool) else str(value)


def _json(value: Any) -> Any:
    """
    >>> from decimal import Decimal
    >>> _json([datetime.datetime(2026, 1, 2, 3), Decimal("1.50"), {"a": b"x"}, float("nan")])
    ['2026-01-02T03:00:00', '1.50', {'a': 'eA=='}, 'NaN']
    >>> _json(datetime.timedelta(days=-1, milliseconds=1))
    -86399999
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        # JSON has no other numbers.
        return value if value - value == 0 else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if isinstance(value, datetime.datetime):
        return value.isoformat() if value.tzinfo is None else f"{value.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        # An interval in milliseconds; one of months is a number already.
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(key): _json(one) for key, one in value.items()}
    if isinstance(value, list):
        # A map of Arrow's is a list of pairs.
        if value and all(isinstance(one, tuple) and len(one) == 2 for one in value):
            return {str(key): _json(one) for key, one in value}
        return [_json(one) for one in value]
    # Decimals, too: a number of JSON would lose digits.
    return str(value)
