"""The connector ``jdbc``: tables of PostgreSQL, MySQL, MariaDB and SQLite."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types
from firesteel.connectors.jdbc.dialect import Dialect, dialect_of
from firesteel.connectors.table.expanding import ExpandingSink
from firesteel.connectors.table.jdbc_batches import UpsertBatchSink, rows_as_tuples
from firesteel.connectors.table.jdbc_lookup import JdbcLookupTable
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from firesteel.datastream.connectors.jdbc_source import JdbcSource
from firesteel.datastream.data_stream import DataStream
from firesteel.errors import ProgramError
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import RowsToColumns
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.physical.external.connector import Changes, Connector, Reading, Writing
from firesteel.table.physical.lookups import register_lookup
from firesteel.table.physical.options import TableOptions
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import (
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)

__all__ = ["JDBC", "connection_of", "jdbc_type"]

_OPTIONS = (
    "url",
    "table-name",
    "driver",
    "username",
    "password",
    "connection.max-retry-timeout",
    "scan.partition.column",
    "scan.partition.num",
    "scan.partition.lower-bound",
    "scan.partition.upper-bound",
    "scan.fetch-size",
    "scan.auto-commit",
    "lookup.cache",
    "lookup.cache.max-rows",
    "lookup.cache.ttl",
    "lookup.cache.caching-missing-key",
    "lookup.max-retries",
    "lookup.partial-cache.max-rows",
    "lookup.partial-cache.expire-after-write",
    "lookup.partial-cache.expire-after-access",
    "lookup.partial-cache.cache-missing-key",
    "sink.buffer-flush.max-rows",
    "sink.buffer-flush.interval",
    "sink.max-retries",
    "sink.parallelism",
)
_TYPES: dict[type[DataType], TypeInformation] = {
    BooleanType: Types.BOOLEAN(),
    TinyIntType: Types.BYTE(),
    SmallIntType: Types.SHORT(),
    IntType: Types.INT(),
    BigIntType: Types.LONG(),
    FloatType: Types.FLOAT(),
    DoubleType: Types.DOUBLE(),
    DecimalType: Types.BIG_DEC(),
    CharType: Types.STRING(),
    VarCharType: Types.STRING(),
    DateType: Types.SQL_DATE(),
    TimeType: Types.SQL_TIME(),
    TimestampType: Types.SQL_TIMESTAMP(),
    LocalZonedTimestampType: Types.SQL_TIMESTAMP(),
    BinaryType: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    VarBinaryType: Types.PRIMITIVE_ARRAY(Types.BYTE()),
}


def jdbc_type(row: RowType, path: str) -> RowTypeInfo:
    """The columns as drivers give them."""
    for name, kind in zip(row.field_names(), row.field_types(), strict=True):
        if type(kind) not in _TYPES:
            raise SqlValidationError(f"Table {path}: connector 'jdbc' has nothing for column {name} of type {kind}.")
    found: Any = Types.ROW_NAMED(row.field_names(), [_TYPES[type(kind)] for kind in row.field_types()])
    return found  # type: ignore[no-any-return]


def connection_of(options: TableOptions) -> JdbcConnectionOptions:
    """Where the database is."""
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(options.required("url"))
    user, password = options.text("username"), options.text("password")
    if user is not None:
        builder.with_user_name(user)
    if password is not None:
        builder.with_password(password)
    try:
        return builder.build()
    except ProgramError as error:
        raise SqlValidationError(f"Table {options.path}: {error}") from None


def _read(reading: Reading) -> DataStream:
    options = reading.options
    reading.metadata({})
    connection, table = connection_of(options), options.required("table-name")
    row = jdbc_type(reading.table.physical, options.path)
    source = _partitioned(options, connection, table, row) or JdbcSource.table(table, row, connection)
    rows = reading.stream(source, _no_watermarks())
    schema = reading.schema
    batches = rows.transform("RowsToColumns", RowsToColumns(schema), ColumnsType(schema))
    return batches.assign_timestamps_and_watermarks(reading.strategy)


def _no_watermarks() -> Any:
    from firesteel.common.watermark_strategy import WatermarkStrategy

    return WatermarkStrategy.no_watermarks()


def _partitioned(
    options: TableOptions, connection: JdbcConnectionOptions, table: str, row: RowTypeInfo
) -> JdbcSource | None:
    """A table that is read in parts, by the values of a number's column."""
    keys = [f"scan.partition.{word}" for word in ("column", "num", "lower-bound", "upper-bound")]
    given = [key for key in keys if key in options]
    if not given:
        return None
    missing = [key for key in keys if key not in options]
    if missing:
        raise SqlValidationError(f"Table {options.path}: {given[0]!r} needs {', '.join(map(repr, missing))}, too.")
    column = options.required(keys[0])
    parts, low, high = (options.integer(key) or 0 for key in keys[1:])
    if low > high or parts < 1:
        raise SqlValidationError(
            f"Table {options.path}: partitions are at least one, and the lower bound is not above the upper one."
        )
    dialect = connection.dialect()
    columns = ", ".join(dialect.quoted(name) for name in row.get_field_names())
    sql = f"SELECT {columns} FROM {dialect.quoted(table)} WHERE {dialect.quoted(column)} BETWEEN ? AND ?"
    return JdbcSource.query(sql, row, connection, _ranges(low, high, parts))


