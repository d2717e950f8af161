"""Tables of CREATE TABLE as streams."""

from __future__ import annotations

from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.sql.errors import NotSupportedError

__all__ = ["declared_stream"]


def declared_stream(
    env: StreamExecutionEnvironment, table: DeclaredTable, path: tuple[str, ...], time_zone: str
) -> DataStream:
    """A stream of batches with all columns of the table."""
    connector = table.options.get("connector")
    raise NotSupportedError(f"Not supported yet: reading from connector {connector!r} ({'.'.join(path)}).")
