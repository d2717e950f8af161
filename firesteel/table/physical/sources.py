"""Tables of CREATE TABLE as streams."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.physical.external.connector import Changes, Reading
from firesteel.table.physical.external.registry import connector_of

__all__ = ["declared_changes", "declared_stream"]


def declared_stream(
    env: StreamExecutionEnvironment,
    table: DeclaredTable,
    path: tuple[str, ...],
    strategy: WatermarkStrategy | None = None,
    identified: Callable[[DataStream], DataStream] | None = None,
    uid: str | None = None,
    asked: frozenset[str] | None = None,
) -> DataStream:
    """A stream of batches with the columns that the connector gives. Watermarks are made where rows are read: there
    each partition has its own."""
    name = ".".join(path)
    connector = connector_of(table, name, "read")
    assert connector.read is not None
    options = connector.options_of(table, name)
    given = strategy or WatermarkStrategy.no_watermarks()
    if connector.gives(table, options) is not Changes.INSERT:
        # Whoever puts changes together needs whole rows.
        asked = None
    return connector.read(Reading(env, table, options, given, identified or _as_it_is, uid, asked))


def _as_it_is(stream: DataStream) -> DataStream:
    return stream


def declared_changes(table: DeclaredTable, path: tuple[str, ...]) -> Changes:
    """Which changes a table gives when it is read."""
    name = ".".join(path)
    connector = connector_of(table, name, "read")
    return connector.gives(table, connector.options_of(table, name))
