"""The connector ``filesystem``: files of a folder, with partitions as folders below it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.common.time import Duration
from firesteel.connectors.files.compacting import CompactionSettings
from firesteel.connectors.files.compaction import FileCompactor, FileCompactStrategy
from firesteel.connectors.files.file_format import FileFormat
from firesteel.connectors.files.parts import Format, RowFormat
from firesteel.connectors.files.rolling import DefaultRollingPolicy, OnCheckpointRollingPolicy, RollingPolicy
from firesteel.connectors.files.writer import FileSinkSettings
from firesteel.connectors.table.batch_files import (
    FILE_METADATA,
    FolderAssigner,
    LineBatches,
    LineEncoder,
    TableFiles,
)
from firesteel.connectors.table.expanding import ExpandingSink
from firesteel.connectors.table.partition_commits import PartitionCommittingSink
from firesteel.connectors.table.partition_folders import DEFAULT_NAME, FolderSplitter
from firesteel.datastream.connectors.base import Sink
from firesteel.datastream.connectors.file_system import FileSink, FileSource
from firesteel.datastream.data_stream import DataStream
from firesteel.errors import ConfigurationError, ProgramError
from firesteel.filesystems import resolved
from firesteel.table.catalog.tables import DeclaredTable
from firesteel.table.physical.external.bulk_formats import BULK_FORMATS, TableFileFormat, bulk_format
from firesteel.table.physical.external.connector import Changes, Connector, Reading, Writing
from firesteel.table.physical.external.formats import format_name, format_options, message_format
from firesteel.table.physical.external.partition_commits import PARTITION_COMMIT_OPTIONS, partition_commit
from firesteel.table.physical.options import TableOptions
from firesteel.table.sql.errors import SqlValidationError
from firesteel.table.types.arrow import arrow_schema, strict_schema
from firesteel.table.types.data_types import RowType

__all__ = ["FILESYSTEM"]

_FORMATS = ("csv", "json", "raw", "debezium-json", *BULK_FORMATS)
_OPTIONS = (
    "path",
    "format",
    "partition.default-name",
    "source.monitor-interval",
    "source.path.regex-pattern",
    "source.report-statistics",
    "scan.parallelism",
    "sink.parallelism",
    "sink.rolling-policy.file-size",
    "sink.rolling-policy.rollover-interval",
    "sink.rolling-policy.check-interval",
    "sink.rolling-policy.inactivity-interval",
    "sink.shuffle-by-partition.enable",
    "auto-compaction",
    "compaction.file-size",
    "compaction.parallelism",
    *PARTITION_COMMIT_OPTIONS,
)


def _stored(table: DeclaredTable, path: str) -> RowType:
    """The columns that are in the files."""
    names = table.physical.field_names()
    for name in table.partitioned_by:
        if name not in names:
            raise SqlValidationError(f"Table {path} is partitioned by {name}, which is not a column of its files.")
    stored = tuple(field for field in table.physical.fields if field.name not in table.partitioned_by)
    if not stored:
        raise SqlValidationError(f"Table {path} has no columns but those that it is partitioned by.")
    return RowType(stored)


def _loose(stored: RowType) -> pa.Schema:
    return arrow_schema(stored.field_names(), stored.field_types())


def _bulk_format(name: str, stored: RowType, options: TableOptions) -> TableFileFormat | None:
    if name not in BULK_FORMATS:
        return None
    strict = strict_schema(stored.field_names(), stored.field_types())
    return bulk_format(name, _loose(stored), strict, options)


def _changes(table: DeclaredTable, options: TableOptions) -> Changes:
    return Changes.ALL if options.text("format") == "debezium-json" else Changes.INSERT


def _read(reading: Reading) -> DataStream:
    options, table = reading.options, reading.table
    path = options.required("path")
    stored = _stored(table, options.path)
    name = format_name(options, _FORMATS, "format")
    bulk = _bulk_format(name, stored, options)
    inner: FileFormat[Any]
    if bulk is not None:
        inner = bulk.reading if reading.asked is None else bulk.reading.narrowed(reading.asked)
    else:
        # As in Flink: an empty line of CSV is a line without values.
        lines = message_format(name, _loose(stored), options)
        if reading.asked is not None:
            lines = lines.narrowed(reading.asked)
        inner = LineBatches(lines, bare=name == "raw", blanks=name == "csv")
    metadata = reading.metadata({key: kind for key, (kind, _) in FILE_METADATA.items()})
    default = options.text("partition.default-name", DEFAULT_NAME) or DEFAULT_NAME
    form = TableFiles(inner, reading.schema, table.partitioned_by, default, metadata)
    builder = FileSource.for_file_format(form, path)
    interval = options.duration("source.monitor-interval")
    if interval:
        builder.monitor_continuously(Duration.of_millis(interval))
    pattern = options.text("source.path.regex-pattern")
    if pattern is not None:
        try:
            builder.match_paths(pattern)
        except ProgramError:
            raise options.refused("source.path.regex-pattern", "a regular expression for whole paths") from None
    return reading.stream(builder.build())


def _write(writing: Writing) -> None:
    options, table = writing.options, writing.table
    writing.metadata({})
    stored = _stored(table, options.path)
    name = format_name(options, _FORMATS, "format")
    bulk = _bulk_format(name, stored, options)
    form: Format
    policy: RollingPolicy
    if bulk is not None:
        form = Format(bulk.writing)
        policy = OnCheckpointRollingPolicy()
    else:
        form = RowFormat(LineEncoder(message_format(name, _loose(stored), options)))
        policy = DefaultRollingPolicy(
            options.memory("sink.rolling-policy.file-size", "128 MB") or 1,
            options.duration("sink.rolling-policy.rollover-interval", "30 min") or 1,
            options.duration("sink.rolling-policy.inactivity-interval", "30 min") or 1,
        )
    try:
        base = resolved(options.required("path"), "The path of a table")
    except ConfigurationError as error:
        raise SqlValidationError(f"Table {options.path}: {error}") from None
    interval = options.duration("sink.rolling-policy.check-interval", "1 min") or 60_000
    settings = FileSinkSettings(
        base, form, FolderAssigner(), policy, check_interval=interval, compaction=_compaction(options, bulk)
    )
    commit = partition_commit(options, table.partitioned_by)
    inner: Sink = FileSink(settings) if commit is None else PartitionCommittingSink(settings, *commit)
    default = options.text("partition.default-name", DEFAULT_NAME) or DEFAULT_NAME
    sink = ExpandingSink(inner, FolderSplitter(writing.schema, table.partitioned_by, default))
    writing.add(sink)


def _compaction(options: TableOptions, bulk: TableFileFormat | None) -> CompactionSettings | None:
    if not options.boolean("auto-compaction", False):
        return None
    size = options.memory("compaction.file-size") or options.memory("sink.rolling-policy.file-size", "128 MB") or 1
    strategy = FileCompactStrategy.builder().set_size_threshold(size).enable_compaction_on_checkpoint(1).build()
    if bulk is None:
        return CompactionSettings(strategy, FileCompactor.concat_file_compactor())
    return CompactionSettings(strategy, FileCompactor.record_wise_file_compactor(bulk.reading, bulk.writing))


FILESYSTEM = Connector(_OPTIONS, _read, _write, gives=_changes, takes=_changes, format_options=format_options(_FORMATS))
