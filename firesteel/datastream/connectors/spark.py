"""Everything that Spark reaches: DataFrames as sources, Spark's writers as sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.secret import Secret, is_secret_key
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation
from firesteel.common.types import Row
from firesteel.connectors.source import SourceReader, SplitEnumerator
from firesteel.connectors.spark.reading import FrameEnumerator, FrameReader
from firesteel.connectors.spark.row_types import row_type_of_frame
from firesteel.connectors.spark.session import is_frame, revealed
from firesteel.connectors.spark.staging import StagedFile
from firesteel.connectors.spark.targets import (
    FilesTarget,
    FunctionTarget,
    JdbcTarget,
    SparkBatch,
    Target,
    checked_table,
)
from firesteel.connectors.spark.writing import FrameCommitter, FrameWriter
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, Source, WriterContext
from firesteel.errors import ProgramError, short_repr

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark.sql import DataFrame, SparkSession

    Frame: TypeAlias = DataFrame | Callable[[SparkSession], DataFrame]

__all__ = ["SparkBatch", "SparkSink", "SparkSource"]

FILE_FORMATS = ("parquet", "orc", "json", "csv", "text", "xml", "avro")


class SparkSource(Source[StagedFile, Row]):
    """Rows of a DataFrame, each exactly once. Made by :meth:`of`, :meth:`format` or :meth:`stream`.

    Spark computes the DataFrame in the driver's session, into Parquet files in the job's checkpoint folder. Tasks read
    those, in parallel, and positions in checkpoints are numbers of rows. So a job that goes on after a failure reads
    the rows that it would have read, also if a table has changed meanwhile or the query is not deterministic.

    >>> source = SparkSource.of(lambda spark: spark.range(1000))
    >>> source.create_enumerator().bounded
    True
    """

    def __init__(
        self,
        frame: Callable[[Any], Any],
        bounded: bool,
        row_type: RowTypeInfo | None,
        event_time: str | None,
        trigger: dict[str, Any] | None = None,
        output_mode: str = "append",
        secrets: Sequence[Any] = (),
    ) -> None:
        if row_type is not None and not isinstance(row_type, RowTypeInfo):
            raise ProgramError(f"row_type must be Types.ROW_NAMED(…), got {short_repr(row_type, 80)}.")
        self._frame, self._bounded, self._row_type, self._event_time = frame, bounded, row_type, event_time
        self._trigger, self._output_mode, self._secrets = dict(trigger or {}), output_mode, list(secrets)

    @staticmethod
    def of(frame: Frame, row_type: RowTypeInfo | None = None, *, event_time: str | None = None) -> SparkSource:
        """A DataFrame, or a function that makes one of a ``SparkSession``. It is computed once, when the job begins.

        ``row_type`` declares names and types of the columns that are read; by default all are, with the types that
        Spark has. ``event_time`` is a column of timestamps, or of milliseconds."""
        made, found = _maker(frame)
        if found is not None and found.isStreaming:
            raise ProgramError("The DataFrame is a streaming one: read it with SparkSource.stream(…).")
        declared = row_type_of_frame(found) if row_type is None and found is not None else row_type
        return SparkSource(made, True, declared, event_time)

    @staticmethod
    def format(
        name: str,
        options: Mapping[str, Any] | None = None,
        path: str | None = None,
        row_type: RowTypeInfo | None = None,
        *,
        schema: str | None = None,
        event_time: str | None = None,
    ) -> SparkSource:
        """What ``spark.read.format(name).options(…).load(path)`` reads. Values of ``options`` may be secrets."""
        given = _hidden(options or {})

        def load(spark: Any) -> Any:
            reader = spark.read.format(name).options(**revealed(given))
            reader = reader if schema is None else reader.schema(schema)
            return reader.load() if path is None else reader.load(path)

        return SparkSource(load, True, row_type, event_time, secrets=list(given.values()))

    @staticmethod
    def stream(
        frame: Frame,
        row_type: RowTypeInfo | None = None,
        *,
        event_time: str | None = None,
        trigger: dict[str, Any] | None = None,
        output_mode: str = "append",
    ) -> SparkSource:
        """A streaming DataFrame (``spark.readStream…``), or a function that makes one of a ``SparkSession``.

        It is a query of its own beside the job's. Its offsets are in the job's checkpoint folder. ``trigger`` is what
        ``DataStreamWriter.trigger`` takes, ``output_mode`` what ``outputMode`` takes."""
        made, found = _maker(frame)
        if found is not None and not found.isStreaming:
            raise ProgramError("The DataFrame is a plain one: read it with SparkSource.of(…).")
        declared = row_type_of_frame(found) if row_type is None and found is not None else row_type
        return SparkSource(made, False, declared, event_time, trigger, output_mode)

    def create_enumerator(self) -> SplitEnumerator[StagedFile]:
        return FrameEnumerator(self._frame, self._bounded, self._trigger, self._output_mode, self._secrets)

    def create_reader(self) -> SourceReader[StagedFile, Row]:
        return FrameReader(self._row_type, self._event_time)

    def get_produced_type(self) -> TypeInformation | None:
        return self._row_type


def _maker(frame: Any) -> tuple[Callable[[Any], Any], Any]:
    """What makes the DataFrame, and the DataFrame itself where it is there already."""
    if is_frame(frame):
        return lambda spark: frame, frame
    if not callable(frame):
        raise ProgramError(
            f"A source takes a DataFrame, or a function that makes one of a SparkSession, got {short_repr(frame, 80)}."
        )
    return frame, None


def _hidden(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options whose names say so are secrets."""
    return {key: Secret.of(value) if is_secret_key(key) else value for key, value in options.items()}