def _ranges(low: int, high: int, parts: int) -> list[tuple[int, int]]:
    """Ranges of about equal size, ends included.

    >>> _ranges(1, 10, 3)
    [(1, 4), (5, 7), (8, 10)]
    """
    count = high - low + 1
    parts = min(parts, count)
    size, larger = divmod(count, parts)
    found, begin = [], low
    for part in range(parts):
        end = begin + size - (0 if part < larger else 1)
        found.append((begin, end))
        begin = end + 1
    return found


def _takes(table: DeclaredTable, options: TableOptions) -> Changes:
    return Changes.UPSERT if table.primary_key else Changes.INSERT


def _write(writing: Writing) -> None:
    options, table = writing.options, writing.table
    writing.metadata({})
    connection, name = connection_of(options), options.required("table-name")
    row = jdbc_type(table.physical, options.path)
    max_rows = options.integer("sink.buffer-flush.max-rows")
    execution = JdbcExecutionOptions(
        options.duration("sink.buffer-flush.interval", "1 s") or 0,
        100 if max_rows is None else max_rows,
        _default(options.integer("sink.max-retries"), 3),
    )
    dialect = dialect_of(connection.get_db_url())
    sink: Any
    if table.primary_key:
        names = row.get_field_names()
        kinds = dict(zip(names, row.get_field_types(), strict=True))
        key_row: Any = Types.ROW_NAMED(list(table.primary_key), [kinds[key] for key in table.primary_key])
        condition = " AND ".join(f"{dialect.quoted(key)} = ?" for key in table.primary_key)
        sink = UpsertBatchSink(
            JdbcSink.upsert_sink(name, table.primary_key, row, connection, execution),
            JdbcSink.sink(f"DELETE FROM {dialect.quoted(name)} WHERE {condition}", key_row, connection, execution),
            tuple(names.index(key) for key in table.primary_key),
            execution.batch_size,
        )
    else:
        inner = JdbcSink.sink(_insert(dialect, name, row), row, connection, execution)
        sink = ExpandingSink(inner, rows_as_tuples)
    writing.add(sink)


def _default(value: int | None, default: int) -> int:
    return default if value is None else value


def _insert(dialect: Dialect, table: str, row: RowTypeInfo) -> str:
    names = row.get_field_names()
    columns = ", ".join(map(dialect.quoted, names))
    return f"INSERT INTO {dialect.quoted(table)} ({columns}) VALUES ({', '.join('?' * len(names))})"


def _lookup(table: DeclaredTable, path: str) -> JdbcLookupTable:
    options = TableOptions(table.options, path, _OPTIONS)
    connection = connection_of(options)
    row = table.physical
    return JdbcLookupTable(
        connection.dialect(),
        connection.address(),
        options.required("table-name"),
        jdbc_type(row, path),
        arrow_schema(row.field_names(), row.field_types()),
        _default(options.integer("lookup.max-retries"), 3),
    )


register_lookup("jdbc", _lookup)
JDBC = Connector(_OPTIONS, _read, _write, takes=_takes)
