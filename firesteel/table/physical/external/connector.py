"""The port of connectors: what reads a table, what writes it, and which changes it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.connectors.base import Sink, Source
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.errors import ConfigurationError
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.physical.options import TableOptions
from firesteel.table.sql.errors import SqlValidationError, near_names
from firesteel.table.types.arrow import arrow_schema
from firesteel.table.types.data_types import DataType

__all__ = ["Changes", "Connector", "Reading", "Writing"]


class Changes(Enum):
    """Which changes of rows a table gives or takes."""

    INSERT = "insertions"
    UPSERT = "upserts"
    """+I, +U and -D by key: an update without what was before."""
    ALL = "all changes"
    GIVEN = "what the query gives"
    """Whatever comes; by key, if the table has one."""


@dataclass(frozen=True)
class Reading:
    """A table to be read."""

    env: StreamExecutionEnvironment
    table: DeclaredTable
    options: TableOptions
    strategy: WatermarkStrategy
    identified: Callable[[DataStream], DataStream]
    """Gives an operator with state an id that comes from the plan."""
    uid: str | None = None
    """The id of the source, by which its position is found again."""
    asked: frozenset[str] | None = None
    """The columns that somebody asks for; None: perhaps all. A connector need not read the others. It gives NULL for
    them then: each column keeps its place."""

    def stream(self, source: Source[Any, Any], strategy: WatermarkStrategy | None = None) -> DataStream:
        """What a source gives, under the name of the table."""
        name = self.options.path.rpartition(".")[2]
        stream = self.env.from_source(source, strategy or self.strategy, name)
        parallelism = self.options.integer("scan.parallelism")
        if parallelism is not None:
            stream = stream.set_parallelism(parallelism)
        return stream if self.uid is None else stream.uid(self.uid)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the format and metadata, in the table's order."""
        row = self.table.readable
        return arrow_schema(row.field_names(), row.field_types())

    @property
    def physical(self) -> pa.Schema:
        """The columns of the format."""
        row = self.table.physical
        return arrow_schema(row.field_names(), row.field_types())

    def metadata(self, known: dict[str, pa.DataType]) -> dict[str, str]:
        """Columns of metadata, and what the connector calls them."""
        return _checked_metadata(self.table, self.options.path, known)


@dataclass(frozen=True)
class Writing:
    """A table to be written. The stream has its writable columns."""

    stream: DataStream
    table: DeclaredTable
    options: TableOptions
    time_zone: str
    types: tuple[DataType, ...]
    uid: str
    """The id of the sink, by which its state is found again."""

    def add(self, sink: Sink) -> None:
        """Ends the stream in a sink, under the name of the table."""
        added = self.stream.sink_to(sink).name(f"{self.options.path}: {self.table.options['connector']}").uid(self.uid)
        parallelism = self.options.integer("sink.parallelism")
        if parallelism is not None:
            added.set_parallelism(parallelism)

    @property
    def schema(self) -> pa.Schema:
        """All writable columns."""
        return arrow_schema([each.name for each in self.table.writable], [each.type for each in self.table.writable])

    @property
    def physical(self) -> pa.Schema:
        """The columns of the format."""
        row = self.table.physical
        return arrow_schema(row.field_names(), row.field_types())

    def metadata(self, known: dict[str, pa.DataType]) -> dict[str, str]:
        """Writable columns of metadata, and what the connector calls them."""
        writable = {each.name for each in self.table.writable}
        found = {name: key for name, key in self.table.metadata.items() if name in writable}
        for name, key in found.items():
            if key not in known:
                raise SqlValidationError(
                    f"Table {self.options.path}: metadata {key!r} cannot be written. Declare {name} as VIRTUAL. "
                    f"Writable are {', '.join(known) or 'none'}."
                )
        return found


def _checked_metadata(table: DeclaredTable, path: str, known: dict[str, pa.DataType]) -> dict[str, str]:
    for key in table.metadata.values():
        if key not in known:
            shown = f" There are {', '.join(known)}." if known else ""
            raise SqlValidationError(f"Table {path}: there is no metadata {key!r}.{near_names(key, known)}{shown}")
    return table.metadata


@dataclass(frozen=True)
class Connector:
    """One connector. ``options`` may have patterns."""

    options: tuple[str, ...]
    read: Callable[[Reading], DataStream] | None = None
    write: Callable[[Writing], None] | None = None
    gives: Callable[[DeclaredTable, TableOptions], Changes] = lambda table, options: Changes.INSERT
    takes: Callable[[DeclaredTable, TableOptions], Changes] = lambda table, options: Changes.INSERT
    format_options: tuple[str, ...] = ()

    def options_of(self, table: DeclaredTable, path: str) -> TableOptions:
        """The options of a table, all of which are known."""
        return TableOptions(table.options, path, self.options, self.format_options)


def explained(error: ConfigurationError, path: str) -> SqlValidationError:
    """What a source or sink had to say about its settings."""
    return SqlValidationError(f"Table {path}: {error}")
