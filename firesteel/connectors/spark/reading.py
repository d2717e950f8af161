"""DataFrames as sources: what each batch reads of what Spark has computed, and how rows are made of it.

The driver has Spark compute (:mod:`.feeding`). The position is a number of rows. Tasks read Parquet files, column by
column, and need no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.common.types import Row
from firesteel.connectors.blocks import blocks
from firesteel.connectors.files.columns import RowColumns
from firesteel.connectors.files.parquet import parquet_file
from firesteel.connectors.source import CHUNK_RECORDS, Position, Records, SourceReader, SplitEnumerator, SplitRange
from firesteel.connectors.spark.errors import as_connector_error
from firesteel.connectors.spark.feeding import Feeder, compute_once
from firesteel.connectors.spark.row_types import row_type_of
from firesteel.connectors.spark.session import spark_session
from firesteel.connectors.spark.staging import Staged, StagedFile
from firesteel.errors import CheckpointError, ConnectorError, FailureKind, InputError, ProgramError

__all__ = ["FrameEnumerator", "FrameReader"]


class FrameEnumerator(SplitEnumerator[StagedFile]):
    """Plans over what is published. The DataFrame stays in the driver."""

    keeps_files = True
    splittable = True
    needs_driver = True

    def __init__(
        self,
        frame: Callable[[Any], Any],
        bounded: bool,
        trigger: dict[str, Any],
        output_mode: str,
        secrets: list[Any],
    ) -> None:
        self.bounded = bounded
        self._frame: Callable[[Any], Any] | None = frame
        self._trigger, self._output_mode, self._secrets = trigger, output_mode, secrets
        self._feeder: Feeder | None = None
        self._live_staged: Staged | None = None
        self._checkpointed = 0

    def __getstate__(self) -> dict[str, Any]:
        # A DataFrame and its options, among which passwords are, belong to the driver.
        here: dict[str, Any] = {"_frame": None, "_feeder": None, "_live_staged": None, "_secrets": []}
        return {**self.__dict__, **here}

    # In the driver

    def begin_in_driver(self, directory: str) -> None:
        assert self._frame is not None
        staged = Staged(directory)
        if self.bounded and staged.batches:
            return
        try:
            frame = self._frame(spark_session())
        except Exception as error:
            raise as_connector_error(error, "make the DataFrame of a source", self._secrets) from None
        if frame.isStreaming == self.bounded:
            kind, call = ("streaming", "SparkSource.stream(…)") if self.bounded else ("plain", "SparkSource.of(…)")
            raise ProgramError(f"The DataFrame is a {kind} one: read it with {call}.")
        if self.bounded:
            compute_once(frame, staged, self._secrets)
        else:
            self._feeder = Feeder(frame, staged, self._trigger, self._output_mode, self._secrets)

    def end_in_driver(self) -> None:
        feeder, self._feeder = self._feeder, None
        if feeder is not None:
            feeder.stop()

    # Where batches are planned

    def start(self, directory: str) -> None:
        self._live_staged = Staged(directory)

    @property
    def _staged(self) -> Staged:
        assert self._live_staged is not None
        return self._live_staged

    def initial(self) -> Position:
        return 0

    def _check(self, position: int) -> None:
        staged = self._staged
        if position > staged.end or (staged.batches and position < staged.batches[0].first):
            first = staged.batches[0].first if staged.batches else 0
            raise CheckpointError(
                f"The job's position is {position}, but {staged.directory}, where Spark puts what it computes for this "
                f"source, has the rows from {first} to {staged.end}. It is not that of this checkpoint or savepoint. "
                "Put it back to go on, or start the job without its checkpoint or savepoint."
            )

    def latest(self, position: int, max_records: int) -> Position:
        staged = self._staged
        failure = staged.failure()
        if failure is not None:
            raise ConnectorError(failure[0], kind=FailureKind.PERMANENT if failure[1] else FailureKind.PASSING)
        staged.look()
        self._check(position)
        # Here, and not when the checkpoint is complete: nothing vanishes while a savepoint is being taken.
        staged.forget(min(position, self._checkpointed))
        return min(staged.end, position + max_records)

    def ended(self, position: int) -> bool:
        return self.bounded and bool(self._staged.batches) and position >= self._staged.end

    def count(self, start: int, end: int) -> int:
        return end - start

    def size(self, start: int, end: int) -> int | None:
        between = self._staged.between(start, end)
        return sum(file.size * (high - low) // file.rows for file, low, high in between)

    def pending(self, position: int) -> int | None:
        return max(0, self._staged.end - position)

    def plan(self, start: int, end: int, parallelism: int) -> list[list[SplitRange[StagedFile]]]:
        self._staged.look()
        self._check(end)
        self._check(start)
        return [
            [SplitRange(file, low, high) for file, low, high in self._staged.between(*share)] if share else []
            for share in blocks(start, end, parallelism)
        ]

    @property
    def learns_of_checkpoints(self) -> bool:
        return True

    def committed(self, position: int) -> None:
        self._checkpointed = max(self._checkpointed, position)


class FrameReader(SourceReader[StagedFile, Row]):
    """Rows of files, with the names and types of the DataFrame, or with declared ones."""

    def __init__(self, declared: RowTypeInfo | None, event_time: str | None) -> None:
        self._declared, self._event_time = declared, event_time

    def read(self, split: StagedFile, start: int, end: int) -> Iterator[Records[Row]]:
        import pyarrow

        # Spark's timestamps have microseconds.
        with parquet_file(pyarrow.OSFile(split.path), split.path, "us") as opened:
            # What Spark calls a timestamp is a moment; in its oldest form the file does not say so.
            moments = frozenset(column.path for column in opened.schema if column.physical_type == "INT96")
            schema = opened.schema_arrow
            columns = RowColumns(self._declared or row_type_of(schema, moments))
            found = columns.found_in(schema.names, split.path)
            wanted = [*columns.names, *([self._event_time] if self._event_time else [])]
            missing = [name for name in wanted if name not in schema.names]
            if missing:
                raise InputError(f"The DataFrame has no column {missing[0]!r}. It has {', '.join(schema.names)}.")
            for batch in _batches(opened, start, end):
                yield Records(columns.rows(batch, found, split.path, moments), self._times(batch))

    def _times(self, batch: Any) -> list[int] | None:
        if self._event_time is None:
            return None
        import pyarrow

        column = batch.column(self._event_time)
        if column.null_count:
            raise InputError(f"The column {self._event_time!r}, which has the event times, has a row without one.")
        if pyarrow.types.is_timestamp(column.type):
            column = column.cast(pyarrow.timestamp("ms", column.type.tz), safe=False)
        elif not pyarrow.types.is_integer(column.type):
            raise InputError(
                f"The column {self._event_time!r}, which has the event times, is of the type {column.type}. They are "
                "timestamps, or integers of milliseconds."
            )
        times: list[int] = column.cast(pyarrow.int64()).to_pylist()
        return times


def _batches(opened: Any, start: int, end: int) -> Iterator[Any]:
    """Some rows of a file; row groups before and behind them are not decoded."""
    at = 0
    for number in range(opened.metadata.num_row_groups):
        rows = opened.metadata.row_group(number).num_rows
        if at + rows > start and at < end:
            here = at
            for batch in opened.iter_batches(CHUNK_RECORDS, [number], use_threads=False):
                low, high = max(start - here, 0), min(end - here, batch.num_rows)
                if low < high:
                    yield batch.slice(low, high - low)
                here += batch.num_rows
        at += rows
