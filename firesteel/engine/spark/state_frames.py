"""Savepoints' tables as DataFrames and back, and their files rewritten in Spark tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from firesteel.engine.savepoints.manifest import PartFile
from firesteel.engine.savepoints.places import Place
from firesteel.engine.savepoints.rows import RowFormat
from firesteel.engine.savepoints.writing import write_rows
from firesteel.engine.settings import Settings
from firesteel.engine.spark.session import get_session
from firesteel.errors import SavepointError
from firesteel.runtime.snapshots.saved import Rows, StateId

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["copy_files", "own_session", "read_frame", "rewrite_files", "write_frame"]

_ROWS = 16384


def own_session() -> SparkSession:
    """A session whose settings are not those of running jobs, on the same Spark."""
    return get_session(Settings(spark={"spark.sql.execution.arrow.maxRecordsPerBatch": "10000"}), "state processor")


class Shown(Protocol):
    """Makes rows as they are shown of rows as they are stored."""

    schema: pa.Schema

    def batch(self, stored: pa.RecordBatch) -> pa.RecordBatch: ...


def read_frame(files: list[str], schema: pa.Schema, shown: Shown | None = None) -> DataFrame:
    declared = from_arrow_schema(schema)
    session = own_session()
    frame = session.read.schema(declared).parquet(*files) if files else session.createDataFrame([], declared)
    if shown is None:
        return frame

    def show(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(shown.batch, batches)

    return frame.mapInArrow(show, from_arrow_schema(shown.schema))


def write_frame(frame: DataFrame, state: StateId, target: Place, folder: str) -> tuple[PartFile, ...]:
    """A DataFrame's rows as a state's files: a file per partition."""
    form = RowFormat(state)
    names = form.schema.names
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise SavepointError(
            f"State {state.name!r} needs the columns {', '.join(names)}; the DataFrame lacks {', '.join(missing)}."
        )

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        def rows() -> Iterator[Rows]:
            for batch in batches:
                yield form.rows(_cast(batch.select(names), form.schema, state))

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        files = write_rows(state, rows(), target, f"{folder}/part-{number:05d}.parquet", number)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(files)], pa.binary())], ["files"])

    found: list[PartFile] = []
    for row in frame.select(*names).mapInArrow(write, "files binary").collect():
        found.extend(pickle.loads(row[0]))
    return tuple(sorted(found, key=lambda file: file.path))


def _cast(batch: pa.RecordBatch, schema: pa.Schema, state: StateId) -> pa.RecordBatch:
    import pyarrow as pa

    try:
        arrays = [batch.column(field.name).cast(field.type) for field in schema]
    except (pa.ArrowException, KeyError) as error:
        raise SavepointError(f"A row does not fit state {state.name!r} ({state.schema.text}): {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def rewrite_files(
    source: Place,
    files: Sequence[PartFile],
    before: StateId,
    after: StateId,
    rewrites: Sequence[Callable[[Rows], Rows]],
    target: Place,
    folder: str,
) -> tuple[PartFile, ...]:
    """Each file read, changed and written, in a task of its own."""

    def rewrite(file: PartFile) -> tuple[PartFile, ...]:
        import pyarrow.parquet as pq

        def rows() -> Iterator[Rows]:
            form = RowFormat(before)
            place = source.inside(*file.path.split("/"))
            with place.filesystem.open_input_file(place.path) as opened:
                for batch in pq.ParquetFile(opened).iter_batches(_ROWS):
                    changed = form.rows(batch)
                    for step in rewrites:
                        changed = step(changed)
                    yield changed

        return write_rows(after, rows(), target, f"{folder}/part-{file.subtask:05d}.parquet", file.subtask)

    if not files:
        return ()
    context = own_session().sparkContext
    found: list[Any] = context.parallelize(list(files), len(files)).flatMap(rewrite).collect()
    return tuple(found)


def copy_files(source: Place, files: Sequence[PartFile], target: Place, folder: str) -> tuple[PartFile, ...]:
    """Files that stay as they are."""
    found = []
    for file in files:
        here = source.inside(*file.path.split("/"))
        path = f"{folder}/{file.path.rpartition('/')[2]}"
        there = target.inside(*path.split("/"))
        there.parent().make()
        with (
            here.filesystem.open_input_stream(here.path) as stream,
            there.filesystem.open_output_stream(there.path) as out,
        ):
            while block := stream.read(1 << 22):
                out.write(block)
        found.append(PartFile(path, file.subtask, file.rows, file.bytes))
    return tuple(found)
