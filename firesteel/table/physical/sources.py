"""Tables of CREATE TABLE as streams."""

from __future__ import annotations

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.table.datagen import datagen_source
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.errors import ConfigurationError
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError
from firesteel.table.types.arrow import arrow_schema

__all__ = ["declared_stream"]


def declared_stream(
    env: StreamExecutionEnvironment, table: DeclaredTable, path: tuple[str, ...], time_zone: str
) -> DataStream:
    """A stream of batches with all columns of the table."""
    name, connector = ".".join(path), table.options.get("connector")
    if connector != "datagen":
        raise NotSupportedError(f"Not supported yet: reading from connector {connector!r} ({name}).")
    if not all(column.is_physical for column in table.columns):
        raise NotSupportedError(f"Not supported yet: computed and metadata columns of a table that is read ({name}).")
    schema = arrow_schema([column.name for column in table.columns], [column.type for column in table.columns])
    options = {key: value for key, value in table.options.items() if key != "connector"}
    try:
        source = datagen_source(schema, options)
    except ConfigurationError as error:
        raise SqlValidationError(f"Table {name}: {error}") from None
    return env.from_source(source, WatermarkStrategy.no_watermarks(), path[-1])
