"""Tables of CREATE TABLE as streams."""

from __future__ import annotations

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.table.datagen import datagen_source
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.errors import ConfigurationError
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.physical.options import TableOptions
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError, near_names
from firesteel.table.types.arrow import arrow_schema

__all__ = ["declared_stream"]

_FIELD_OPTIONS = ("kind", "min", "max", "length", "start", "end", "null-rate", "max-past", "var-len")
_SOURCES = {
    "datagen": (
        "number-of-rows",
        "rows-per-second",
        "scan.parallelism",
        *(f"fields.*.{option}" for option in _FIELD_OPTIONS),
    )
}


def declared_stream(env: StreamExecutionEnvironment, table: DeclaredTable, path: tuple[str, ...]) -> DataStream:
    """A stream of batches with the table's physical columns."""
    name, connector = ".".join(path), table.options.get("connector")
    if connector is None:
        raise SqlValidationError(f"Table {name} has no connector: WITH ('connector' = '...') is missing.")
    if connector not in _SOURCES:
        near = near_names(connector, _SOURCES)
        raise NotSupportedError(f"Not supported yet: reading from connector {connector!r} (table {name}).{near}")
    TableOptions(table.options, name, _SOURCES[connector])
    schema = arrow_schema(table.physical.field_names(), table.physical.field_types())
    options = {key: value for key, value in table.options.items() if key != "connector"}
    try:
        source = datagen_source(schema, options)
    except ConfigurationError as error:
        raise SqlValidationError(f"Table {name}: {error}") from None
    return env.from_source(source, WatermarkStrategy.no_watermarks(), path[-1])