class SparkSink(Sink):
    """A Spark writer as a sink. Made by :meth:`files`, :meth:`jdbc` or :meth:`batches`.

    The rows of a batch are one DataFrame, which the driver has Spark write when the batch's checkpoint is complete.
    Until then they lie in the checkpoint folder. A batch that comes again after a failure has the same number.
    ``row_type`` is that of the columns; by default it is the declared type of the stream.

    >>> from firesteel.common import Types
    >>> row_type = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.LONG()])
    >>> sink = SparkSink.files("parquet", "/tmp/words", row_type, partition_by=["word"])
    """

    def __init__(self, target: Target, row_type: Any = None) -> None:
        self._target: Target | None = target
        self._row_type = row_type

    def __getstate__(self) -> dict[str, Any]:
        # What is written where, and with which password, is the driver's business.
        return {"_target": None, "_row_type": self._row_type}

    @staticmethod
    def files(
        file_format: str,
        path: str,
        row_type: Any = None,
        *,
        options: Mapping[str, Any] | None = None,
        partition_by: Sequence[str] = (),
    ) -> SparkSink:
        """A folder of files in one of Spark's formats, exactly once: each batch is written aside, and its files get
        their names when it is complete."""
        if file_format not in FILE_FORMATS:
            raise ProgramError(
                f"The formats of files are {', '.join(FILE_FORMATS)}, got {file_format!r}. For other writers there is "
                "SparkSink.batches(…)."
            )
        return SparkSink(FilesTarget(file_format, path, _hidden(options or {}), partition_by), row_type)

    @staticmethod
    def jdbc(url: str, table: str, row_type: Any = None, *, properties: Mapping[str, Any] | None = None) -> SparkSink:
        """A table of a database, by a JDBC driver that Spark has (``spark.jars.packages``), exactly once: Spark writes
        a table of the sink's own, and one transaction copies it, with the number of the batch."""
        if not checked_table(table):
            raise ProgramError(f"table must be the name of a table, got {short_repr(table, 80)}.")
        return SparkSink(JdbcTarget(url, table, _hidden(properties or {})), row_type)

    @staticmethod
    def batches(write: Callable[[DataFrame, SparkBatch], None], row_type: Any = None) -> SparkSink:
        """Any writer: ``write`` is called in the driver with the DataFrame of a batch and its :class:`SparkBatch`.
        Exactly once where it makes of ``batch.sink`` and ``batch.number`` something that can be there only once, such
        as Delta's ``txnAppId`` and ``txnVersion``; else at least once."""
        if not callable(write):
            raise ProgramError(f"write must be a function of a DataFrame and a batch, got {short_repr(write, 80)}.")
        return SparkSink(FunctionTarget(write), row_type)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        row_type = self._row_type or context.input_type()
        if not hasattr(row_type, "get_field_names") and not hasattr(row_type, "names"):
            raise ProgramError(
                "A Spark writer needs the names and types of columns: give the sink a row_type, or declare the "
                f"output_type of the operator before it. The stream's type is {row_type}."
            )
        return FrameWriter(row_type)

    def create_committer(self, context: CommitterContext) -> Committer:
        assert self._target is not None
        return FrameCommitter(self._target, context)
