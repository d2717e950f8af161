"""Files as sources and sinks. docs/files.md shows both; :mod:`firesteel.connectors.files` says how they work."""

from __future__ import annotations

from dataclasses import replace

from firesteel.common.serialization import BulkWriterFactory, Encoder
from firesteel.connectors.files.buckets import BucketAssigner
from firesteel.connectors.files.bulk_format import Block, BulkFormat
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.compacting import CompactionSettings
from firesteel.connectors.files.compaction import (
    ConcatFileCompactor,
    FileCompactor,
    FileCompactStrategy,
    IdenticalFileCompactor,
    RecordWiseFileCompactor,
)
from firesteel.connectors.files.file_format import END, FileFormat, FormatPlanner, FormatReader, InputFile, Reach
from firesteel.connectors.files.line_reading import Lines
from firesteel.connectors.files.parts import Format, RowFormat
from firesteel.connectors.files.rolling import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    PartFileInfo,
    RollingPolicy,
)
from firesteel.connectors.files.stream_format import LineFormat, StreamFormat
from firesteel.connectors.files.writer import FileSinkSettings, FileWriter
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.datastream.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from firesteel.errors import ConfigurationError, ProgramError, short_repr
from firesteel.filesystems import openable

__all__ = [
    "END",
    "Block",
    "BucketAssigner",
    "BulkFormat",
    "ConcatFileCompactor",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileFormat",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "FormatPlanner",
    "FormatReader",
    "IdenticalFileCompactor",
    "InputFile",
    "LineFormat",
    "Lines",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "PartFileInfo",
    "Reach",
    "RecordWiseFileCompactor",
    "RollingPolicy",
    "StreamFormat",
]


class OutputFileConfig:
    """What the names of part files begin and end with.

    >>> config = OutputFileConfig.builder().with_part_prefix("orders").with_part_suffix(".csv").build()
    >>> config.get_part_prefix(), config.get_part_suffix()
    ('orders', '.csv')
    """

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        for name, text in (("prefix", part_prefix), ("suffix", part_suffix)):
            if not isinstance(text, str) or "/" in text or "\0" in text:
                raise ProgramError(f"The {name} of part files is a text without slashes, got {short_repr(text, 80)}.")
        if part_prefix.startswith((".", "_")):
            raise ProgramError(
                f"Readers pass over files that begin with '.' or '_': {part_prefix!r} cannot be a prefix."
            )
        self._prefix, self._suffix = part_prefix, part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        return self._prefix

    def get_part_suffix(self) -> str:
        return self._suffix

    class OutputFileConfigBuilder:
        """Makes a config."""

        def __init__(self) -> None:
            self._prefix, self._suffix = "part", ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self._prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self._suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            return OutputFileConfig(self._prefix, self._suffix)


class FileSink(Sink):
    """Writes a stream into files below a folder that all workers reach: a path, or a URI such as ``s3://bucket/out``.

    >>> import os, tempfile
    >>> from firesteel.testing import memory_environment
    >>> env = memory_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sink = (FileSink.for_row_format(folder, Encoder.csv_encoder())
    ...             .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...             .with_output_file_config(OutputFileConfig("orders", ".csv"))
    ...             .build())
    ...     _ = env.from_collection([("a", 1), ("b", 2)]).sink_to(sink)
    ...     _ = env.execute()
    ...     (name,) = os.listdir(folder)
    ...     name.startswith("orders-"), open(os.path.join(folder, name)).read()
    (True, 'a,1\\nb,2\\n')
    """

    def __init__(self, settings: FileSinkSettings) -> None:
        self._settings = settings

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return FileWriter(self._settings, context)

    def create_committer(self, context: CommitterContext) -> Committer:
        settings = self._settings
        return FileCommitter(settings.base, context, settings.compaction, settings.check_interval / 1000)

    class BaseBuilder:
        """What the builders of both kinds of formats share."""

        def __init__(self, settings: FileSinkSettings) -> None:
            self._settings = settings

        def with_bucket_check_interval(self, interval: int) -> FileSink.BaseBuilder:
            """How often, in milliseconds, parts are looked at though no records come. A minute if nothing is said.
            For parts that wait for compaction it counts as a checkpoint."""
            if not isinstance(interval, int) or interval < 1:
                raise ProgramError(f"The interval is a number of milliseconds of at least 1, got {interval!r}.")
            self._settings = replace(self._settings, check_interval=interval)
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSink.BaseBuilder:
            """Buckets by hour of processing time if nothing is said."""
            if not isinstance(bucket_assigner, BucketAssigner):
                raise ProgramError(f"Expected a BucketAssigner, got {short_repr(bucket_assigner, 80)}.")
            self._settings = replace(self._settings, assigner=bucket_assigner)
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSink.BaseBuilder:
            """What the names of part files begin and end with."""
            self._settings = replace(
                self._settings,
                part_prefix=output_file_config.get_part_prefix(),
                part_suffix=output_file_config.get_part_suffix(),
            )
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.BaseBuilder:
            """When a part is finished and becomes visible."""
            if not isinstance(rolling_policy, RollingPolicy):
                raise ProgramError(f"Expected a RollingPolicy, got {short_repr(rolling_policy, 80)}.")
            self._settings = replace(self._settings, policy=rolling_policy)
            return self

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> FileSink.BaseBuilder:
            """Puts the parts of a bucket together before readers see them."""
            if not isinstance(strategy, FileCompactStrategy) or not isinstance(compactor, FileCompactor):
                raise ProgramError(
                    "enable_compact() takes a FileCompactStrategy and a FileCompactor, got "
                    f"{short_repr(strategy, 80)} and {short_repr(compactor, 80)}."
                )
            self._settings = replace(self._settings, compaction=CompactionSettings(strategy, compactor))
            return self

        def disable_compact(self) -> FileSink.BaseBuilder:
            """Parts stay as they are, which is the default. What a run with compaction has left becomes visible."""
            self._settings = replace(self._settings, compaction=None)
            return self

        def build(self) -> FileSink:
            return FileSink(self._settings)

    class RowFormatBuilder(BaseBuilder):
        """For formats of one element after the other."""

    class BulkFormatBuilder(BaseBuilder):
        """For formats that are complete only when they end: each micro-batch ends its parts."""

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.BaseBuilder:
            if isinstance(rolling_policy, DefaultRollingPolicy):
                raise ProgramError(
                    "A bulk format cannot be cut off, so its parts end with each micro-batch: use "
                    "RollingPolicy.on_checkpoint_rolling_policy(), or a policy of your own that rolls more often."
                )
            return super().with_rolling_policy(rolling_policy)

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> FileSink.BaseBuilder:
            if isinstance(compactor, ConcatFileCompactor) and compactor.merges:
                raise ProgramError(
                    "Files of a bulk format cannot be put one behind the other: use "
                    "FileCompactor.record_wise_file_compactor(format, writer_factory)."
                )
            return super().enable_compact(strategy, compactor)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Files of lines: ``Encoder.simple_string_encoder()``, ``csv_encoder()``, ``json_encoder()`` or your own."""
        if not isinstance(encoder, Encoder):
            raise ProgramError(f"for_row_format() takes an Encoder, got {short_repr(encoder, 80)}.")
        return FileSink.RowFormatBuilder(_settings(base_path, RowFormat(encoder), DefaultRollingPolicy()))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """Files such as Parquet: :class:`firesteel.datastream.formats.parquet.ParquetBulkWriters`."""
        if not isinstance(writer_factory, BulkWriterFactory):
            raise ProgramError(f"for_bulk_format() takes a BulkWriterFactory, got {short_repr(writer_factory, 80)}.")
        return FileSink.BulkFormatBuilder(_settings(base_path, Format(writer_factory), OnCheckpointRollingPolicy()))


def _settings(base_path: str, form: Format, policy: RollingPolicy) -> FileSinkSettings:
    try:
        base = openable(base_path, "The path of a file sink")
    except ConfigurationError as error:
        raise ProgramError(str(error)) from None
    return FileSinkSettings(base, form, BucketAssigner.date_time_bucket_assigner(), policy)
